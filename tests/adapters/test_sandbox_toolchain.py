"""What a test command needs beside the system, from the ways in which people install interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.sandbox.toolchain import default_toolchain
from domain.errors import InvalidInput

SYSTEM = "/usr/local/bin:/usr/bin:/bin"


def program(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def needed(command: str, *folders: Path) -> tuple[Path, ...]:
    return default_toolchain(command.split(), os.pathsep.join([*map(str, folders), SYSTEM]))


def test_a_program_of_the_system_needs_nothing() -> None:
    assert needed("sh -c true") == ()
    assert needed("/bin/sh -c true") == ()


def test_a_script_of_the_checkout_needs_nothing() -> None:
    assert needed("./run-tests --fast") == needed("scripts/test") == ()


@pytest.mark.parametrize("command", ["no-such-program -x", "/nowhere/python", ""])
def test_a_program_that_is_not_there_is_one_sentence(command: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be found on PATH"):
        needed(command)


def test_an_interpreter_is_shown_with_its_prefix(tmp_path: Path) -> None:
    prefix = tmp_path / ".pyenv" / "versions" / "3.11.7"
    program(prefix / "bin" / "python3.11")
    (prefix / "bin" / "python").symlink_to("python3.11")
    assert needed("python -m pytest", prefix / "bin") == (prefix,)
    assert needed(f"{prefix}/bin/python -m pytest") == (prefix,)


def test_a_script_needs_its_interpreter_too(tmp_path: Path) -> None:
    python = program(tmp_path / "py" / "bin" / "python")
    script = program(tmp_path / "tools" / "bin" / "check", f"#!{python} -I\n")
    assert needed("check", script.parent) == (tmp_path / "tools", tmp_path / "py")
    by_env = program(tmp_path / "more" / "bin" / "check2", "#!/usr/bin/env -S python -I\n")
    assert needed("check2", by_env.parent, python.parent) == (tmp_path / "more", tmp_path / "py")


def test_a_pyenv_shim_stands_for_the_global_version(tmp_path: Path) -> None:
    shim = program(tmp_path / "shims" / "pytest", "#!/usr/bin/env bash\npyenv exec\n")
    (tmp_path / "version").write_text("3.9.1\n3.12.0\n")
    program(tmp_path / "versions" / "3.9.1" / "bin" / "python")
    program(tmp_path / "versions" / "3.12.0" / "bin" / "pytest")
    assert needed("pytest", shim.parent) == (tmp_path / "versions" / "3.12.0",)


def test_a_pyenv_shim_without_a_version_says_what_to_choose(tmp_path: Path) -> None:
    shim = program(tmp_path / "shims" / "only-here")
    (tmp_path / "versions").mkdir()
    with pytest.raises(InvalidInput, match="pyenv global"):
        needed("only-here", shim.parent)


def test_a_virtual_environment_brings_what_it_was_made_from(tmp_path: Path) -> None:
    base = program(tmp_path / "base" / "bin" / "python3").parent
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(base / "python3")
    (venv / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3\n")
    program(venv / "bin" / "pytest", f"#!{venv}/bin/python\n")
    assert needed("python -m pytest", venv / "bin") == (venv, base.parent)
    assert needed("pytest", venv / "bin") == (venv, base.parent)


def test_a_virtual_environment_of_the_systems_python_needs_only_itself(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    found = needed("python -m unittest", tmp_path / "venv" / "bin")
    assert found[0] == tmp_path / "venv"
    assert all(not str(folder).startswith("/usr") for folder in found)


def test_every_link_on_the_way_is_shown(tmp_path: Path) -> None:
    real = program(tmp_path / "opt" / "tool-1.2" / "bin" / "tool")
    (tmp_path / "opt" / "tool").symlink_to("tool-1.2")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tool").symlink_to(tmp_path / "opt" / "tool" / "bin" / "tool")
    found = needed("tool", tmp_path / "links")
    assert found == (real.parent.parent, tmp_path / "links" / "tool", tmp_path / "opt" / "tool")


def test_a_launcher_that_lies_deeper_in_its_prefix_brings_all_of_it(tmp_path: Path) -> None:
    deep = program(tmp_path / "node" / "lib" / "npm" / "bin" / "npm-cli.js", "#!/usr/bin/env node\n")
    program(tmp_path / "node" / "bin" / "node")
    (tmp_path / "node" / "bin" / "npm").symlink_to(deep)
    assert needed("npm test", tmp_path / "node" / "bin") == (tmp_path / "node",)


@pytest.mark.parametrize("folder", ["", ".local", ".cargo"])
def test_a_home_is_never_shown_for_a_program_in_it(tmp_path: Path, folder: str) -> None:
    home = tmp_path / "home"
    tool = program(home / folder / "bin" / "tool")
    found = default_toolchain(("tool",), str(tool.parent), homes=(home,))
    assert found == (tool,)


def test_a_program_of_the_system_that_is_not_on_the_sandboxs_path_brings_its_place() -> None:
    place = next(Path(p) for p in ("/usr/lib/git-core", "/usr/sbin") if Path(p).is_dir())
    name = next(
        p.name for p in sorted(place.iterdir()) if not Path("/usr/bin", p.name).exists() and os.access(p, os.X_OK)
    )
    assert place in needed(name, place)

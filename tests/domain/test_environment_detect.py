"""From a repository's files to how it is set up, and what the set-up and later runs are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.environment.detect import PYPI, detected, is_input
from domain.environment.failure import setup_failure
from domain.environment.inside import later_variables, program_folders, setup_variables, tools
from domain.environment.project import Setup

PROJECT = b'[project]\nname = "x"\nversion = "1"\n'


def commands(**files: bytes | None) -> dict[str, tuple[str, ...]]:
    named = {name.replace("__", "-").replace("_", "."): content for name, content in files.items()}
    return {each.name: each.setup.command for each in detected(named)}


def test_a_lock_of_uv_says_uv() -> None:
    found = detected({"uv.lock": None, "pyproject.toml": PROJECT})[0]
    assert (found.name, found.because, found.setup.command) == ("uv", "uv.lock", ("uv", "sync"))
    assert (found.setup.folder, found.setup.registries, found.programs) == (".venv", PYPI, (".venv/bin",))


def test_groups_of_dependencies_need_a_tool_that_knows_them() -> None:
    assert commands(pyproject_toml=PROJECT + b'[dependency-groups]\ndev = ["pytest"]\n') == {"uv": ("uv", "sync")}


def test_poetry_is_told_by_its_table_or_its_lock() -> None:
    assert commands(pyproject_toml=b'[tool.poetry]\nname = "x"\n') == {"poetry": ("poetry", "install")}
    assert commands(poetry_lock=None) == {"poetry": ("poetry", "install")}


def test_pip_installs_lists_and_the_project_as_a_link_with_its_extras_for_tests() -> None:
    extras = b'[project.optional-dependencies]\ntests = ["pytest"]\ndocs = ["sphinx"]\n'
    files = {"pyproject.toml": PROJECT + extras, "requirements.txt": None, "requirements-dev.txt": None}
    (found,) = detected(files)
    assert found.name == "pip"
    assert found.setup.command[:2] == ("sh", "-ec")
    assert found.setup.command[2].endswith("install -r requirements-dev.txt -r requirements.txt -e .[tests]")


def test_a_pyproject_that_only_configures_tools_installs_nothing() -> None:
    assert commands(pyproject_toml=b"[tool.ruff]\n") == {}
    assert commands(pyproject_toml=b"[tool.ruff]\n", setup_py=None)["pip"][2].endswith("install -e .")


def test_a_file_whose_name_is_shell_is_not_put_into_a_command() -> None:
    assert detected({"requirements;reboot.txt": None, "requirements$(id).txt": None, "requirements a.txt": None}) == ()


def test_node_and_go_beside_python_are_named_after_it() -> None:
    found = detected({"package.json": None, "go.mod": None, "setup.py": None})
    assert [each.name for each in found] == ["pip", "npm", "go"]
    assert [each.setup.folder for each in found] == [".venv", "node_modules", ".gomodcache"]


def test_what_lies_deeper_says_nothing() -> None:
    assert detected({"docs/package.json": None, "a/setup.py": None}) == ()


@given(
    st.dictionaries(st.sampled_from(["pyproject.toml", "package.json", "requirements.txt"]), st.binary() | st.none())
)
def test_no_content_makes_it_fail(files: dict[str, bytes | None]) -> None:
    assert all(each.setup.command for each in detected(files))


@pytest.mark.parametrize("tool", ["tool = 1", "project = 3", "[project]\noptional-dependencies = 4", "[tool]\nuv = 1"])
def test_odd_tables_do_not_make_it_fail(tool: str) -> None:
    detected({"pyproject.toml": tool.encode()})


@pytest.mark.parametrize(
    ("path", "inputs", "decides"),
    [
        ("uv.lock", (), True),
        ("packages/a/package.json", (), True),
        ("requirements/dev.txt", (), True),
        ("src/notes.txt", (), False),
        ("uv.lock", ("poetry.lock",), False),
        ("a/uv.lock", ("uv.lock",), True),
        ("a/uv.lock", ("b/uv.lock",), False),
        ("x/a/uv.lock", ("a/uv.lock",), False),
        ("a/uv.lock", ("a/uv.lock",), True),
    ],
)
def test_the_files_that_decide(path: str, inputs: tuple[str, ...], decides: bool) -> None:
    setup = Setup(command=("uv", "sync"), folder=".venv", registries=PYPI, inputs=inputs)
    assert is_input(path, setup) is decides


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (("uv", "sync"), ("uv", "python3")),
        (("npm", "ci"), ("npm", "node")),
        (("go", "mod", "download"), ("go",)),
        (("sh", "-ec", "python3.12 -m venv .venv && .venv/bin/pip install x"), ("sh", "python3.12")),
        (("sh", "-c", "uv venv;npm ci"), ("sh", "uv", "python3", "npm", "node")),
    ],
)
def test_the_programs_that_a_set_up_needs(command: tuple[str, ...], needed: tuple[str, ...]) -> None:
    assert tools(Setup(command=command, folder=".venv", registries=())) == needed


def test_later_runs_find_the_same_places_and_are_kept_from_installing() -> None:
    setup = Setup(command=("uv", "sync"), folder="env", registries=PYPI)
    first, later = setup_variables(setup), later_variables(setup)
    assert first["UV_PROJECT_ENVIRONMENT"] == later["UV_PROJECT_ENVIRONMENT"] == later["VIRTUAL_ENV"] == "/work/env"
    assert (later["UV_NO_SYNC"], later["GOPROXY"], later["PIP_NO_INDEX"]) == ("1", "off", "1")
    assert program_folders(setup) == ("env/bin", "env/.bin")


def test_a_failure_names_the_hosts_that_were_refused_and_the_last_lines() -> None:
    said = "line\n" * 1_000 + "ERROR: no such version\n"
    sentence = setup_failure(ended="exited", exit_code=2, output=said, refused=("example.org:443",))
    assert "exited with 2; it asked for example.org:443, which registries does not name" in sentence
    assert sentence.endswith("ERROR: no such version")
    assert len(sentence) < 2_000
    assert setup_failure(ended="exited", exit_code=0, output=said, refused=("a:1",)) == ""
    assert "did not end in time" in setup_failure(ended="timeout", exit_code=137, output="", refused=())

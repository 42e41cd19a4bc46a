"""``mendwork init``: what it sees in a repository, what it writes, and what it leaves as it is."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from adapters.cli.init import commands
from adapters.cli.init.commands import Wanted, begin
from adapters.cli.init.proposal import Proposal, project_name
from adapters.cli.init.testing import test_commands as commands_for
from adapters.cli.init.writing import text_with, write
from adapters.settings import load_settings
from domain.build.names import check_project_name
from domain.environment.project import Setup
from domain.errors import InvalidInput, RepositoryRefused
from tests.adapters.terminals import terminal
from tests.e2e.workshop import FILES, git, make_repository
from tests.forks import run_command

PLAIN = "def test_x():\n    assert True\n"


@pytest.fixture(autouse=True)
def _nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MENDWORK_CONFIG", raising=False)


def repository(tmp_path: Path, files: Mapping[str, str] = FILES, name: str = "calc") -> Path:
    return make_repository(tmp_path / name, files)


def written(folder: Path, **wanted: object) -> dict[str, object]:
    """The project's section after ``init --yes``."""
    assert begin(Wanted(path=folder, yes=True, **wanted)) == 0  # type: ignore[arg-type]
    projects: dict[str, dict[str, object]] = tomllib.loads((folder / "mendwork.toml").read_text())["projects"]
    return next(iter(projects.values()))


def chosen(files: Mapping[str, str]) -> tuple[str, ...]:
    found = commands_for(files, lambda path: files[path].encode() if path in files else None, python="python3")
    return found[0].argv if found else ()


@pytest.mark.parametrize(
    ("files", "argv"),
    [
        ({"pytest.ini": "", "tests/test_a.py": ""}, "python3 -m pytest"),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": ""}, "python3 -m pytest"),
        ({"setup.cfg": "[tool:pytest]\n", "tests/test_a.py": ""}, "python3 -m pytest"),
        ({"tox.ini": "[pytest]\n", "a/test_a.py": ""}, "python3 -m pytest"),
        ({"tests/conftest.py": "", "tests/test_a.py": ""}, "python3 -m pytest"),
        ({"tests/test_a.py": PLAIN}, "python3 -m pytest"),
        ({"test_a.py": "import unittest\n"}, "python3 -m unittest discover"),
        ({"tests/test_a.py": "import unittest\n"}, "python3 -m unittest discover -s tests"),
        (
            {"tests/__init__.py": "", "tests/test_a.py": "import unittest\n"},
            "python3 -m unittest discover -s tests -t .",
        ),
        ({"lib/a_test.py": "from unittest import TestCase\n"}, "python3 -m unittest discover -s lib -p *_test.py"),
        ({"package.json": '{"scripts": {"test": "node --test test/"}}'}, "node --test test/"),
        ({"package.json": '{"scripts": {"test": "node --test && rm -rf x"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ""),
        ({"package.json": "{", "a.test.js": "const test = require('node:test')"}, "node --test"),
        ({"go.mod": "module x\n", "a_test.go": ""}, "go test ./..."),
        ({"a_test.go": ""}, ""),
        ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, "make test"),
        ({"Makefile": "test := 1\n"}, ""),
        ({"README.md": "# x\n"}, ""),
    ],
)
def test_the_test_command_is_what_the_files_say(files: Mapping[str, str], argv: str) -> None:
    assert " ".join(chosen(files)) == argv


def test_further_test_commands_are_said_and_not_taken(tmp_path: Path) -> None:
    files = {**FILES, "Makefile": "test:\n\ttrue\n"}
    folder = repository(tmp_path, files)
    assert written(folder)["test"] == ["python3", "-m", "unittest", "discover"]
    assert "# also seen: test command make test (Makefile (target test))" in (folder / "mendwork.toml").read_text()


def test_a_small_repository_gets_a_file_that_loads_and_a_state_that_git_does_not_see(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    section = written(folder)
    assert section == {"repository": ".", "branch": "main", "test": ["python3", "-m", "unittest", "discover"]}
    settings = load_settings(start=folder, environment={})
    assert settings.allowlist()["calc"].repository == str(folder.resolve())
    settings.state.mkdir()
    (settings.state / "x").write_text("x")
    assert git(folder, "status", "--short").split() == ["??", "mendwork.toml"]
    assert not (folder / ".gitignore").exists()
    assert "[models.main]" in (folder / "mendwork.toml").read_text()  # in a comment


def test_set_up_is_written_with_its_registries_and_the_test_runner_that_pip_would_leave_out(tmp_path: Path) -> None:
    files = {"pyproject.toml": '[project]\nname = "x"\nversion = "1"\n', "tests/test_x.py": PLAIN}
    section = written(repository(tmp_path, files))
    setup = section["setup"]
    assert isinstance(setup, dict)
    assert setup["command"][-1].endswith(" pytest")
    assert (setup["registries"], setup["packages"]) == (["pypi.org", "files.pythonhosted.org"], ["pytest"])
    assert section["test"] == ["python", "-m", "pytest"]


@pytest.mark.parametrize("manifest", ['{"name": "x"}', '{"dependencies": {}}'])
def test_a_manifest_that_names_nothing_needs_no_set_up(tmp_path: Path, manifest: str) -> None:
    files = {"package.json": manifest, "a.test.js": "require('node:test')\n"}
    assert "setup" not in written(repository(tmp_path, files))


def test_no_tests_are_a_choice_that_the_file_says(tmp_path: Path) -> None:
    section = written(repository(tmp_path, {"README.md": "# x\n"}))
    assert (section["untested"], "test" in section) == ("syntax", False)


def test_a_project_is_added_to_a_file_whose_own_text_stays_byte_for_byte(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    own = b'# mine \xc3\xbc\r\n[timeouts]\r\nsweep = 30 # often\r\n\r\n[projects.other]\r\nrepository="."\r\ntest="x"'
    (folder / "mendwork.toml").write_bytes(own)
    (folder / "mendwork.toml").chmod(0o600)
    assert begin(Wanted(path=folder, yes=True)) == 0
    now = (folder / "mendwork.toml").read_bytes()
    assert now.startswith(own + b"\r\n")
    assert b"\r\n[projects.calc]\r\n" in now
    assert set(tomllib.loads(now.decode())["projects"]) == {"other", "calc"}
    assert (folder / "mendwork.toml").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.glob(".mendwork.toml*")] == []


def test_a_name_that_is_there_is_refused_and_replaced_only_by_force(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    old = (
        '# first\n[projects.calc]\nrepository = "."\ntest = "old"\n\n[projects.calc.setup]\ncommand = "x"\n'
        'registries = []\n\n# of the other\n[projects.calc2]\nrepository = "."\ntest = "kept"  # so\n'
    )
    (folder / "mendwork.toml").write_text(old)
    with pytest.raises(InvalidInput, match="--force"):
        begin(Wanted(path=folder, yes=True))
    assert (folder / "mendwork.toml").read_text() == old
    assert begin(Wanted(path=folder, yes=True, force=True)) == 0
    now = (folder / "mendwork.toml").read_text()
    rest = '# first\n\n# of the other\n[projects.calc2]\nrepository = "."\ntest = "kept"  # so\n'
    assert now.startswith(rest)
    projects = tomllib.loads(now)["projects"]
    assert (projects["calc"]["test"][0], "setup" in projects["calc"]) == ("python3", False)


@pytest.mark.parametrize(
    "old",
    [
        'projects = { calc = { repository = ".", test = "x" } }\n',
        '[projects]\ncalc.repository = "."\ncalc.test = "x"\n',
        'x = """\n[projects.calc]\n"""\n[projects.calc]\nrepository = "."\ntest = "x"\n',
    ],
)
def test_a_project_that_cannot_be_told_apart_is_left_to_a_person(tmp_path: Path, old: str) -> None:
    folder = repository(tmp_path)
    (folder / "mendwork.toml").write_text(old)
    with pytest.raises(InvalidInput, match="by hand"):
        begin(Wanted(path=folder, yes=True, force=True))
    assert (folder / "mendwork.toml").read_text() == old


@pytest.mark.parametrize(
    "old", ["[projects\n", "nonsense = 1\n", 'projects = { a = { repository = ".", test = "x" } }\n']
)
def test_a_file_that_would_not_load_stays_as_it_is(tmp_path: Path, old: str) -> None:
    folder = repository(tmp_path)
    (folder / "mendwork.toml").write_text(old)
    with pytest.raises(InvalidInput):
        begin(Wanted(path=folder, yes=True))
    assert (folder / "mendwork.toml").read_text() == old
    assert [path.name for path in folder.iterdir() if path.name.startswith(".mendwork")] == []


def test_a_file_that_changes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "mendwork.toml"
    target.write_text("# new\n")
    with pytest.raises(InvalidInput, match="changed meanwhile"):
        write(target, b"# ours\n", was=b"# old\n")
    assert target.read_text() == "# new\n"


def _bare(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)


def _empty(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def _fileless(folder: Path) -> None:
    _empty(folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "nothing")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: folder.mkdir(), "in no git repository"),
        (lambda folder: None, "is no folder"),
        (_bare, "bare repository"),
        (_empty, "no commits yet"),
        (_fileless, "holds no files yet"),
    ],
)
def test_what_is_no_repository_to_build_in_is_said(tmp_path: Path, make: object, sentence: str) -> None:
    make(tmp_path / "x")  # type: ignore[operator]
    with pytest.raises((InvalidInput, RepositoryRefused), match=sentence):
        begin(Wanted(path=tmp_path / "x", yes=True))


def test_the_default_branch_of_the_remote_comes_before_what_is_checked_out(tmp_path: Path) -> None:
    origin = repository(tmp_path, name="origin")
    git(tmp_path, "clone", "-q", str(origin), str(tmp_path / "clone"))
    git(tmp_path / "clone", "checkout", "-q", "-b", "feature")
    assert written(tmp_path / "clone")["branch"] == "main"
    git(origin, "checkout", "-q", "-b", "trunk")
    git(origin, "branch", "-q", "-D", "main")
    assert written(origin)["branch"] == "trunk"


def test_a_folder_inside_stands_for_its_repository_and_a_worktree_keeps_its_state_out(tmp_path: Path) -> None:
    folder = repository(tmp_path, {**FILES, "sub/x.txt": "x"})
    git(folder, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    assert begin(Wanted(path=tmp_path / "tree" / "sub", yes=True, name="tree")) == 0
    assert tomllib.loads((tmp_path / "tree" / "mendwork.toml").read_text())["projects"]["tree"]["branch"] == "other"
    (tmp_path / "tree" / ".mendwork").mkdir()
    (tmp_path / "tree" / ".mendwork" / "x").write_text("x")
    assert git(tmp_path / "tree", "status", "--short").split() == ["??", "mendwork.toml"]


def test_a_configuration_above_gets_the_project_by_its_relative_path(tmp_path: Path) -> None:
    (tmp_path / "mendwork.toml").write_text("")
    folder = repository(tmp_path)
    assert begin(Wanted(path=folder, yes=True)) == 0
    assert tomllib.loads((tmp_path / "mendwork.toml").read_text())["projects"]["calc"]["repository"] == "calc"
    assert not (folder / "mendwork.toml").exists()
    assert "mendwork" not in (folder / ".git" / "info" / "exclude").read_text()


def test_init_runs_nothing_of_the_repository_and_changes_nothing_else_in_it(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    trap = tmp_path / "ran"
    for key in ("core.fsmonitor", "core.pager", "diff.external"):
        git(folder, "config", key, f"touch {trap}")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    written(folder)
    assert not trap.exists()
    new = {path for path in folder.rglob("*") if path.is_file()} - set(before)
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert ({path.name for path in new}, changed) == ({"mendwork.toml"}, {"exclude"})


def test_without_a_terminal_and_without_the_flag_nothing_is_written(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ran = run_command(["init", str(folder)], folder=tmp_path, environment=environment)
    assert (ran.code, ran.out) == (2, "")
    assert "--yes" in ran.err
    assert not (folder / "mendwork.toml").exists()
    agreed = run_command(["init", str(folder), "--yes", "--json"], folder=tmp_path, environment=environment)
    told = json.loads(agreed.out)
    assert (told["name"], told["branch"], told["because"]["branch"]) == ("calc", "main", "what is checked out")
    assert told["config"] == str(folder / "mendwork.toml")


@pytest.mark.parametrize(
    ("typed", "code", "sets_up"), [("y", 0, True), ("w", 0, False), ("n", 3, None), ("what\ny", 0, True)]
)
async def test_a_person_is_asked_once_and_the_question_names_what_may_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, sets_up: bool | None
) -> None:
    folder = repository(tmp_path, {"requirements.txt": "attrs\npytest\n", "tests/test_x.py": PLAIN})
    with terminal(monkeypatch) as person:
        running = asyncio.create_task(asyncio.to_thread(begin, Wanted(path=folder)))
        await person.until("reach pypi.org, files.pythonhosted.org? (")
        await person.until("[y/n/w] ")
        for line in typed.split("\n"):
            person.type(line)
            if line == "what":
                await person.until("[y/n/w] ")
        assert await running == code
    assert (folder / "mendwork.toml").exists() == (code == 0)
    if sets_up is not None:
        section = tomllib.loads((folder / "mendwork.toml").read_text())["projects"]["calc"]
        assert ("setup" in section) == sets_up


TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)
PATHS = st.from_regex(r"[a-z][a-z0-9_]{0,10}(/[a-z0-9_.]{1,10}[a-z])?", fullmatch=True)
SETUPS = st.builds(
    Setup,
    command=st.lists(TEXTS, min_size=1, max_size=4).map(tuple),
    folder=PATHS,
    registries=st.lists(st.sampled_from(["pypi.org", "registry.npmjs.org:8443"]), max_size=2).map(tuple),
    packages=st.lists(TEXTS, max_size=2).map(tuple),
    inputs=st.lists(TEXTS, max_size=2).map(tuple),
)


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    test=st.lists(TEXTS, max_size=4).map(tuple),
    setup=st.none() | SETUPS,
    branch=TEXTS,
    why=st.text(max_size=30),
    limits=st.dictionaries(st.sampled_from(["test_scratch_bytes", "parallel"]), st.integers(1, 10**12), max_size=2),
)
def test_whatever_was_detected_the_file_says_it_back(
    tmp_path: Path, test: tuple[str, ...], setup: Setup | None, branch: str, why: str, limits: dict[str, int]
) -> None:
    proposal = Proposal(
        name="calc",
        folder=tmp_path / "repo",
        branch=branch,
        test=test,
        untested="" if test else "syntax",
        setup=setup,
        toolchain=(),
        limits=limits,
        because=dict.fromkeys(("repository", "branch", "test", "setup", "limits"), why),
        others=(why,),
    )
    target = tmp_path / "mendwork.toml"
    target.unlink(missing_ok=True)
    write(target, text_with(None, proposal, tmp_path, force=False), was=None)
    project = load_settings(start=tmp_path, environment={}).allowlist()["calc"]
    assert (project.branch, project.test, project.setup) == (branch, test, setup)
    assert all(getattr(project.limits, name) == value for name, value in limits.items())
    again = text_with(target.read_bytes(), proposal, tmp_path, force=True)
    assert tomllib.loads(again.decode()) == tomllib.loads(target.read_text())


@given(st.text(max_size=80))
def test_every_folder_has_a_name_that_a_project_can_have(folder: str) -> None:
    check_project_name(project_name(folder))


def test_the_command_is_one_of_mendworks() -> None:
    assert [command.callback.__name__ for command in commands.app.registered_commands if command.callback] == ["init"]

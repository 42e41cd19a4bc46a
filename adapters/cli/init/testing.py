"""From a repository's files to its test command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

MOST_LOOKED_AT = 40
"""Test files that are read to tell one runner from another."""

_PYTHON_TEST = re.compile(r"(?:test_[^/]*|[^/]*_test)\.py")
_NODE_TEST = re.compile(r"(?:[^/]*[.-]test|[^/]*\.spec|test)\.[cm]?[jt]s")
_PLAIN_TEST = re.compile(rb"^(?:async )?def test|^import pytest|^from pytest|@pytest\.", re.MULTILINE)
_UNITTEST = re.compile(rb"\bTestCase\b|^(?:import|from) unittest", re.MULTILINE)
_NODE_RUNNER = re.compile(rb"""['"]node:test['"]""")
_PYTEST_SAYS = {
    "pytest.ini": rb"",
    "pyproject.toml": rb"(?m)^\s*\[tool\.pytest\b",
    "setup.cfg": rb"(?m)^\s*\[tool:pytest\]",
    "tox.ini": rb"(?m)^\s*\[pytest\]",
}
_NONE_YET = "no test specified"

Text = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCommand:
    """``language`` is "python", "node", "go" or "" (make); ``because`` the file that says so."""

    __test__ = False  # no test class, though pytest would take it for one by its name

    argv: tuple[str, ...]
    because: str
    language: str


def test_commands(files: Iterable[str], text: Text, *, python: str) -> tuple[TestCommand, ...]:
    """The likeliest first; () where nobody can tell. ``python`` is how the interpreter is called there.

    The runners that tell each test by its name come before those that only have an exit code.
    """
    listed = sorted(files)
    found = [*_pythons(listed, text, python), *_nodes(listed, text), *_gos(listed), *_makes(listed, text)]
    return tuple({each.argv: each for each in reversed(found)}[argv] for argv in dict.fromkeys(e.argv for e in found))


def _pythons(files: list[str], text: Text, python: str) -> Iterator[TestCommand]:
    tests = [path for path in files if _PYTHON_TEST.fullmatch(PurePosixPath(path).name)]
    because = _pytest_says(files, text) or _needs_pytest(tests, text)
    if because and tests:
        yield TestCommand(argv=(python, "-m", "pytest"), because=because, language="python")
    elif tests:
        folder = PurePosixPath(tests[0]).parts[0] if "/" in tests[0] else ""
        flat = any("/" not in path for path in tests)
        packaged = f"{folder}/__init__.py" in files
        where = () if flat or not folder else ("-s", folder, *(("-t", ".") if packaged else ()))
        pattern = () if any(PurePosixPath(path).name.startswith("test") for path in tests) else ("-p", "*_test.py")
        argv = (python, "-m", "unittest", "discover", *where, *pattern)
        yield TestCommand(argv=argv, because=tests[0], language="python")


def _pytest_says(files: list[str], text: Text) -> str:
    for name, pattern in _PYTEST_SAYS.items():
        if name in files and re.search(pattern, text(name) or b""):
            return name
    return next((path for path in files if PurePosixPath(path).name == "conftest.py"), "")


def _needs_pytest(tests: list[str], text: Text) -> str:
    """A test file that unittest would not run."""
    for path in tests[:MOST_LOOKED_AT]:
        content = text(path) or b""
        if _PLAIN_TEST.search(content) and not (_UNITTEST.search(content) and b"pytest" not in content):
            return path
    return ""


def _nodes(files: list[str], text: Text) -> Iterator[TestCommand]:
    script = _node_script(text("package.json")) if "package.json" in files else ""
    if script.split()[:2] == ["node", "--test"] and not re.search(r"[&|;$<>`\"'\\*?]", script):
        yield TestCommand(argv=tuple(script.split()), because="package.json (scripts.test)", language="node")
    elif script:
        yield TestCommand(argv=("npm", "test"), because="package.json (scripts.test)", language="node")
    else:
        tests = [path for path in files if _NODE_TEST.fullmatch(PurePosixPath(path).name)]
        own = next((path for path in tests[:MOST_LOOKED_AT] if _NODE_RUNNER.search(text(path) or b"")), "")
        if own:
            yield TestCommand(argv=("node", "--test"), because=own, language="node")


def _node_script(content: bytes | None) -> str:
    try:
        found = json.loads(content or b"{}")["scripts"]["test"]
    except (ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) and _NONE_YET not in found else ""


def _gos(files: list[str]) -> Iterator[TestCommand]:
    because = next((path for path in files if path.endswith("_test.go")), "")
    if because and "go.mod" in files:
        yield TestCommand(argv=("go", "test", "./..."), because=because, language="go")


def _makes(files: list[str], text: Text) -> Iterator[TestCommand]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if name in files and re.search(rb"(?m)^test\s*:(?!=)", text(name) or b""):
            yield TestCommand(argv=("make", "test"), because=f"{name} (target test)", language="")
            return

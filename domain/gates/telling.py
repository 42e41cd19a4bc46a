"""How a runner is asked to say what each test did, without a change of the project."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath

_REPORT = "-rpfEsxX"
_PYTEST = {"pytest", "py.test", "pytest-3"}


def telling(argv: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The test command that also prints a line a test, and the environment that it needs for that.

    pytest is asked by its environment variable, which reaches it behind make, tox and ``sh -c`` too. It goes on when a
    file cannot be collected: what the others do can then be told. unittest and Go are asked only where the command is
    plainly theirs; Node, mocha and printers of TAP say it anyway.
    """
    words = tuple(argv)
    if _is_pytest(words) and any(word.startswith("-r") for word in words) and "--" not in words:
        words = (*words, _REPORT)  # its own -r would win over the environment's
    elif _is_unittest(words) and not {"-v", "--verbose", "-q", "--quiet", "--"} & set(words):
        words = (*words, "-v")
    elif is_go(words) and not {"-v", "-v=true", "-test.v", "-json"} & set(words):
        words = (*words[:2], "-v", *words[2:])
    return words, {"PYTEST_ADDOPTS": f"{_REPORT} --continue-on-collection-errors"}


def is_go(argv: Sequence[str]) -> bool:
    """Whether the command is plainly ``go test``."""
    return len(argv) > 1 and PurePosixPath(argv[0]).name == "go" and argv[1] == "test"


def _is_pytest(words: Sequence[str]) -> bool:
    return bool(words) and (PurePosixPath(words[0]).name in _PYTEST or _is_module(words, "pytest"))


def _is_unittest(words: Sequence[str]) -> bool:
    return _is_module(words, "unittest")


def _is_module(words: Sequence[str], module: str) -> bool:
    return f"-m{module}" in words or ("-m", module) in pairwise(words)

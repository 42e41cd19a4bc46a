"""A syntax check of the written files: one command for the sandbox, before the tests are worth their time."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from domain.gates.plain import plain

_MARK = "SYNTAX "
_PYTHON = {".py", ".pyi"}
_NODE = {".js", ".mjs", ".cjs"}
_JSON = {".json"}
# Parses, never runs: isolated, so that no file of the checkout is taken for a module of the library.
_PROGRAM = r"""
import json, os, sys
bad = 0
for path in sys.argv[1:]:
    if not os.path.isfile(path):
        continue
    try:
        with open(path, "rb") as file:
            data = file.read()
        json.loads(data) if path.endswith(".json") else compile(data, path, "exec", dont_inherit=True)
    except Exception as error:
        line = getattr(error, "lineno", None) or 0
        text = getattr(error, "msg", "") or str(error)
        print(f"SYNTAX {path}:{line}: {type(error).__name__}: {text}")
        bad = 1
sys.exit(bad)
"""
# What Node says of files that are meant for a bundler or a compiler, not for it.
_NOT_FOR_NODE = ("Cannot use import statement outside a module", "Unexpected token 'export'", "Unexpected token '<'")
_CHECK_NODE = """if ! said=$(node --check {0} 2>&1); then
  bad=1; printf 'SYNTAX %s: ' {0}; echo "$said" | grep -m1 Error: || echo
fi"""


def syntax_argv(paths: Sequence[str], *, test: Sequence[str]) -> tuple[str, ...]:
    """The command that checks ``paths`` (relative, as in the change); () when none is of a kind that can be checked.

    ``test`` is the project's test command: its interpreter is the one that has to understand the files.
    """
    parsed = [f"./{path}" for path in paths if PurePosixPath(path).suffix in _PYTHON | _JSON]
    node = [f"./{path}" for path in paths if PurePosixPath(path).suffix in _NODE]
    if not parsed and not node:
        return ()
    python = test[0] if test and PurePosixPath(test[0]).name.startswith("python") else "python3"
    steps = ["bad=0"]
    if parsed:
        words = shlex.join([python, "-I", "-W", "ignore", "-c", _PROGRAM, *parsed])
        steps.append(f"if command -v {shlex.quote(python)} >/dev/null; then {words} || bad=1; fi")
    if node:
        checks = "\n".join(_CHECK_NODE.format(shlex.quote(path)) for path in node)
        steps.append(f"if command -v node >/dev/null; then\n{checks}\nfi")
    return ("sh", "-c", "\n".join([*steps, "exit $bad"]))


def syntax_reason(log_text: str, exit_code: int) -> str:
    """What is wrong, one line a file, at most ten; "" when all can be parsed or when it cannot be told here."""
    if exit_code == 0:
        return ""
    said = [line[len(_MARK) :] for line in plain(log_text).split("\n") if line.startswith(_MARK)]
    wrong = [line.removeprefix("./")[:300] for line in said if not any(text in line for text in _NOT_FOR_NODE)]
    rest = [f"and {len(wrong) - 10} more"] if len(wrong) > 10 else []
    return "\n".join(wrong[:10] + rest)

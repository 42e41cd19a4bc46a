"""A red run's output, cut to what helps to mend it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from domain.gates.plain import plain
from domain.gates.report import Runner
from domain.gates.runners.go_output import go_blocks
from domain.gates.runners.mocha_output import mocha_blocks
from domain.gates.runners.node_output import node_blocks
from domain.gates.runners.pytest_output import pytest_blocks
from domain.gates.runners.tap_output import tap_blocks
from domain.gates.runners.unittest_output import unittest_blocks

_BLOCKS: Mapping[str, Callable[[Sequence[str]], list[str]]] = {
    "pytest": pytest_blocks,
    "unittest": unittest_blocks,
    "node": node_blocks,
    "tap": tap_blocks,
    "go": go_blocks,
    "mocha": mocha_blocks,
}
_CUT = "\n[...]\n"
_LEAST = 400
_LINE = 1_000
_TRACEBACK = "Traceback (most recent call last):"


def trim(log_text: str, runner: Runner, *, limit: int, first: Sequence[str] = ()) -> str:
    """At most ``limit`` bytes of UTF-8: each failing test's block, syntax errors and ends of tracebacks, the summary.

    Of tests named in ``first`` the blocks come before all others. An output in which no such block is found gives its
    head, its last traceback and its tail. Says how much is left out.
    """
    text = plain(log_text).strip("\n")
    size = _size(text)
    if size <= limit:
        return text
    lines = [_short(line) for line in text.split("\n")]
    blocks = _ordered(_BLOCKS[runner](lines) if runner in _BLOCKS else [], first)
    note = f"\n[{size} of {size} bytes of output left out]"
    room = limit - len(note)
    kept = _fit(blocks or _around(lines), room) if room > 0 else ""
    left_out = max(size - _size(kept), 0)
    return _head(f"{kept}\n[{left_out} of {size} bytes of output left out]", limit)


def _ordered(blocks: list[str], first: Sequence[str]) -> list[str]:
    """The last block is the summary and stays where it is."""
    titles = tuple(title for name in first for title in _titles(name))
    if not titles:
        return blocks

    def later(block: str) -> bool:
        heading = "\n".join(block.split("\n", 8)[:8])
        return not any(title in heading for title in titles)

    return [*sorted(blocks[:-1], key=later), *blocks[-1:]]


def _titles(name: str) -> tuple[str, ...]:
    """How the heading of a test's block may call it."""
    within = name.partition("::")[2]
    if within:
        return (f"_ {within.replace('::', '.')} _", f" of {within.replace('::', '.')} _")
    if " > " in name:
        return (name.rpartition(" > ")[2],)
    package, _, test = name.rpartition(".")
    return (name, f": {test} (") if "/" in package or package else (name,)


def _around(lines: Sequence[str]) -> list[str]:
    starts = [number for number, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if not starts:
        return ["\n".join(lines)]
    return ["\n".join(lines[: starts[-1]]), "\n".join(lines[starts[-1] :])]


def _fit(blocks: list[str], room: int) -> str:
    """The last block is the summary or the end: it stays. Of too many others the first ones stay."""
    most = max(room // _LEAST, 1)
    if len(blocks) > most:
        blocks = [*blocks[: most - 1], blocks[-1]]
    texts = dict(enumerate(blocks))
    left = room - 2 * len(blocks)
    for waiting, number in zip(range(len(blocks), 0, -1), sorted(texts, key=lambda n: len(texts[n])), strict=True):
        texts[number] = _middle_out(texts[number], max(left // waiting, 0))
        left -= _size(texts[number])
    return "\n\n".join(texts[number] for number in sorted(texts))


def _middle_out(text: str, room: int) -> str:
    if _size(text) <= room:
        return text
    keep = room - len(_CUT)
    if keep <= 0:
        return _head(text, max(room, 0))
    # A traceback says what went wrong in its last lines.
    return _head(text, keep // 3) + _CUT + _tail(text, keep - keep // 3)


def _short(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE // 2] + " [...] " + line[-_LINE // 2 :]


def _size(text: str) -> int:
    return len(text.encode())


def _head(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


def _tail(text: str, size: int) -> str:
    return text.encode()[-size:].decode(errors="ignore") if size else ""

"""Conflicts as a text that a model and a person can read: every path with both sides marked, bounded."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

from adapters.git.objects.merge import BEFORE, MINE, NEWER, Clash, Merge, Side
from adapters.git.run import Call, Git

_LONGEST = 20_000
_PATHS = 40
_REST = 100  # for the line that counts the paths beyond those
_READ_BYTES = 1_000_000
_READ_IN_ALL = 16_000_000
_COMPARED_LINES = 2_000
_LINE = 400
_AROUND = 3
_NAMES = {NEWER: "the newer state", BEFORE: "before both", MINE: "this change"}
# What git says of the tree that it leaves; nobody sees that one.
_ASIDE = re.compile(r"\s+Version .* left in tree\.|; (?:moving it to|renamed) .* (?:instead|somewhere)", re.DOTALL)
_MARKS = {NEWER: "<" * 7, BEFORE: "|" * 7, MINE: ">" * 7}
_CUT = "\n[cut here: the conflicts are longer than this report may be]\n"


async def conflict_report(git: Git, merge: Merge, subject: str) -> str:
    """What is in conflict when the change ``subject`` is written onto the newer state; at most 20,000 characters."""
    texts = await _read(git, [name for clash in merge.clashes[:_PATHS] for name in _wanted(merge, clash)])
    return await asyncio.to_thread(_composed, merge, subject, texts)


def _composed(merge: Merge, subject: str, texts: Mapping[bytes, bytes | int]) -> str:
    clashes = merge.clashes[:_PATHS]
    many = f"{len(merge.clashes)} files conflict" if len(merge.clashes) > 1 else "1 file conflicts"
    head = f"{many} with a newer state, onto which this change is written: {subject}\n"
    parts = [head]
    left = _LONGEST - len(head) - _REST
    for number, clash in enumerate(clashes):
        # A large conflict may use what the small ones before it left, not what those after it need.
        part = _shown("\n".join(_clash_lines(merge, clash, texts))[: _LONGEST + 1])
        share = left // (len(clashes) - number)
        part = part if len(part) <= share else part[: share - len(_CUT)] + _CUT
        parts.append(part)
        left -= len(part)
    if len(merge.clashes) > _PATHS:
        parts.append(f"\nand {len(merge.clashes) - _PATHS} more files\n")
    return "".join(parts)


def _wanted(merge: Merge, clash: Clash) -> Iterator[bytes]:
    yield _merged_name(merge, clash)
    yield from (side.name.encode() for side in clash.sides if side.kind != "submodule")


def _merged_name(merge: Merge, clash: Clash) -> bytes:
    return merge.tree.encode() + b":" + clash.path


async def _read(git: Git, names: Sequence[bytes]) -> dict[bytes, bytes | int]:
    """Contents by name; only the size of what is too large to show; nothing for what is no file."""
    answers = await git.run("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", "-z",
                            doing="read the conflicts", call=Call(stdin=_listed(names)))  # fmt: skip
    found: dict[bytes, bytes | int] = {}
    small: dict[bytes, str] = {}
    left = _READ_IN_ALL
    for name, line in zip(names, _answers(answers, names), strict=True):
        match = re.fullmatch(rb"([0-9a-f]+) blob (\d+)", line)
        size = int(match[2]) if match else 0
        if match and size <= min(left, _READ_BYTES):
            small[name] = match[1].decode()
            left -= size
        elif match:
            found[name] = size
    return found | await _contents(git, small)


def _answers(output: bytes, names: Sequence[bytes]) -> Iterator[bytes]:
    """One answer a name. That for a name which is not there repeats it, with whatever line ends it has."""
    for name in names:
        missing = name + b" missing\n"
        if output.startswith(missing):
            yield b""
            output = output[len(missing) :]
        else:
            line, _, output = output.partition(b"\n")
            yield line


async def _contents(git: Git, names: Mapping[bytes, str]) -> dict[bytes, bytes]:
    asked = [each.encode() for each in names.values()]
    output = await git.run("cat-file", "--batch=%(objectsize)", "-z", doing="read the conflicts",
                           call=Call(stdin=_listed(asked)))  # fmt: skip
    found = {}
    for name in names:
        size, _, output = output.partition(b"\n")
        found[name], output = output[: int(size)], output[int(size) + 1 :]
    return found


def _listed(names: Sequence[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


def _clash_lines(merge: Merge, clash: Clash, texts: Mapping[bytes, bytes | int]) -> Iterator[str]:
    yield f"\n{_one_line(clash.path.decode('utf-8', 'replace'))}"
    yield from (_one_line(_named(merge, message)) for message in clash.messages)
    merged = texts.get(_merged_name(merge, clash))
    start = _mark(merge, NEWER)
    if isinstance(merged, bytes) and b"\0" not in merged and f"\n{start}".encode() in b"\n" + merged:
        yield from _marked_lines(merge, merged.decode("utf-8", "replace").split("\n"))
    else:
        sides = {side.stage: side for side in clash.sides}
        for stage in (NEWER, BEFORE, MINE):
            yield f"{_MARKS[stage]} {_NAMES[stage]}" if stage != MINE else "======="
            yield from _side_lines(stage, sides, texts)
        yield f"{_MARKS[MINE]} {_NAMES[MINE]}"
    yield ""


def _mark(merge: Merge, stage: int) -> str:
    return f"{_MARKS[stage]} {merge.ends[0 if stage == NEWER else 1]}"


def _named(merge: Merge, text: str) -> str:
    for end, name in zip(merge.ends, (_NAMES[NEWER], _NAMES[MINE]), strict=True):
        text = text.replace(end, name)
    return _ASIDE.sub("", text).strip()


def _marked_lines(merge: Merge, lines: list[str]) -> Iterator[str]:
    """The marked parts and a few lines around them."""
    start, end = _mark(merge, NEWER), _mark(merge, MINE)
    shown: set[int] = set()
    inside = None
    for number, line in enumerate(lines):
        if line.startswith(start):
            inside = number
        elif line.startswith(end) and inside is not None:
            shown.update(range(max(0, inside - _AROUND), min(len(lines), number + _AROUND + 1)))
            inside = None
    last = -1
    for number in sorted(shown):
        if number != last + 1:
            yield "…"
        last = number
        yield _marker(merge, lines[number])
    if last + 1 < len(lines):
        yield "…"


def _marker(merge: Merge, line: str) -> str:
    for stage in (NEWER, MINE):
        if line.startswith(_mark(merge, stage)):
            return f"{_MARKS[stage]} {_NAMES[stage]}"
    return f"{_MARKS[BEFORE]} {_NAMES[BEFORE]}" if line.startswith(f"{_MARKS[BEFORE]} ") else _line(line)


def _side_lines(stage: int, sides: Mapping[int, Side], texts: Mapping[bytes, bytes | int]) -> Iterator[str]:
    """One version of a file that git could not mark: what it is and, as far as that is text, what it changed."""
    side = sides.get(stage)
    if side is None:
        yield "[not there]"
        return
    content = texts.get(side.name.encode())
    if side.kind == "submodule":
        yield f"[submodule at {side.name}]"
    elif not isinstance(content, bytes):
        yield f"[{side.kind}, {content or 'unknown'} bytes: too large to show]"
    elif side.kind == "symlink":
        yield f"[symlink to {_line(content.decode('utf-8', 'replace'))}]"
    elif b"\0" in content:
        yield f"[{side.kind}, {len(content)} bytes, no text]"
    else:
        yield f"[{side.kind}, {len(content)} bytes]"
        if stage != BEFORE:
            before = sides.get(BEFORE)
            old = texts.get(before.name.encode()) if before and before.kind in ("file", "executable") else None
            yield from _text_lines(content, old if isinstance(old, bytes) else None)


def _text_lines(content: bytes, old: bytes | None) -> Iterator[str]:
    lines = content.decode("utf-8", "replace").split("\n")
    before = (old or b"").decode("utf-8", "replace").split("\n")
    if old is not None and b"\0" not in old and len(lines) + len(before) <= _COMPARED_LINES:
        lines = list(difflib.unified_diff(before, lines, "before both", "after", lineterm=""))
    yield from (_line(line) for line in lines)


def _one_line(text: str) -> str:
    return _line(text.replace("\n", "\\n"))


def _line(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[:_LINE]}… [{len(text) - _LINE} more characters]"


def _shown(text: str) -> str:
    """Without what could steer a terminal or hide from a reader; a carriage return is shown as well."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)

"""What a person decides about, as lines for a terminal: facts and the real diff, never a model's claim about itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.cli.lines import plain
from adapters.cli.release.facts import release_lines
from domain.errors import BlobMissing, DigestMismatch, InvalidInput
from domain.money.usage import dollars
from domain.ports.blobs import Blobs
from domain.trace.asks import AskDetails

SEVERITIES = ("high", "medium", "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """``lines`` say what it is about; ``diff`` is the diff's text, "" where there is none. Both are printable."""

    lines: tuple[str, ...]
    diff: tuple[str, ...] = ()


async def read_packet(blobs: Blobs, ask: AskDetails) -> Packet:
    """The packet that ``ask`` names by its digest; where it cannot be read, a line says so."""
    document = await _document(blobs, ask.digest)
    lines = [plain(ask.sentence)]
    if document is None:
        return Packet(lines=(*lines, f"(its packet {ask.digest[:12]} cannot be read from here)"))
    lines += _plan(document) if ask.about == "plan" else _figures(document)
    lines += map(plain, release_lines(document)) if ask.about in ("release", "final", "watch") else ()
    lines += await _findings(blobs, document.get("findings"))
    tried = [item for item in document.get("tried", ()) if isinstance(item, Mapping)]
    for item in tried:
        lines += await _tried(blobs, item)
    digest = str(document.get("diff") or (tried[-1].get("diff", "") if tried else ""))
    return Packet(lines=tuple(lines), diff=await _text(blobs, digest))


def _plan(plan: Mapping[str, Any]) -> Iterator[str]:
    for task in plan.get("tasks", ()):
        after = f" (after {', '.join(map(plain, task['depends_on']))})" if task.get("depends_on") else ""
        yield f"{plain(task['id'])}: {plain(task['title'])}{after}"
        yield f"  {plain(task['instructions'])}"
        yield f"  files: {', '.join(map(plain, task['files'])) or 'none named'}"


def _figures(document: Mapping[str, Any]) -> Iterator[str]:
    gates = document.get("gates")
    if gates:
        yield f"tests: {', '.join(_verdict(gates))}"
    for lost in document.get("missing") or ():
        yield f"missing: {plain(lost['task'])}: {plain(lost['why'])}"
    spent = document.get("spent")
    if spent:
        open_ = sum(spent.get(name, 0) for name in ("held", "unknown", "written_off"))
        more = f", and up to {dollars(open_)} of calls without a bill" if open_ else ""
        yield f"cost so far: {dollars(spent.get('settled', 0))} in {spent.get('calls', 0)} calls{more}"
    if document.get("commit") and document.get("base"):
        yield f"commits: {plain(document['base'])[:12]}..{plain(document['commit'])[:12]}"


def _verdict(gates: Mapping[str, Any]) -> Iterator[str]:
    """Only what is known: a packet without a verdict does not say that the tests were green."""
    if "green" in gates:
        yield "green" if gates["green"] else "red"
    if gates.get("reason"):
        yield plain(gates["reason"])
    if gates.get("ran", -1) >= 0:  # -1: its runner cannot count
        yield f"{gates['ran']} ran"


async def _findings(blobs: Blobs, review: Any) -> list[str]:
    if not isinstance(review, Mapping) or "model" not in review:
        return []
    counts = ", ".join(f"{review.get(severity, 0)} {severity}" for severity in SEVERITIES)
    weak = ", which also wrote it: a weak review" if review.get("weak") else ""
    lines = [f"review by {plain(review['model'])}{weak}: {counts}"]
    if review.get("left"):
        lines.append(f"left by {plain(review.get('by', ''))}: {plain(review['left'])}")
    found = await _document(blobs, str(review.get("findings", "")))
    items = [item for item in (found or {}).get("findings", ()) if isinstance(item, Mapping)]
    for severity in SEVERITIES:
        lines += [_finding(item) for item in items if item.get("severity") == severity]
    return lines


def _finding(item: Mapping[str, Any]) -> str:
    line = f":{item['line']}" if item.get("line") else ""
    where = f"{plain(item.get('file', ''))}{line}"
    return f"  {plain(item.get('severity', ''))}  {where}  {plain(item.get('message', ''))}"


async def _tried(blobs: Blobs, item: Mapping[str, Any]) -> list[str]:
    model = f" by {plain(item['model'])}" if item.get("model") else ""
    lines = [f"attempt {plain(item.get('attempt', '?'))}{model}: {plain(item.get('outcome', ''))}"]
    report = await _text(blobs, str(item.get("report", "")))
    return lines + [f"  | {line.expandtabs(4)}" for line in report[-5:]]


async def _document(blobs: Blobs, digest: str) -> Mapping[str, Any] | None:
    text = await _bytes(blobs, digest)
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return None
    return value if isinstance(value, Mapping) else None


async def _text(blobs: Blobs, digest: str) -> tuple[str, ...]:
    """Its lines without control characters; tabs stay."""
    lines = (await _bytes(blobs, digest)).decode(errors="replace").split("\n")
    if not lines[-1]:
        lines.pop()
    return tuple("".join(c if c.isprintable() or c == "\t" else " " for c in line) for line in lines)


async def _bytes(blobs: Blobs, digest: str) -> bytes:
    if not digest:
        return b""
    try:
        return await blobs.get(digest)
    except (BlobMissing, DigestMismatch, InvalidInput):
        return b""

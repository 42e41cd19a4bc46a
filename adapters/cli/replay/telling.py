"""What came of a replay, for people and for scripts."""

from __future__ import annotations

import difflib
import json as jsonlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from adapters.cli.exits import BUILD_FAILED, DONE
from adapters.cli.lines import plain
from adapters.cli.session import put, say
from domain.build.prompt import Prompt
from domain.errors import MendworkError
from domain.money.usage import dollars

if TYPE_CHECKING:
    from adapters.cli.replay.record import Part
    from domain.ports.blobs import Blobs
    from domain.replay.facts import Compared, Difference

MOST_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was compared, what it cost (micro-dollars, 0 unless models were called), and the folder that was kept."""

    part: Part
    task: str
    compared: Compared
    live: bool
    cost: int = 0
    kept: str = ""

    @property
    def code(self) -> int:
        """Live, another answer is no error."""
        return DONE if self.live or self.compared.equal else BUILD_FAILED


async def tell(outcome: Outcome, *, json: bool, blobs: tuple[Blobs, Blobs]) -> int:
    """Print it; ``blobs`` are those of the record and those of now. Returns the exit code."""
    difference = outcome.compared.difference
    if json:
        put(jsonlib.dumps(_as_json(outcome)))
    else:
        for line in _lines(outcome):
            put(line)
    if difference is not None and not json:
        for line in await _beside(difference, blobs):
            say(f"  {plain(line)}")
    if outcome.kept:
        say(f"the scratch world is kept in {outcome.kept}")
    return outcome.code


def where_to_look(build: str, difference: Difference) -> str:
    """The command that shows the recorded side."""
    command = f"mendwork show {build}"
    contents = {"prompt": "prompt", "answer": "answer", "value": "answer", "diff": "diff", "commit": "diff"}
    if difference.task:
        command += f" --task {difference.task}" + (f" --attempt {difference.attempt}" if difference.attempt else "")
        wanted = "log" if difference.kind == "gates.ran" else contents.get(difference.what, "")
        return f"{command} --{wanted}" if wanted and difference.attempt else command
    if difference.kind == "call" and difference.step in ("plan", "review"):
        return f"{command} --phase {difference.step} --{contents.get(difference.what, 'prompt')}"
    return f"mendwork trace {build}"


def _lines(outcome: Outcome) -> Iterator[str]:
    part, difference = outcome.part, outcome.compared.difference
    name = f"{part.phase} of {part.build}" + (f", task {outcome.task}" if outcome.task else "")
    if difference is None:
        yield f"equal: {name}, {outcome.compared.facts} facts compared"
    else:
        yield f"differs: {name}: {_where(difference)}"
        yield f"  recorded  {plain(difference.recorded)[:300]}"
        yield f"  now       {plain(difference.now)[:300]}"
        if difference.sentence:
            yield f"  it says   {plain(difference.sentence)[:300]}"
        yield f"  look at   {where_to_look(part.build, difference)}"
    if outcome.live:
        yield f"  the models were called: {dollars(outcome.cost)}"


def _where(difference: Difference) -> str:
    task = f"task {difference.task}, " if difference.task else ""
    attempt = f"attempt {difference.attempt}, " if difference.attempt else ""
    step = f" {difference.step}" if difference.step else ""
    return f"{task}{attempt}{difference.kind}{step}: {difference.what}"


def _as_json(outcome: Outcome) -> dict[str, object]:
    difference = outcome.compared.difference
    told = None
    if difference is not None:
        told = asdict(difference) | {"look": where_to_look(outcome.part.build, difference)}
    return {
        "build": outcome.part.build,
        "phase": outcome.part.phase,
        "task": outcome.task,
        "equal": outcome.compared.equal,
        "facts": outcome.compared.facts,
        "difference": told,
        "live": outcome.live,
        "cost_micros": outcome.cost,
        "kept": outcome.kept,
    }


async def _beside(difference: Difference, blobs: tuple[Blobs, Blobs]) -> list[str]:
    """The first lines in which two texts differ, where both sides are digests of texts that are there."""
    texts = []
    for store, digest in zip(blobs, (difference.recorded, difference.now), strict=True):
        try:
            texts.append(_readable(await store.get(digest)))
        except (MendworkError, ValueError):
            return []
    lines = list(difflib.unified_diff(texts[0], texts[1], "recorded", "now", n=1, lineterm=""))
    left = len(lines) - MOST_LINES
    return lines[:MOST_LINES] + ([f"… and {left} more lines"] if left > 0 else [])


def _readable(content: bytes) -> list[str]:
    """A prompt as its messages, JSON with a line a field, anything else as it is."""
    try:
        value = jsonlib.loads(content)
    except ValueError:
        return content.decode(errors="replace").splitlines()
    if isinstance(value, dict) and "messages" in value and "template" in value:
        return "\n".join(message.content for message in Prompt.from_bytes(content).messages).splitlines()
    return jsonlib.dumps(value, indent=1, ensure_ascii=False, sort_keys=True).splitlines()

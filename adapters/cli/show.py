"""``mendwork show``: what a build did; a diff, a test log, a prompt, an answer, or what a person decides about."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.cli.status import details_of
from adapters.settings import Settings
from domain.build.prompt import Prompt
from domain.errors import InvalidInput, UnknownName
from domain.trace.calls import CallDetails
from domain.trace.parts import AttemptDetails, BuildDetails, TaskDetails

if TYPE_CHECKING:
    from domain.ports.blobs import Blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asked to see. ``attempt`` 0 means the last; ``phase`` (plan, review) names the build's own calls,
    for ``prompt`` and ``answer``; ``packet`` is an ask's id, or what its digest begins with."""

    build: str
    task: str = ""
    attempt: int = 0
    diff: bool = False
    log: bool = False
    json: bool = False
    phase: str = ""
    prompt: bool = False
    answer: bool = False
    packet: str = ""

    @property
    def contents(self) -> tuple[str, ...]:
        """The contents asked for, by name."""
        return tuple(name for name in ("diff", "log", "prompt", "answer", "packet") if getattr(self, name))


async def show(settings: Settings, wanted: Wanted) -> int:
    """Print it. Raises UnknownName, InvalidInput."""
    from adapters.cli.serving.stored import blobs_of
    from adapters.store import open_store

    _check(wanted)
    async with await open_store(settings.store_url) as store:
        details = await details_of(store, wanted.build)
    task = _task(details, wanted) if wanted.task else None
    attempt = _attempt(task, wanted) if task else None
    if wanted.contents:
        await _put_content(blobs_of(settings), details, wanted, attempt)
    elif wanted.json:
        put(jsonlib.dumps(asdict(attempt) if attempt else asdict(details)))
    else:
        _put_summary(details, wanted.task)
    return 0


def _check(wanted: Wanted) -> None:
    if wanted.attempt and not (wanted.task or wanted.phase):
        raise InvalidInput("--attempt needs --task or --phase")
    if len(wanted.contents) > 1:
        raise InvalidInput(f"--{' and --'.join(wanted.contents)} are different things: ask for one of them")
    if (wanted.prompt or wanted.answer) and bool(wanted.task) == bool(wanted.phase):
        raise InvalidInput("--prompt and --answer need --task TASK, or --phase plan or review")
    if wanted.phase and not (wanted.prompt or wanted.answer):
        raise InvalidInput("--phase needs --prompt or --answer")


def _task(details: BuildDetails, wanted: Wanted) -> TaskDetails:
    if wanted.task not in details.tasks:
        raise UnknownName.among("task", wanted.task, details.tasks)
    return details.tasks[wanted.task]


def _attempt(task: TaskDetails, wanted: Wanted) -> AttemptDetails | None:
    attempts = task.attempts
    if not wanted.attempt:
        return attempts[-1] if attempts else None
    if wanted.attempt > len(attempts):
        raise InvalidInput(f"task {wanted.task} has {len(attempts)} attempts, not {wanted.attempt}")
    return attempts[wanted.attempt - 1]


async def _put_content(blobs: Blobs, details: BuildDetails, wanted: Wanted, attempt: AttemptDetails | None) -> None:
    what = wanted.contents[0]
    digest = _digest(details, attempt, wanted)
    content = await blobs.get(digest) if digest else b""
    if not content:
        say(f"mendwork: {wanted.build} has no such {what} yet")
    text = _prompt_text(content) if content and wanted.prompt else content.decode(errors="replace")
    if wanted.packet and content:
        text = await _packet_text(blobs, content)
    if wanted.json:
        put(jsonlib.dumps({"build": wanted.build, what: text}))
    elif text:
        put(printable(text))


def printable(text: str) -> str:
    """Several lines, without whatever moves a cursor."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t").rstrip("\n")


def _digest(details: BuildDetails, attempt: AttemptDetails | None, wanted: Wanted) -> str:
    if wanted.packet:
        return _packet(details, wanted.packet)
    if wanted.prompt or wanted.answer:
        call = _call(details, attempt, wanted)
        return "" if call is None else call.prompt if wanted.prompt else call.answer
    if wanted.task:
        return "" if attempt is None else attempt.diff if wanted.diff else attempt.log
    return details.diff if wanted.diff else details.base_log


def _call(details: BuildDetails, attempt: AttemptDetails | None, wanted: Wanted) -> CallDetails | None:
    """The last one: what was sent back, or what another model was asked, came after it."""
    if wanted.task:
        calls = attempt.calls if attempt else []
    else:
        phases = sorted({call.phase for call in details.calls})
        if details.calls and wanted.phase not in phases:
            raise UnknownName.among("phase with calls of its own", wanted.phase, phases)
        calls = [c for c in details.calls if c.phase == wanted.phase and wanted.attempt in (0, c.attempt)]
    return calls[-1] if calls else None


def _packet(details: BuildDetails, named: str) -> str:
    for ask in reversed(details.asks.values()):
        if named == ask.id or (len(named) >= 8 and ask.digest.startswith(named.lower())):
            return ask.digest
    raise UnknownName.among("ask", named, details.asks)


def _prompt_text(content: bytes) -> str:
    return "\n\n".join(f"── {message.role} ──\n{message.content}" for message in Prompt.from_bytes(content).messages)


async def _packet_text(blobs: Blobs, content: bytes) -> str:
    """The packet as it was stored, and the diff that it names."""
    packet = jsonlib.loads(content)
    text = jsonlib.dumps(packet, indent=2, ensure_ascii=False)
    diff = packet.get("diff") if isinstance(packet, dict) else ""
    return f"{text}\n\n{(await blobs.get(diff)).decode(errors='replace')}" if diff else text


def _put_summary(details: BuildDetails, only: str) -> None:
    put(f"{details.build}  {details.status}  {plain(details.title)}")
    if details.parent:
        put(f"  goes on from {plain(details.parent)}")
    if details.branch:
        put(f"  branch {details.branch} at {details.commit[:12]}, from {details.base[:12]}")
    if details.sentence and details.status != "succeeded":
        put(f"  {plain(details.sentence)}")
    for fault in details.faults:
        put(f"  planning or review: {fault['kind']} from {plain(fault['source'])}: {plain(fault['sentence'])}")
    for task in details.tasks.values():
        if only in ("", task.task):
            put(f"  {task.task}  {task.status}  {plain(task.title)}")
            if task.sentence:
                put(f"    {plain(task.sentence)}")
            for attempt in task.attempts:
                _put_attempt(attempt)


def _put_attempt(attempt: AttemptDetails) -> None:
    commit = f"  {attempt.commit[:12]}" if attempt.commit else ""
    put(f"    #{attempt.number}  {attempt.phase}  {plain(attempt.model)}{commit}  {plain(attempt.reason)}".rstrip())
    for fault in attempt.faults:
        put(f"      {fault['kind']} from {plain(fault['source'])}: {plain(fault['sentence'])}")

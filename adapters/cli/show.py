"""``mendwork show``: what a build did, a diff, a test log."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict, dataclass

from adapters.cli.lines import plain
from adapters.cli.session import put, say
from adapters.cli.status import details_of
from adapters.settings import Settings
from domain.build.details import AttemptDetails, BuildDetails
from domain.errors import InvalidInput, UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asked to see; ``attempt`` 0 means the last."""

    build: str
    task: str
    attempt: int
    diff: bool
    log: bool
    json: bool


async def show(settings: Settings, wanted: Wanted) -> int:
    """Print it. Raises UnknownName, InvalidInput."""
    from adapters.blobs import open_blobs
    from adapters.store import open_store

    if wanted.attempt and not wanted.task:
        raise InvalidInput("--attempt needs --task")
    async with await open_store(settings.store_url) as store:
        details = await details_of(store, wanted.build)
    attempt = _attempt(details, wanted) if wanted.task else None
    if wanted.diff or wanted.log:
        digest = _digest(details, attempt, wanted)
        content = (await open_blobs(settings.state).get(digest)).decode(errors="replace") if digest else ""
        if not content:
            say(f"mendwork: {wanted.build} has no such {'diff' if wanted.diff else 'log'} yet")
        _put_content(content, wanted)
    elif wanted.json:
        put(jsonlib.dumps(asdict(attempt) if attempt else asdict(details)))
    else:
        _put_summary(details, wanted.task)
    return 0


def _attempt(details: BuildDetails, wanted: Wanted) -> AttemptDetails | None:
    if wanted.task not in details.tasks:
        raise UnknownName.among("task", wanted.task, details.tasks)
    attempts = details.tasks[wanted.task].attempts
    if not wanted.attempt:
        return attempts[-1] if attempts else None
    if wanted.attempt > len(attempts):
        raise InvalidInput(f"task {wanted.task} has {len(attempts)} attempts, not {wanted.attempt}")
    return attempts[wanted.attempt - 1]


def _digest(details: BuildDetails, attempt: AttemptDetails | None, wanted: Wanted) -> str:
    if wanted.task:
        return "" if attempt is None else attempt.diff if wanted.diff else attempt.log
    return details.diff if wanted.diff else details.base_log


def _put_content(content: str, wanted: Wanted) -> None:
    if wanted.json:
        put(jsonlib.dumps({"build": wanted.build, "diff" if wanted.diff else "log": content}))
    elif content:
        put("".join(c for c in content if c.isprintable() or c in "\n\t").rstrip("\n"))


def _put_summary(details: BuildDetails, only: str) -> None:
    put(f"{details.build}  {details.status}  {plain(details.title)}")
    if details.branch:
        put(f"  branch {details.branch} at {details.commit[:12]}, from {details.base[:12]}")
    if details.sentence and details.status != "succeeded":
        put(f"  {plain(details.sentence)}")
    for fault in details.faults:
        put(f"  planning: {fault['kind']} from {plain(fault['source'])}: {plain(fault['sentence'])}")
    for task in details.tasks.values():
        if only in ("", task.task):
            put(f"  {task.task}  {task.status}  {plain(task.title)}")
            for attempt in task.attempts:
                _put_attempt(attempt)


def _put_attempt(attempt: AttemptDetails) -> None:
    commit = f"  {attempt.commit[:12]}" if attempt.commit else ""
    put(f"    #{attempt.number}  {attempt.phase}  {plain(attempt.model)}{commit}  {plain(attempt.reason)}".rstrip())
    for fault in attempt.faults:
        put(f"      {fault['kind']} from {plain(fault['source'])}: {plain(fault['sentence'])}")

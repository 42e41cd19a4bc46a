"""The commands that decide: which ask is meant, what is sent, what a plan by hand has to be."""

from __future__ import annotations

import json as jsonlib
from dataclasses import dataclass
from typing import Any

from adapters.cli.decide.packet import read_packet
from adapters.cli.decide.saying import Said, tell
from adapters.cli.decide.terminal import is_terminal, page, read_line
from adapters.cli.decide.waiting import SHOWN_DIGITS, open_ask
from adapters.cli.exits import REFUSED
from adapters.cli.session import put, read_text, say
from adapters.cli.status import case_of, details_of
from adapters.settings import Settings
from domain.errors import InvalidInput, TooLarge
from domain.human.asks import DIGITS
from domain.trace.asks import AskDetails, opened

MAX_PLAN_BYTES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``choice`` is approve or reject; ``digest`` "" means the only approval that is open."""

    build: str
    choice: str
    digest: str
    reason: str
    by: str
    json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer to a question; ``ask`` "" means the only one that is open. Budgets in USD, 0 for unchanged."""

    build: str
    ask: str
    choice: str
    by: str
    json: bool
    hint: str = ""
    commit: str = ""
    task_budget: float = 0.0
    build_budget: float = 0.0
    attempts: int = 0


async def decide(settings: Settings, decision: Decision) -> int:
    """Approve or reject. Raises InvalidInput where the digest is missing, too short, or nobody can be asked for it."""
    digest = decision.digest.strip().lower()
    if digest and (len(digest) < DIGITS or set(digest) - set("0123456789abcdef")):
        raise InvalidInput(f"DIGEST: at least {DIGITS} hex digits, as `mendwork pending {decision.build}` shows them")
    to = await _addressee(settings, decision, digest) if digest else decision.build
    if not digest:
        to, digest = await _confirmed(settings, decision)
    if not digest:
        say("nothing was sent")
        return REFUSED
    words = {"digest": digest, "by": decision.by, "reason": decision.reason}
    return await tell(settings, Said(build=to, what=decision.choice, words=words), json=decision.json)


async def _addressee(settings: Settings, decision: Decision, digest: str) -> str:
    """Who asks for that digest: the build that is named, or the delivery of it."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        case = await case_of(store, decision.build)
        rows = [event for _, event in await store.events.read(case) if event.kind == "ask.opened"]
    asked = (opened(event) for event in reversed(rows))
    return next((ask.saga for ask in asked if ask.saga and ask.digest.startswith(digest)), decision.build)


async def _confirmed(settings: Settings, decision: Decision) -> tuple[str, str]:
    """Who asks for the only open approval, and its digest once a person has seen it and said yes, else ""."""
    from adapters.cli.serving.stored import blobs_of
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        ask = await open_ask(store, decision.build, kind="approval")
    if not is_terminal():
        command = f"mendwork {decision.choice} {decision.build} {ask.digest[:SHOWN_DIGITS]}"
        raise InvalidInput(f"DIGEST: without a terminal name what you {decision.choice}, as in `{command}`")
    packet = await read_packet(blobs_of(settings), ask)
    for line in packet.lines:
        say(f"  {line}")
    await page(packet.diff)
    typed = await read_line(
        f"{decision.choice} the {ask.about} {ask.digest[:SHOWN_DIGITS]} of {decision.build}? [y/N] "
    )
    return ask.saga or decision.build, ask.digest if (typed or "").lower() in ("y", "yes") else ""


async def reply(settings: Settings, given: Reply) -> int:
    """Answer a question. Raises InvalidInput where it is unclear which."""
    ask = await _asked(settings, given)
    if given.choice not in ask.choices:
        raise InvalidInput(f"{ask.id} can be answered by {', '.join(ask.choices)}, not by {given.choice[:40]!r}")
    if given.choice == "take" and not given.commit:
        raise InvalidInput("take needs --commit: a branch or a commit of the project's repository")
    if given.choice == "raise" and not (given.task_budget or given.build_budget or given.attempts):
        raise InvalidInput("raise needs --task-budget, --build-budget or --attempts")
    words: dict[str, Any] = {"ask": ask.id, "choice": given.choice, "by": given.by, "reason": given.hint}
    words |= {"commit": given.commit, "attempts": given.attempts}
    words |= {"task_budget": given.task_budget, "build_budget": given.build_budget}
    return await tell(settings, Said(build=ask.saga or given.build, what="answer", words=words), json=given.json)


async def _asked(settings: Settings, given: Reply) -> AskDetails:
    """The question that is meant; one that was closed meanwhile is for the build to rule on."""
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        known = (await details_of(store, given.build)).asks.get(given.ask)
        if known is not None and known.kind == "question":
            return known
        return await open_ask(store, given.build, kind="question", named=given.ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlan:
    """``file`` is a path, "-" for standard input, or "" to print the plan as it is now."""

    build: str
    file: str
    by: str
    json: bool


async def edit_plan(settings: Settings, given: NewPlan) -> int:
    """Replace the plan that waits for its approval. Raises InvalidInput with the first thing that is wrong with it."""
    if not given.file:
        return await _print_plan(settings, given.build)
    from adapters.schemas import open_schemas

    text = read_text(given.file, what="plan")
    if len(text.encode()) > MAX_PLAN_BYTES:
        raise TooLarge(f"the plan has {len(text.encode())} bytes, at most {MAX_PLAN_BYTES} are allowed")
    decoded = open_schemas().decode("Plan", text)
    if decoded.value is None or decoded.repaired:
        why = decoded.problems[0] if decoded.problems else "it is no JSON as it stands"
        raise InvalidInput(f"the plan {given.file} cannot be used: {why}")
    words = {"plan": jsonlib.loads(decoded.value), "by": given.by}
    return await tell(settings, Said(build=given.build, what="edit_plan", words=words), json=given.json)


async def _print_plan(settings: Settings, build: str) -> int:
    from adapters.cli.serving.stored import blobs_of
    from adapters.store import open_store

    async with await open_store(settings.store_url) as store:
        digest = (await details_of(store, build)).plan
    if not digest:
        raise InvalidInput(f"{build} has no plan yet")
    put(jsonlib.dumps(jsonlib.loads(await blobs_of(settings).get(digest)), indent=2))
    return 0

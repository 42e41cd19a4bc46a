"""The person whom the build waits for: somebody at the terminal, or the demo in their place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .checks import Promise
from .engine import Engine
from .processes import StageFailure
from .scene import git
from .story import Story

SHOWN_DIGITS = 12
BY = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about which packet; ``commit`` is the change that the packet shows."""

    yes: bool
    digest: str
    commit: str


def decide(engine: Engine, build: str, *, ask: bool) -> Decision:
    """Show what waits, and answer it: with ``ask`` whoever sits at the terminal does. Raises StageFailure."""
    waiting = _approval(engine, build)
    digest = str(waiting["digest"])
    engine.narrator.command(f"mendwork pending {build}")
    for line in engine.run("pending", build).splitlines():
        engine.narrator.quote("build", line)
    packet = _packet(engine, build, digest)
    if ask:
        engine.narrator.command(f"mendwork approve {build}")
        yes = engine.converse("approve", build) == 0
    else:
        engine.narrator.command(f"mendwork show {build} --packet {digest[:SHOWN_DIGITS]}")
        engine.narrator.diff(packet)
        engine.narrator.tell("Nobody is asked here: the demo answers, with the command that a person would type.")
        engine.narrator.command(f"mendwork approve {build} {digest[:SHOWN_DIGITS]}")
        engine.run("approve", build, digest[:SHOWN_DIGITS], "--by", BY)
        yes = True
    if not yes:
        engine.narrator.tell("Nothing was approved, so nothing is landed; the build is ended and undone.")
        engine.narrator.command(f"mendwork abort {build}")
        engine.run("abort", build, "--reason", "the change was not approved", "--by", BY)
    document, _ = json.JSONDecoder().raw_decode(packet)
    return Decision(yes=yes, digest=digest, commit=str(document["commit"]))


def decision_promises(engine: Engine, story: Story, decision: Decision, *, branch: str) -> list[Promise]:
    """What was approved is what the packet showed, and that commit is the landed one."""
    landed = git(engine.scene, "rev-parse", branch).strip()
    return [
        Promise(
            sentence=f"the approved digest {decision.digest[:SHOWN_DIGITS]} names the commit that was landed",
            holds=story.approved() == decision.digest and landed == decision.commit,
        )
    ]


def undone_promises(engine: Engine, base: str) -> list[Promise]:
    """After a no: the repository is as it was."""
    branches = git(engine.scene, "for-each-ref", "--format=%(refname:short)").split()
    untouched = git(engine.scene, "rev-parse", "HEAD").strip() == base and not git(
        engine.scene, "status", "--porcelain"
    )
    return [Promise(sentence="no branch was left in your repository", holds=branches == ["main"] and untouched)]


def _approval(engine: Engine, build: str) -> dict[str, Any]:
    asks: list[dict[str, Any]] = json.loads(engine.run("pending", build, "--json"))
    if [ask["about"] for ask in asks] != ["change"]:
        sentences = "; ".join(ask["sentence"] for ask in asks) or "nothing"
        raise StageFailure(f"the build waits for something else than the approval of its change: {sentences}")
    return asks[0]


def _packet(engine: Engine, build: str, digest: str) -> str:
    return engine.run("show", build, "--packet", digest)

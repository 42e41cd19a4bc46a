"""The person whom the build waits for: somebody at the terminal, or the demo in their place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.cli.release.facts import release_lines

from .checks import Promise
from .engine import Engine
from .processes import StageFailure
from .scene import git
from .story import Story

SHOWN_DIGITS = 12
BY = "demo"
QUESTIONS = {"change": "is this the change that was wanted?", "release": "may it go to production?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about which packet: ``about`` a "change" or a "release", ``commit`` is what the packet shows."""

    about: str
    yes: bool
    digest: str
    commit: str


def decide(engine: Engine, build: str, *, ask: bool, answered: Sequence[str] = ()) -> Decision | None:
    """Show what waits, and answer it: with ``ask`` whoever sits at the terminal does. None when nothing waits but what
    was ``answered`` a moment ago, by its digest. Raises StageFailure."""
    waiting = _approval(engine, build, answered)
    if waiting is None:
        return None
    engine.narrator.chapter(f"A person is asked: {QUESTIONS[waiting['about']]}")
    digest, about = str(waiting["digest"]), str(waiting["about"])
    engine.narrator.command(f"mendwork pending {build}")
    for line in engine.run("pending", build).splitlines():
        engine.narrator.quote("build", line)
    packet = _packet(engine, build, digest)
    if ask:
        engine.narrator.command(f"mendwork approve {build}")
        yes = engine.converse("approve", build) == 0
    else:
        engine.narrator.command(f"mendwork show {build} --packet {digest[:SHOWN_DIGITS]}")
        engine.narrator.diff(packet if about == "change" else "\n".join(_risk(packet)))
        engine.narrator.tell("Nobody is asked here: the demo answers, with the command that a person would type.")
        engine.narrator.command(f"mendwork approve {build} {digest[:SHOWN_DIGITS]}")
        engine.run("approve", build, digest[:SHOWN_DIGITS], "--by", BY)
        yes = True
    if not yes:
        nothing = "landed" if about == "change" else "led to production"
        engine.narrator.tell(f"Nothing was approved, so nothing is {nothing}; the build is ended and undone.")
        engine.narrator.command(f"mendwork abort {build}")
        engine.run("abort", build, "--reason", f"the {about} was not approved", "--by", BY)
    document, _ = json.JSONDecoder().raw_decode(packet)
    return Decision(about=about, yes=yes, digest=digest, commit=str(document["commit"]))


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


def _approval(engine: Engine, build: str, answered: Sequence[str]) -> dict[str, Any] | None:
    asks: list[dict[str, Any]] = json.loads(engine.run("pending", build, "--json"))
    asks = [ask for ask in asks if ask["digest"] not in answered or ask["about"] not in QUESTIONS]
    if not asks and answered:
        return None
    if len(asks) != 1 or asks[0]["about"] not in QUESTIONS:
        sentences = "; ".join(ask["sentence"] for ask in asks) or "nothing"
        raise StageFailure(f"the build waits for something else than an approval: {sentences}")
    return asks[0]


def _risk(packet: str) -> Iterator[str]:
    """Line by line, what the risk of a release is made of."""
    document, _ = json.JSONDecoder().raw_decode(packet)
    return release_lines(document)


def _packet(engine: Engine, build: str, digest: str) -> str:
    return engine.run("show", build, "--packet", digest)

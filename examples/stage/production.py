"""The demo's production: a service with users, what is delivered to it, and its end; looked at from outside."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from .checks import Promise
from .engine import Build, Engine
from .person import BY, SHOWN_DIGITS, Decision
from .processes import StageFailure, alive, family, listeners, sockets
from .traffic import Traffic, around, count, faults, fetch, served

PROJECT = "notes"
SWITCHED = "production is switched from"
GONE_SECONDS = 10.0
CAUGHT_SECONDS = 45.0


class Production:
    """What serves, and who uses it. It outlives Mendwork, so that whoever starts it here has to ``close`` it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._traffic: Traffic | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it was ended."""
        return self._closed

    @property
    def traffic(self) -> Traffic:
        """Its users."""
        if self._traffic is None:
            raise StageFailure("nobody uses production yet")
        return self._traffic

    def open(self, first: Build) -> None:
        """As soon as ``first``, a delivery, has led traffic to its release, users come. Raises StageFailure."""
        while not first.has_told(SWITCHED):
            if first.over:
                raise StageFailure(f"the first delivery ended with {first.program.code}: {first.program.said()}")
            time.sleep(0.05)
        (site,) = [site for site in self._target()["sites"] if site["environment"] == "production"]
        self._traffic = Traffic(site["url"])
        self._engine.narrator.tell(f"Its users come now, 50 requests a second at {site['url']}, and stay to the end.")

    def line(self) -> str:
        """What is to be seen there now; "" before its users came."""
        return self._traffic.line() if self._traffic is not None else ""

    def note(self, title: str) -> None:
        """A user writes a note with a tag."""
        body = json.dumps({"title": title, "tags": ["demo"]}).encode()
        request = urllib.request.Request(f"{self.traffic.url}/notes", data=body, method="POST")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=15):
                self._engine.narrator.tell(f"A user writes a note, tagged demo: {title}")
        except OSError as error:
            raise StageFailure(f"production takes no note: {error}") from error

    def promoted_promises(self, number: int, decision: Decision) -> list[Promise]:
        """Release ``number`` serves with the new feature, nobody noticed, and the record knows who agreed."""
        answers = self.traffic.answers
        span, all_of_them = served(answers, number), count(answers)
        near = count(answers, around(span[0])) if span else None
        status, release, body = fetch(self.traffic.url, "/tags")
        return [
            Promise(
                sentence=f"production answers with release {number}, and GET /tags is there",
                holds=(status, release) == (200, number) and b"items" in body,
            ),
            Promise(
                sentence=f"{near} in the two seconds before and after the switch to release {number}",
                holds=near is not None and near.asked > 0 and not near.failed,
            ),
            Promise(
                sentence=f"{all_of_them} from the first user to now {faults(answers)}".rstrip(),
                holds=not all_of_them.failed,
            ),
            self._agreed(number, decision),
        ]

    def rolled_back_promises(self, bad: int, good: int, decision: Decision, *, title: str) -> list[Promise]:
        """The bad release is gone by itself, the old one answers with all it had, and the lane is frozen."""
        answers, record = self.traffic.answers, self._release(bad)
        verdict = record["record"].get("watch", {}).get("kind", "")
        span = served(answers, bad)
        _, release, body = fetch(self.traffic.url, "/notes?tag=demo")
        own = count(answers, lambda each: each.release == bad)
        elsewhere = count(answers, lambda each: each.release != bad)
        seconds = span[1] - span[0] if span else 0.0
        caught = Promise(
            sentence=f"the watch caught release {bad} and took it back by itself: it had {seconds:.0f} s of traffic",
            holds=(record["status"], verdict) == ("rolled back", "fail") and 0 < seconds < CAUGHT_SECONDS,
        )
        return [
            caught,
            Promise(
                sentence=f"release {good} answers again, and the note that was written to it is there",
                holds=release == good and title.encode() in body,
            ),
            *self._unnoticed(bad, span),
            Promise(
                sentence=f"in all {elsewhere}, apart from the bad release's own answers: of those {own.failed} of "
                f"{own.asked} failed {faults(answers, without=bad)}".rstrip(),
                holds=not elsewhere.failed and own.failed > 0,
            ),
            self._agreed(bad, decision),
        ]

    def untouched_promises(self, number: int) -> list[Promise]:
        """After a no to a release."""
        failed = count(self.traffic.answers)
        release = fetch(self.traffic.url, "/version")[1]
        holds = release == number and not failed.failed
        return [Promise(sentence=f"production still answers with release {number}; {failed}", holds=holds)]

    def freeze_promises(self) -> Iterator[Promise]:
        """The lane is frozen, until a person says that it is not: both are looked at."""
        frozen = self._frozen()
        yield Promise(sentence="the lane is frozen: nothing more is delivered until a person has looked", holds=frozen)
        command = ("lane", PROJECT, "--acknowledge", "--reason", "places leak on errors", "--by", BY)
        self._engine.narrator.command(f"mendwork lane {PROJECT} --acknowledge --reason 'places leak on errors'")
        self._engine.run(*command)
        yield Promise(sentence="acknowledged, it is free again", holds=frozen and not self._frozen())

    def reach_promise(self) -> Promise:
        """Nothing of Mendwork and of production can be reached from elsewhere."""
        pids = family({os.getpid(), self._target()["supervisor"]})
        ours = sockets(pids)
        found = [(port, local) for inode, port, local in listeners() if inode in ours]
        where = f"{len(found)} sockets of {len(pids)} processes listen, all on loopback"
        return Promise(sentence=where, holds=bool(found) and all(local for _, local in found))

    def close(self) -> list[Promise]:
        """Users go, and everything that serves ends. Once; what is found afterwards is said."""
        if self._closed:
            return []
        self._closed = True
        url = self._traffic.url if self._traffic is not None else ""
        if self._traffic is not None:
            self._traffic.stop()
        pids = family({self._target()["supervisor"]} - {0})
        self._engine.narrator.command("mendwork target stop")
        self._engine.run("target", "stop")
        until = time.monotonic() + GONE_SECONDS
        while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
            time.sleep(0.05)
        still = ", ".join(map(str, left))
        return [
            Promise(
                sentence=f"the {len(pids)} processes of production are gone {still}".rstrip(),
                holds=not left and not (url and _answers(url)),
            )
        ]

    def _unnoticed(self, bad: int, span: tuple[float, float] | None) -> Iterator[Promise]:
        names = (f"to release {bad}", "back")
        for name, moment in zip(names, span or (0.0, 0.0), strict=True):
            others = [each for each in self.traffic.answers if each.release != bad]
            found = count(others, around(moment))
            sentence = f"at the switch {name} {found} that release {bad} did not answer itself"
            yield Promise(sentence=sentence, holds=span is not None and found.asked > 0 and not found.failed)

    def _agreed(self, number: int, decision: Decision) -> Promise:
        """Of the release's record: what was approved, by whom."""
        approved = [each for each in self._release(number)["record"]["approved"] if each["what"] == "release"]
        by = ", ".join(str(each["by"]) for each in approved)
        holds = bool(by) and [each["digest"] for each in approved] == [decision.digest]
        digest = decision.digest[:SHOWN_DIGITS]
        return Promise(sentence=f"the record of release {number} says that {by} approved {digest}", holds=holds)

    def _release(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._engine.run("release", "show", str(number), "--json"))
        return found

    def _target(self) -> dict[str, Any]:
        seen: dict[str, Any] = json.loads(self._engine.run("target", "status", "--json"))
        return seen

    def _frozen(self) -> bool:
        return bool(json.loads(self._engine.run("lane", PROJECT, "--json"))["frozen"])


def _answers(url: str) -> bool:
    try:
        fetch(url, "/version", patience=2)
    except OSError:
        return False
    return True

"""The users of the demo's service: a steady load on its site, every answer counted by the release that gave it."""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

RATE = 50.0
"""Requests a second."""
USERS = 40
PATIENCE_SECONDS = 15.0
AROUND_SECONDS = 2.0
NOBODY = 0
"""The release of an answer that came from none: refused, cut off, or answered by the proxy itself."""

PATHS = (("/notes", 200), ("/version", 200), ("/notes?q=milk", 200), ("/notes?limit=1", 200), ("/notes/gone", 404))
"""What is asked in turn, and the status that is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``at`` is when it came, in seconds of the monotonic clock; ``fault`` is empty when it was right."""

    at: float
    release: int
    fault: str


def fetch(url: str, path: str, *, patience: float = PATIENCE_SECONDS) -> tuple[int, int, bytes]:
    """GET ``path`` on a connection of its own: status, the release that answered, body. Raises OSError."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=patience)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        release = response.headers.get("X-Mendwork-Release", "")
        return response.status, int(release) if release.isdigit() else NOBODY, response.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{type(error).__name__}") from error
    finally:
        connection.close()


class Traffic:
    """``RATE`` requests a second to ``url`` by ``USERS`` at most at a time, from the beginning to ``stop``."""

    def __init__(self, url: str, *, rate: float = RATE) -> None:
        self.url = url
        self._rate = rate
        self._numbers = itertools.count()
        self._answers: list[Answer] = []
        self._over = threading.Event()
        self._began = time.monotonic()
        self._users = [threading.Thread(target=self._use, daemon=True) for _ in range(USERS)]
        for user in self._users:
            user.start()

    def stop(self) -> None:
        """No more requests; those under way are waited for."""
        self._over.set()
        for user in self._users:
            user.join(PATIENCE_SECONDS)

    @property
    def answers(self) -> Sequence[Answer]:
        """All so far, in the order in which they came."""
        return tuple(self._answers)

    def line(self) -> str:
        """How it goes, for somebody who looks on."""
        answers = self.answers
        failed = sum(bool(each.fault) for each in answers)
        release = answers[-1].release if answers else NOBODY
        who = f"release {release} answers" if release else "nobody answers"
        return f"users: {len(answers)} requests at {self._rate:.0f}/s, {failed} failed; {who}"

    def _use(self) -> None:
        while True:
            number = next(self._numbers)
            due = self._began + number / self._rate
            if self._over.wait(max(due - time.monotonic(), 0)):
                return
            path, right = PATHS[number % len(PATHS)]
            self._answers.append(self._ask(path, right))

    def _ask(self, path: str, right: int) -> Answer:
        release, fault = NOBODY, ""
        try:
            status, release, _ = fetch(self.url, path)
            if status != right or not release:
                fault = str(status)
        except OSError as error:
            fault = type(error).__name__
        return Answer(at=time.monotonic(), release=release, fault=fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """So many requests, so many of them failed."""

    asked: int
    failed: int

    def __str__(self) -> str:
        return f"{self.failed} of {self.asked} requests failed"


def count(answers: Sequence[Answer], of: Callable[[Answer], bool] = lambda _: True) -> Count:
    """Of those answers."""
    chosen = [each for each in answers if of(each)]
    return Count(asked=len(chosen), failed=sum(bool(each.fault) for each in chosen))


def around(moment: float) -> Callable[[Answer], bool]:
    """Whether an answer came near that moment."""
    return lambda each: abs(each.at - moment) <= AROUND_SECONDS


def served(answers: Sequence[Answer], release: int) -> tuple[float, float] | None:
    """When that release answered first and last; None when it never did."""
    times = [each.at for each in answers if each.release == release]
    return (min(times), max(times)) if times else None


def faults(answers: Sequence[Answer], without: int = -1) -> str:
    """Which faults, of whom; "" when there were none. Those of the release ``without`` do not count."""
    found = Counter((each.release, each.fault) for each in answers if each.fault and each.release != without)
    return ", ".join(f"{fault} by {release or 'nobody'}: {times}" for (release, fault), times in found.most_common(5))

"""How many connections to PostgreSQL a process holds, and how patient it is; told by the store's URL."""

from __future__ import annotations

from dataclasses import dataclass
from re import fullmatch

from sqlalchemy import URL

from domain.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """``postgresql://user@host/name?pool_size=5&pool_overflow=5&pool_timeout=10&pool_recycle=1800``

    Of each process: ``size`` connections stay open, ``overflow`` more are opened under load and closed after use.
    Who finds all of them in use waits ``timeout`` seconds; then it is StoreUnavailable, and Temporal tries again. One
    older than ``recycle`` seconds is replaced when it is next used. Every one is asked for a sign of life before use.

    A host of workers has two such processes (saga, model), and each that follows a build one connection more, to
    listen. So the server's ``max_connections`` has to be above 20 for each host, and 11 for each follower.
    """

    size: int = 5
    overflow: int = 5
    timeout: int = 10
    recycle: int = 1800


_LEAST = {"pool_size": 1, "pool_overflow": 0, "pool_timeout": 1, "pool_recycle": 1}
_MOST = 100_000


def pool_of(url: URL) -> tuple[URL, Pool]:
    """The URL without the pool's settings, which libpq would refuse, and those settings. Raises InvalidInput."""
    given = {name: value for name, value in url.query.items() if name.startswith("pool_")}
    if not given:
        return url, Pool()
    unknown = sorted(given.keys() - _LEAST.keys())
    if unknown:
        raise InvalidInput(
            f"store: unknown setting {unknown[0][:40]!r} of its pool; known: {', '.join(sorted(_LEAST))}"
        )
    numbers = {name.removeprefix("pool_"): _number(name, value) for name, value in given.items()}
    return url.difference_update_query(list(given)), Pool(**numbers)


def _number(name: str, value: str | tuple[str, ...]) -> int:
    least = _LEAST[name]
    number = int(value) if isinstance(value, str) and fullmatch(r"[0-9]{1,6}", value) else -1
    if not least <= number <= _MOST:
        raise InvalidInput(f"store: {name} is a whole number from {least} to {_MOST}, given once")
    return number

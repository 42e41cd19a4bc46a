"""The checker of deliveries finds what it is there for: sound deliveries, spoiled in one way after the other."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.ports.releases import Release
from tests.canaries import check_secrets
from tests.chaos.delivery.spoils import BREACHED, OTHER, PROMOTED, SPOILED, Spoil
from tests.chaos.delivery.stage import SECRET, SHOP, ShopStage
from tests.chaos.delivery.telling import telling
from tests.delivered import Observed
from tests.delivery_invariants import check_deliveries, check_stopped
from tests.e2e.shops import Shop
from tests.e2e.workshop import DEV
from tests.invariants import check_invariants

pytestmark = pytest.mark.timeout(300)  # three deliveries on a Mendwork of their own


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """One release promoted and one rolled back of one shop, one promoted of another; all of it still runs."""
    at, other = ShopStage(tmp_path_factory.mktemp("sound") / "w"), Shop(name=OTHER)
    other.make(at.root)
    with at.serving(DEV, extra=other.section()):
        asyncio.run(_deliver(at))
        for case in (PROMOTED, BREACHED, f"deliver-{OTHER}-1"):
            check_invariants(at, case)
        yield check_deliveries(at)


async def _deliver(at: ShopStage) -> None:
    async with telling(at) as teller:
        beside = await teller.begin(1, "main", project=OTHER)
        await teller.ended(await teller.begin(1, "main"))
        await teller.ended(await teller.begin(2, "bad"))
        await teller.ended(beside)


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_it_sees_deliveries(spoil: Spoil, sound: Observed) -> None:
    check = SPOILED[spoil]
    check(sound)
    with pytest.raises(AssertionError):
        check(spoil(sound))


PLACES = {
    "a worker's log": Path(".mendwork/logs/worker-deploy.log"),
    "a blob": Path(".mendwork/blobs/spoiled"),
    "the folder of a release": Path(f".mendwork/target/{SHOP}/production/1/release/spoiled"),
    "another project's order": Path(f".mendwork/target/{OTHER}/production/1/order.json"),
    "the event log": Path(".mendwork/mendwork.db-spoiled"),
}


@pytest.mark.parametrize("spelling", [str.encode, lambda value: base64.b64encode(f"x{value}".encode())])
@pytest.mark.parametrize("place", PLACES)
def test_it_sees_a_secret_in_a_file(place: str, spelling: Callable[[str], bytes], sound: Observed) -> None:
    path = sound.at.root / PLACES[place]
    before = path.read_bytes() if path.exists() else None
    try:
        with path.open("ab") as file:
            file.write(spelling(sound.at.environment[SECRET]))
        with pytest.raises(AssertionError, match=SECRET):
            check_secrets(sound)
    finally:
        path.unlink() if before is None else path.write_bytes(before)


@contextmanager
def orphan(words: Sequence[str], *, environment: Mapping[str, str], folder: Path) -> Iterator[None]:
    """A process that nobody here has started, as far as /proc tells."""
    command = [sys.executable, "-c", "import time; time.sleep(60)", *words]
    script = 'setsid "$@" >/dev/null 2>&1 & echo $!'
    started = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        env=dict(environment),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    try:
        yield
    finally:
        os.kill(int(started.stdout), signal.SIGKILL)


@pytest.mark.parametrize("where", ["words", "environment"])
def test_it_sees_a_secret_in_a_process(where: str, sound: Observed) -> None:
    value, path = sound.at.environment[SECRET], {"PATH": os.environ["PATH"]}
    words, environment = ((value,), path) if where == "words" else ((), {**path, "X": value})
    with orphan(words, environment=environment, folder=Path("/")), pytest.raises(AssertionError, match=SECRET):
        check_secrets(sound)


def test_it_sees_what_runs_of_a_stopped_target(sound: Observed) -> None:
    with pytest.raises(AssertionError):
        check_stopped(sound.at, seconds=0.3)


def test_releases_of_the_sound_shops_are_what_the_spoils_take_them_for(sound: Observed) -> None:
    ends: dict[str, Release] = {release.saga: release for release in sound.releases}
    assert {saga: release.status for saga, release in ends.items()} == {
        PROMOTED: "promoted",
        BREACHED: "rolled back",
        f"deliver-{OTHER}-1": "promoted",
    }

"""Fifty calls at once on one dollar, their callers killed at twenty points: never is more billed than is counted."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from adapters.models.scripted.bill import BillLine, read_bill
from adapters.models.scripted.server import ScriptedServer
from adapters.store import open_store
from domain.money.accounts import build_account
from domain.money.budget import Spent
from domain.ports.store import Store
from tests.chaos.money_callers import ATTEMPTS, BUILD, CALLERS, LIMIT, PRICE
from tests.postgres import running_cluster

ROOT = Path(__file__).parents[2]
ACCOUNT = build_account(BUILD)
KILLS = 20
SEED = 20_261_120
FAULTS = ("rate_limited", "server_error", "cut", "empty", "slow")
PATIENCE_SECONDS = 170
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty store of each kind that several processes share."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'mendwork.db'}"
        return
    with running_cluster() as cluster:
        yield cluster.create()


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Every third attempt plays a fault first; an answer costs nearly as much as it could."""
    entries: list[dict[str, Any]] = []
    for attempt in range(1, ATTEMPTS + 1):
        faults = [{"kind": FAULTS[attempt // 3 % len(FAULTS)], "seconds": 0.05}] if attempt % 3 == 0 else []
        answer = {"summary": "done", "operations": []}
        usage = {"input_tokens": 1000, "output_tokens": 4900}
        entries.append({"role": "Change", "attempt": attempt, "answer": answer, "usage": usage, "faults": faults})
    (tmp_path / "answers.yaml").write_text(yaml.safe_dump(entries))
    return tmp_path / "answers.yaml"


@dataclass(slots=True)
class Callers:
    """Forks callers, and knows which live."""

    url: str
    base_url: str
    folder: Path
    parent: subprocess.Popen[str] = field(init=False)
    pids: dict[int, int] = field(default_factory=dict)

    def __enter__(self) -> Self:
        argv = [sys.executable, "-P", "-m", "tests.chaos.money_callers", self.url, self.base_url, str(self.folder)]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **OFFLINE}
        self.parent = subprocess.Popen(
            argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        for caller in range(CALLERS):
            self.fork(caller)
        return self

    def __exit__(self, *error: object) -> None:
        os.killpg(self.parent.pid, signal.SIGKILL)
        self.parent.communicate()

    def fork(self, caller: int) -> None:
        assert self.parent.stdin
        assert self.parent.stdout
        self.parent.stdin.write(f"{caller}\n")
        self.parent.stdin.flush()
        self.pids[caller] = int(self.parent.stdout.readline())

    def kill(self, caller: int) -> None:
        """kill -9, and another one takes its work up."""
        os.kill(self.pids[caller], signal.SIGKILL)
        self.fork(caller)

    def living(self) -> list[int]:
        """Those that still call. One that died by itself is an error of its own."""
        gone = [caller for caller, pid in self.pids.items() if not Path(f"/proc/{pid}").exists()]
        done = [caller for caller in self.pids if (self.folder / f"done-{caller}").exists()]
        assert set(gone) <= set(done)
        return [caller for caller in self.pids if caller not in done]


@dataclass(slots=True)
class Sampler:
    """Reads what is settled, then the provider's bill, then what is counted: in this order the sums must ascend."""

    store: Store
    bill: Path
    samples: int = 0

    async def sample(self) -> Spent:
        settled = (await self.store.ledger.spent(ACCOUNT)).settled
        billed = self.billed()
        spent = await self.store.ledger.spent(ACCOUNT)
        assert settled <= billed <= spent.used <= LIMIT
        self.samples += 1
        return spent

    def billed(self) -> int:
        return sum(map(cost_of, read_bill(self.bill)))


def cost_of(line: BillLine) -> int:
    return PRICE.cost(input_tokens=line.input_tokens, output_tokens=line.output_tokens)


def by_call(amounts: Iterable[tuple[str, int]]) -> Counter[str]:
    """Their sums; ``<=`` between two of them holds for every call."""
    sums = Counter[str]()
    for key, micros in amounts:
        sums[key] += micros
    return sums


async def spend_and_kill(callers: Callers, sampler: Sampler) -> int:
    """Sample until the money is used up; a caller dies whenever the next of the points in the spending is reached."""
    chance = random.Random(SEED)
    points = sorted(chance.randrange(LIMIT * 2 // 100, LIMIT * 85 // 100) for _ in range(KILLS))
    until, killed = time.monotonic() + PATIENCE_SECONDS, 0
    while living := callers.living():
        assert time.monotonic() < until, f"{sampler.samples} samples, {killed} kills, {living} still call"
        spent = await sampler.sample()
        if killed < KILLS and spent.used >= points[killed]:
            await asyncio.to_thread(callers.kill, chance.choice(living))
            killed += 1
        await asyncio.sleep(0.02)  # the callers share these two cores
    return killed


@pytest.mark.timeout(PATIENCE_SECONDS + 30)  # a few seconds where nobody else wants these cores
async def test_no_budget_is_overdrawn_whoever_dies(url: str, answers: Path, tmp_path: Path) -> None:
    bill, folder = tmp_path / "bill.jsonl", tmp_path / "blobs"
    folder.mkdir()
    async with await open_store(url) as store:
        sampler = Sampler(store, bill)
        with ScriptedServer(answers, bill) as server, Callers(url, server.base_url, folder) as callers:
            killed = await spend_and_kill(callers, sampler)
        spent = await sampler.sample()
        calls = await store.calls.tries(BUILD)

    assert killed == KILLS
    assert sampler.samples > 100
    states = Counter(call.state for call in calls)
    assert states["answered"] > 50
    assert states["unknown"] > KILLS, "what was in flight when its caller died is not free"
    assert (states["running"], spent.held) == (0, 0)
    most = max(call.charge.bound for call in calls)
    assert LIMIT - most < spent.lasting <= LIMIT, "it is a hard stop, and not a cent before"
    assert spent == sum((call.charge.counted for call in calls), start=Spent())
    billed = by_call((line.key, cost_of(line)) for line in read_bill(bill))
    assert by_call((call.key, call.charge.settled) for call in calls) <= billed
    assert billed <= by_call((call.key, call.charge.counted.used) for call in calls), "each call for itself"

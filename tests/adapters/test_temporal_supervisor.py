"""Worker processes are kept alive, see only their own secrets, and end with us."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.temporal.environment import WORKERS, worker_environment
from adapters.temporal.supervisor import (
    FIRST_DELAY,
    HEALTHY_AFTER,
    LONGEST_DELAY,
    Program,
    Supervisor,
    count_death,
    restart_delay,
)
from tests.adapters.temporal_probes import environment_of, eventually, gone

WAITS = "import signal; signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
HAS_CHILD = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True); import signal; signal.pause()"


class Kept:
    """A running supervisor and everything that it said."""

    def __init__(self, *programs: Program) -> None:
        self.lines: list[str] = []
        self.changes: list[Mapping[str, int]] = []
        self.supervisor = Supervisor(programs, say=self.lines.append, changed=self.changes.append)

    @asynccontextmanager
    async def running(self, *, grace: float = 10.0) -> AsyncIterator[Kept]:
        task = asyncio.create_task(self.supervisor.run())
        try:
            await eventually(lambda: bool(self.supervisor.pids) or task.done())
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self.supervisor.stop(grace=grace)


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Program]:
    def make(code: str, *, name: str = "w", environment: Mapping[str, str] | None = None) -> Program:
        return Program(
            name=name,
            argv=(sys.executable, "-I", "-S", "-c", code),
            environment=environment or {},
            log=tmp_path / "logs" / f"{name}.log",
            folder=tmp_path,
        )

    return make


async def test_a_killed_worker_comes_back_and_people_are_told(program: Callable[..., Program]) -> None:
    async with Kept(program(WAITS, name="model"), program(WAITS, name="saga")).running() as kept:
        await eventually(lambda: len(kept.supervisor.pids) == 2)
        first = kept.supervisor.pids
        os.kill(first["model"], signal.SIGKILL)
        await eventually(lambda: kept.supervisor.pids.get("model", first["model"]) != first["model"])
        assert kept.supervisor.pids["saga"] == first["saga"]
        assert "worker model ended (signal 9)" in kept.lines[0]
        assert "model.log" in kept.lines[0]
        assert kept.lines[1] == f"worker model runs again, pid {kept.supervisor.pids['model']}"
        assert kept.changes[-1] == kept.supervisor.pids
        last = kept.supervisor.pids
    assert all(gone(pid) for pid in last.values())
    assert kept.changes[-1] == {}


async def test_one_that_keeps_dying_is_started_later_and_later(program: Callable[..., Program]) -> None:
    async with Kept(program("raise SystemExit('broken on purpose')")).running() as kept:
        await eventually(lambda: sum("ended" in line for line in kept.lines) == 3)
    deaths = [line for line in kept.lines if "ended" in line]
    assert [line.partition("again in ")[2].partition(";")[0] for line in deaths] == ["0.5 s", "1 s", "2 s"]
    assert "exit code 1" in deaths[0]


async def test_the_log_keeps_what_a_worker_said(program: Callable[..., Program]) -> None:
    kept_program = program("raise SystemExit('broken on purpose')")
    async with Kept(kept_program).running() as kept:
        await eventually(lambda: bool(kept.lines))
    assert "broken on purpose" in kept_program.log.read_text()


async def test_a_worker_deaf_to_sigterm_is_killed_after_the_grace(program: Callable[..., Program]) -> None:
    deaf = program(STUBBORN)
    async with Kept(deaf).running(grace=0.3) as kept:
        pid = kept.supervisor.pids["w"]
        await eventually(lambda: deaf.log.exists() and "deaf" in deaf.log.read_text())
    assert gone(pid)


async def test_what_a_killed_worker_had_started_goes_with_it(program: Callable[..., Program]) -> None:
    parent = program(HAS_CHILD)
    async with Kept(parent).running() as kept:
        await eventually(lambda: parent.log.exists() and parent.log.read_text().strip() != "")
        child = int(parent.log.read_text().split()[0])
        assert not gone(child)
        os.kill(kept.supervisor.pids["w"], signal.SIGKILL)
        await eventually(lambda: gone(child))


async def test_workers_die_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SUPERVISOR, str(tmp_path), STUBBORN, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    worker = int(await process.stdout.readline())
    await eventually(lambda: "deaf" in (tmp_path / "log").read_text())
    assert not gone(worker)
    process.kill()
    await process.wait()
    await eventually(lambda: gone(worker))


_SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from adapters.temporal.supervisor import Program, Supervisor

folder = Path(sys.argv[1])
program = Program(name="w", argv=(sys.executable, "-c", sys.argv[2]), environment={}, log=folder / "log", folder=folder)
said = lambda pids: [print(pid, flush=True) for pid in pids.values()]
asyncio.run(Supervisor([program], say=print, changed=said).run())
"""


class TestBackOff:
    @given(st.integers(min_value=1, max_value=10_000))
    def test_delays_start_small_never_shrink_and_stay_bounded(self, deaths: int) -> None:
        assert FIRST_DELAY <= restart_delay(deaths) <= restart_delay(deaths + 1) <= LONGEST_DELAY

    def test_the_longest_is_reached(self) -> None:
        assert [restart_delay(n) for n in (1, 2, 3, 7)] == [0.5, 1, 2, LONGEST_DELAY]

    @given(st.integers(min_value=0, max_value=1000), st.floats(min_value=0, max_value=1e6))
    def test_a_healthy_life_forgives_earlier_deaths(self, deaths: int, lived: float) -> None:
        assert count_death(deaths, lived=lived) == (1 if lived >= HEALTHY_AFTER else deaths + 1)


class TestEnvironment:
    SECRETS = ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_LLM_TOKEN", "MENDWORK_LLM_API_KEY", "https_proxy")
    SHARED = ("PATH", "HOME", "LC_ALL", "SSL_CERT_FILE", "MENDWORK_CONFIG", "TEMPORAL_API_KEY", "PYTHONWARNINGS")
    NOBODYS = ("GH_TOKEN", "HCLOUD_TOKEN", "SSH_AUTH_SOCK", "DATABASE_PASSWORD", "LD_PRELOAD")

    @pytest.mark.parametrize("worker", WORKERS)
    def test_provider_keys_reach_only_the_model_worker(self, worker: str) -> None:
        everything = dict.fromkeys((*self.SECRETS, *self.SHARED, *self.NOBODYS), "canary")
        seen = set(worker_environment(worker, everything, key_names={"MY_LLM_TOKEN"}))
        own = {"model": self.SECRETS, "sandbox": ("https_proxy",)}.get(worker, ())
        assert seen - {"NO_PROXY", "no_proxy"} == {*self.SHARED, *own}

    def test_a_proxy_with_a_password_is_not_for_the_worker_that_runs_what_models_write(self) -> None:
        proxies = {"HTTPS_PROXY": "http://ann:canary@proxy:3128", "HTTP_PROXY": "http://proxy:3128"}
        seen = worker_environment("sandbox", proxies)
        assert set(seen) - {"NO_PROXY", "no_proxy"} == {"HTTP_PROXY"}
        assert set(proxies) <= set(worker_environment("model", proxies))

    @given(st.dictionaries(st.text(), st.text()), st.sampled_from(WORKERS))
    def test_it_never_invents_a_variable(self, environment: dict[str, str], worker: str) -> None:
        got = worker_environment(worker, environment).items()
        assert {name for name, _ in got - environment.items()} <= {"NO_PROXY", "no_proxy"}

    def test_a_model_on_this_machine_is_reached_past_the_proxy(self) -> None:
        proxied = worker_environment("model", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "intern"})
        assert proxied["NO_PROXY"] == proxied["no_proxy"] == "intern,127.0.0.1,localhost,::1"
        assert "NO_PROXY" not in worker_environment("saga", {"HTTPS_PROXY": "http://proxy:3128"})
        assert "NO_PROXY" not in worker_environment("model", {"OPENAI_API_KEY": "k"})

    async def test_a_process_really_has_only_its_own(self, program: Callable[..., Program]) -> None:
        ours = {"OPENAI_API_KEY": "canary-key", "PATH": os.environ["PATH"]}
        programs = [program(WAITS, name=name, environment=worker_environment(name, ours)) for name in WORKERS]
        async with Kept(*programs).running() as kept:
            await eventually(lambda: len(kept.supervisor.pids) == len(WORKERS))
            holders = {name for name, pid in kept.supervisor.pids.items() if "canary-key" in str(environment_of(pid))}
        assert holders == {"model"}

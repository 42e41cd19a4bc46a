"""What every sandbox must do. Subclass with the fixtures ``sandbox`` and ``toolchain``; see also ``hostile``."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import pytest

from domain.errors import InvalidInput, TooLarge
from domain.ports.sandbox import Sandbox, SandboxResult, SandboxRun

PYTHON = os.path.realpath(sys.executable)
MEGABYTE = 1_000_000
_ENDLESS = "import time; print('up', flush=True); time.sleep(60)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended, and all that it printed."""

    result: SandboxResult
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A folder with a file in it, and runs of Python programs there with small limits."""

    sandbox: Sandbox
    template: SandboxRun
    mark: str = field(default_factory=lambda: f"mark-{uuid4().hex}")

    async def run(self, *argv: str, **limits: object) -> Outcome:
        """Run ``argv``; ``limits`` are fields of SandboxRun."""
        run = replace(self.template, argv=argv, **limits)  # type: ignore[arg-type]
        result = await self.sandbox.run(run)
        return Outcome(result=result, log=run.log.read_text(errors="replace"))

    async def python(self, source: str, **limits: object) -> Outcome:
        """Run a program; its processes bear ``mark`` in their command line."""
        return await self.run(PYTHON, "-c", source, self.mark, **limits)

    def needs(self, isolation: str) -> None:
        """A machine that cannot limit something declares it, and cannot show the limit."""
        if isolation in self.template.allow_missing:
            pytest.xfail(f"declared missing: {self.sandbox.missing()[isolation]}")

    def has_printed(self) -> bool:
        """Whether the command itself is running, and not only what starts it."""
        return self.template.log.exists() and self.template.log.stat().st_size > 0

    def alive(self) -> list[str]:
        """The command lines of every process on this machine that bears the mark."""
        return [line for line in _command_lines() if self.mark in line]


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            yield (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


async def until(condition: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Wait for a condition of another process. Raises AssertionError when it does not come."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "the condition did not come"
        await asyncio.sleep(0.01)


class Benched:
    """The fixtures of both suites."""

    @pytest.fixture
    def toolchain(self) -> tuple[Path, ...]:
        """What the tests' own Python needs; a subclass says how its sandbox finds that out."""
        raise NotImplementedError

    @pytest.fixture
    def bench(self, sandbox: Sandbox, toolchain: tuple[Path, ...], tmp_path: Path) -> Bench:
        folder = tmp_path / "checkout"
        folder.mkdir()
        (folder / "kept.txt").write_text("as it was")
        template = SandboxRun(
            label=f"test-{uuid4().hex}",
            argv=(),
            folder=folder,
            log=tmp_path / "run.log",
            toolchain=toolchain,
            seconds=20.0,
            memory_bytes=200 * MEGABYTE,
            processes=48,
            log_bytes=100_000,
            scratch_bytes=20 * MEGABYTE,
            allow_missing=frozenset(sandbox.missing()) - {"engine"},
        )
        return Bench(sandbox=sandbox, template=template)


class SandboxCompliance(Benched):
    """Orderly runs, and the ends that the caller or a clock makes."""

    async def test_both_streams_are_logged_and_the_exit_code_comes_back(self, bench: Bench) -> None:
        outcome = await bench.run("sh", "-c", "echo out; echo err >&2; exit 3")
        assert (outcome.result.exit_code, outcome.result.ended, outcome.log) == (3, "exited", "out\nerr\n")
        assert outcome.result.seconds > 0
        assert not outcome.result.log_cut

    async def test_a_command_killed_by_a_signal_gives_a_shells_code(self, bench: Bench) -> None:
        outcome = await bench.run("sh", "-c", "kill -SEGV $$")
        assert (outcome.result.exit_code, outcome.result.ended) == (139, "exited")

    async def test_a_command_that_does_not_exist_gives_a_shells_code(self, bench: Bench) -> None:
        assert (await bench.run("no-such-command")).result.exit_code == 127

    async def test_words_reach_the_command_as_they_are(self, bench: Bench) -> None:
        words = ("", "a b", "$(id)", "'\"\n", "--", "-x", "ü")
        outcome = await bench.run(PYTHON, "-c", "import sys; print(sys.argv[1:])", *words)
        assert outcome.log.strip() == str(list(words))

    async def test_the_folder_is_shown_as_it_is(self, bench: Bench) -> None:
        folder = bench.template.folder
        (folder / "sub").mkdir()
        (folder / "sub" / "tool").write_text("#!/bin/sh\necho tool ran in $(pwd)\n")
        (folder / "sub" / "tool").chmod(0o755)
        (folder / ".hidden").symlink_to("kept.txt")
        outcome = await bench.run("sh", "-c", "cat .hidden; echo; sub/tool; test -x kept.txt || echo no program")
        assert outcome.log == "as it was\ntool ran in /work\nno program\n"

    async def test_what_a_run_writes_does_not_reach_the_folder(self, bench: Bench) -> None:
        outcome = await bench.run("sh", "-c", "echo new > kept.txt && echo x > more.txt && ls && cat kept.txt")
        assert outcome.log == "kept.txt\nmore.txt\nnew\n"
        assert [path.name for path in bench.template.folder.iterdir()] == ["kept.txt"]
        assert (bench.template.folder / "kept.txt").read_text() == "as it was"

    async def test_only_the_given_environment_is_there(self, bench: Bench) -> None:
        outcome = await bench.run("env", environment={"GIVEN": "a value"})
        names = {line.partition("=")[0] for line in outcome.log.splitlines()}
        assert names == {"GIVEN", "HOME", "LANG", "PATH", "PWD", "TMPDIR"}
        assert "GIVEN=a value" in outcome.log

    async def test_home_and_temporary_files_can_be_written(self, bench: Bench) -> None:
        outcome = await bench.python(
            "import pathlib, tempfile; tempfile.mkdtemp(); (pathlib.Path.home() / 'x').touch()"
        )
        assert outcome.result.exit_code == 0, outcome.log

    async def test_a_server_of_the_run_itself_can_be_reached_as_localhost(self, bench: Bench) -> None:
        outcome = await bench.python(
            "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
            "socket.create_connection(('localhost', s.getsockname()[1])); print('reached')"
        )
        assert outcome.log == "reached\n"

    async def test_there_is_no_input_and_no_terminal(self, bench: Bench) -> None:
        outcome = await bench.python(
            "import os, sys; print(repr(sys.stdin.read()), flush=True); os.open('/dev/tty', os.O_RDWR)"
        )
        assert outcome.log.startswith("''\n")
        assert "OSError" in outcome.log

    async def test_a_run_ends_at_its_time_also_when_it_ignores_every_signal(self, bench: Bench) -> None:
        source = "import signal, time\nfor s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)"
        outcome = await bench.python(source, seconds=0.7)
        assert (outcome.result.exit_code, outcome.result.ended) == (137, "timeout")
        assert outcome.result.seconds < 5
        assert bench.alive() == []

    async def test_what_a_run_leaves_in_the_background_dies_with_it(self, bench: Bench) -> None:
        source = (
            "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
            "    print('daemon', flush=True); time.sleep(60)\n  os._exit(0)\nos.wait(); time.sleep(0.2)"
        )
        outcome = await bench.python(source)
        assert (outcome.result.exit_code, outcome.result.ended, outcome.log) == (0, "exited", "daemon\n")
        assert outcome.result.seconds < 10
        assert bench.alive() == []

    @pytest.mark.parametrize("when", ["starting", "running"])
    async def test_cancelling_kills_everything_before_it_returns(self, bench: Bench, when: str) -> None:
        task = asyncio.create_task(bench.python(_ENDLESS))
        await until(bench.alive if when == "starting" else bench.has_printed)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bench.alive() == []

    async def test_a_new_run_of_a_label_ends_the_one_that_is_still_there(self, bench: Bench) -> None:
        first = asyncio.create_task(bench.python(_ENDLESS))
        await until(bench.has_printed)
        log = bench.template.log.with_name("second.log")
        second = await bench.run("sh", "-c", "echo second", log=log)
        assert second.log == "second\n"
        assert bench.alive() == []
        ended = (await first).result
        assert (ended.exit_code, ended.ended) == (137, "exited")

    async def test_runs_of_different_labels_go_on_side_by_side(self, bench: Bench) -> None:
        logs = [bench.template.log.with_name(f"{n}.log") for n in range(3)]
        runs = [bench.run("sh", "-c", f"echo {n}", label=f"{bench.mark}-{n}", log=log) for n, log in enumerate(logs)]
        assert [outcome.log for outcome in await asyncio.gather(*runs)] == ["0\n", "1\n", "2\n"]

    async def test_a_folder_that_does_not_fit_is_refused(self, bench: Bench) -> None:
        (bench.template.folder / "large").write_bytes(bytes(3 * MEGABYTE))
        with pytest.raises(TooLarge):
            await bench.run("true", scratch_bytes=2 * MEGABYTE)

    async def test_what_cannot_be_run_is_refused(self, bench: Bench) -> None:
        for wrong in ({"argv": ()}, {"argv": ("a\0b",)}, {"folder": bench.template.folder / "none"}):
            with pytest.raises(InvalidInput):
                await bench.sandbox.run(replace(bench.template, **{"argv": ("true",), **wrong}))  # type: ignore[arg-type]

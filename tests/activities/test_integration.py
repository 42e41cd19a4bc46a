"""Integration tests reach staging's port and nothing else, and prove nothing of a staging that is not there."""

from __future__ import annotations

import asyncio
import socket
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.delivery.integration import (
    Integration,
    RunIntegrationInput,
    look,
    loopback_port,
)
from activities.gates import GateReport, Gates, RunGatesInput
from adapters.compliance.delivery.sandbox_ways import free_port, serving
from adapters.compliance.sandbox import until
from domain.delivery.project import Delivery
from domain.errors import InvalidInput, IsolationMissing
from domain.kpi.probe import Probe
from tests.activities.sandboxed import Shop, opened
from tests.activities.test_artifacts import Open

ROOT = Path(__file__).parents[2]
HEAD = """
import os, unittest, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor

URL = os.environ["MENDWORK_TARGET_URL"]

def get(path):
    with urllib.request.urlopen(URL + path, timeout=20) as answer:
        return answer.read().decode()

class T(unittest.TestCase):
"""


class _Service(BaseHTTPRequestHandler):
    """Answers everything; "/die" is its last answer, "/sick" makes it answer 503 from then on."""

    sick = False

    def do_GET(self) -> None:
        if self.path == "/sick":
            self.server.sick = True  # type: ignore[attr-defined]
        body = f"you asked for {self.path}".encode()
        self.send_response(503 if getattr(self.server, "sick", False) else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.path == "/die":
            self.wfile.flush()
            self.server.socket.close()  # type: ignore[attr-defined]
            threading.Thread(target=self.server.shutdown).start()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def staging() -> Iterator[Any]:
    with serving(_Service) as server:
        yield server


def checked(root: Path, *tests: str) -> Shop:
    """A project whose integration tests are methods of one class."""
    source = HEAD + textwrap.indent("\n".join(textwrap.dedent(test) for test in tests), "    ")
    run = ("python3", "-m", "unittest", "-v", "test_it")
    return opened(root, Delivery(target="local", run=("true",), integration=run), files={"test_it.py": source})


async def run(shop: Shop, port: int, *, allow_missing: tuple[str, ...] = ()) -> GateReport:
    integration = Integration(engine=shop.engine, workspaces=shop.workspaces, blobs=shop.blobs, bench=shop.bench)
    request = RunIntegrationInput(
        label=shop.label,
        project="calc",
        commit="c",
        url=f"http://127.0.0.1:{port}",
        allow_missing=(*shop.missing, *allow_missing),
    )
    report = await ActivityEnvironment().run(integration.run_integration, request)
    assert isinstance(report, GateReport)
    return report


# A worker that dies while its run sleeps.
KILLED = """
import asyncio
from dataclasses import replace
from pathlib import Path
from domain.delivery.project import Delivery
from tests.activities.sandboxed import opened
from tests.activities.test_integration import run

delivery = Delivery(target="local", run=("true",), integration=("sleep", "60"))
shop = opened(Path({path!r}), delivery, files={{}})
asyncio.run(run(replace(shop, label={label!r}), {port}))
"""
ASKS = """
def test_asks(self):
    self.assertEqual(get("/hello"), "you asked for /hello")
"""


async def test_tests_that_pass_against_staging_are_green(tmp_path: Path, staging: Any) -> None:
    shop = checked(tmp_path, ASKS)
    report = await run(shop, staging.server_port)
    assert (report.green, report.reason, report.ran, report.report) == (True, "1 test passed", 1, "")
    assert b"test_asks" in await shop.blobs.get(report.log)
    assert shop.left() == []


async def test_tests_that_fail_are_red_with_what_matters(tmp_path: Path, staging: Any) -> None:
    shop = checked(tmp_path, ASKS, "def test_wrong(self): self.assertEqual(get('/x'), 'other')")
    report = await run(shop, staging.server_port)
    assert (report.green, report.reason, report.ran) == (False, "1 of 2 tests failed", 2)
    assert b"AssertionError" in await shop.blobs.get(report.report)


async def test_fifty_requests_at_once_are_all_answered(tmp_path: Path, staging: Any) -> None:
    shop = checked(
        tmp_path,
        """
        def test_many(self):
            with ThreadPoolExecutor(50) as threads:
                answers = set(threads.map(get, [f"/{n}" for n in range(50)]))
            self.assertEqual(answers, {f"you asked for /{n}" for n in range(50)})
        """,
    )
    assert (await run(shop, staging.server_port)).green


async def test_another_port_of_this_machine_cannot_be_reached(tmp_path: Path, staging: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        shop = checked(
            tmp_path,
            ASKS,
            f"""
            def test_other(self):
                import socket
                for host in ("127.0.0.1", "localhost", "0.0.0.0", "169.254.169.254"):
                    with self.assertRaises(OSError):
                        socket.create_connection((host, {other.getsockname()[1]}), timeout=2)
            """,
        )
        report = await run(shop, staging.server_port)
    assert (report.green, report.ran) == (True, 2)


async def test_a_staging_that_dies_in_the_middle_is_red_and_named(tmp_path: Path, staging: Any) -> None:
    shop = checked(
        tmp_path, "def test_dies(self):\n    get('/die')\n    with self.assertRaises(OSError): get('/after')"
    )
    report = await run(shop, staging.server_port)
    assert not report.green
    assert report.reason.startswith("staging does not serve any more after the tests (GET /: ConnectionRefusedError)")


async def test_a_staging_whose_proxy_answers_for_it_is_red_and_named(tmp_path: Path, staging: Any) -> None:
    shop = checked(tmp_path, "def test_sick(self):\n    with self.assertRaises(urllib.error.HTTPError): get('/sick')")
    report = await run(shop, staging.server_port)
    assert (report.green, report.reason) == (
        False,
        "staging does not serve any more after the tests (GET /: 503); 1 test passed",
    )


async def test_a_staging_that_was_never_there_is_red(tmp_path: Path) -> None:
    report = await run(checked(tmp_path, ASKS), free_port())
    assert not report.green
    assert "ConnectionRefusedError" in report.reason


async def test_tests_that_never_ask_staging_prove_nothing(tmp_path: Path, staging: Any) -> None:
    report = await run(checked(tmp_path, "def test_nothing(self): pass"), staging.server_port)
    assert not report.green
    assert "never asked staging" in report.reason


async def test_cancellation_kills_the_run_and_closes_the_socket(tmp_path: Path, staging: Any) -> None:
    shop = checked(tmp_path, "def test_long(self):\n    get('/up')\n    import time; time.sleep(60)")
    task = asyncio.create_task(run(shop, staging.server_port))
    await until(lambda: any(folder.joinpath("outlet").exists() for folder in shop.left()), seconds=20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shop.left() == []


async def test_what_a_killed_worker_left_goes_with_the_next_run(tmp_path: Path, staging: Any) -> None:
    shop = checked(tmp_path, ASKS)
    (tmp_path / "run").mkdir()
    source = KILLED.format(path=str(tmp_path / "run"), label=shop.label, port=staging.server_port)
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", source, cwd=ROOT)
    left = replace(shop, bench=replace(shop.bench, folder=tmp_path / "run" / "work"))
    await until(lambda: any(folder.joinpath("outlet").exists() for folder in left.left()), seconds=30)
    worker.kill()
    await worker.wait()
    assert [path.name for folder in left.left() for path in folder.glob("outlet")] == ["outlet"]
    assert (await run(left, staging.server_port)).green
    assert left.left() == []


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1:8080",
        "http://example.org:80",
        "https://127.0.0.1:8443",
        "http://127.0.0.1",
        "http://127.0.0.1@evil:80",
        "http://user@127.0.0.1:8080",
        "http://127.0.0.1:99999",
        "http://[::1:80",
        "unix:/run/x",
        "",
    ],
)
def test_an_address_that_is_not_loopbacks_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="nothing else"):
        loopback_port(url)


def test_a_loopback_address_is_taken() -> None:
    assert loopback_port("http://127.0.0.1:8123/") == loopback_port("http://localhost:8123") == 8123


def test_a_service_that_answers_its_health_check_well_is_there(staging: Any) -> None:
    assert look(staging.server_port, Probe(path="/ok", contains="/ok")) == ""
    assert look(staging.server_port, Probe(path="/ok", contains="no")) == "GET /ok: without 'no'"
    assert look(staging.server_port, Probe(path="/ok", status=204)) == "GET /ok: 200"
    assert look(staging.server_port, Probe(path="/ü\n")).startswith("GET /ü\n: ")


async def test_a_project_without_integration_tests_is_refused(tmp_path: Path) -> None:
    shop = opened(tmp_path, Delivery(target="local", run=("true",)), files={})
    with pytest.raises(InvalidInput, match="no integration tests"):
        await run(shop, 8123)


async def test_no_run_of_a_project_with_a_target_may_have_an_open_network(tmp_path: Path) -> None:
    with_target = Delivery(target="local", run=("true",), integration=("true",))
    shop = opened(tmp_path, with_target, files={}, sandbox=Open())
    with pytest.raises(IsolationMissing):
        await run(shop, 8123, allow_missing=("network",))
    gates = Gates(engine=shop.engine, workspaces=shop.workspaces, blobs=shop.blobs, bench=shop.bench)
    request = RunGatesInput(label=shop.label, project="calc", commit="c", allow_missing=("network",))
    with pytest.raises(IsolationMissing):
        await ActivityEnvironment().run(gates.run_gates, request)


async def test_a_project_without_a_target_may_do_without_a_closed_network(tmp_path: Path) -> None:
    shop = opened(tmp_path, None, files={}, sandbox=Open())
    gates = Gates(engine=shop.engine, workspaces=shop.workspaces, blobs=shop.blobs, bench=shop.bench)
    request = RunGatesInput(label=shop.label, project="calc", commit="c", allow_missing=("network",))
    with pytest.raises(AssertionError, match="open network"):
        await ActivityEnvironment().run(gates.run_gates, request)

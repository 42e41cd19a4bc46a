"""What a set-up needs of a sandbox: hosts by name, folders that are shown, one folder that is kept. Subclass as the
others."""

from __future__ import annotations

import contextlib
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from adapters.compliance.delivery.sandbox_ways import serving
from adapters.compliance.hostile import ATTEMPTS, NETWORK, Listening
from adapters.compliance.sandbox import Bench, Benched, Outcome
from domain.errors import InvalidInput, MendworkError
from domain.ports.sandbox import Egress, Outlet

# Asks for each of its arguments by the usual means of a program: the variables that name a proxy.
ASK = """
import sys, urllib.request
for url in sys.argv[2:]:
    try:
        print(url, urllib.request.urlopen(url, timeout=20).read().decode())
    except OSError as error:
        print(url, "refused", getattr(error, "code", ""), str(error)[:60])
"""


class Registry(BaseHTTPRequestHandler):
    """Answers with its own words."""

    def do_GET(self) -> None:
        body = f"package {self.path} for {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class ShownCompliance(Benched):
    """``mounts``, ``programs``, ``kept``."""

    async def test_a_folder_is_shown_at_its_place_instead_of_the_checkouts(self, bench: Bench, tmp_path: Path) -> None:
        kept = tmp_path / "shown"
        (kept / "bin").mkdir(parents=True)
        (kept / "bin" / "tool").write_text("#!/bin/sh\necho the tool\n")
        (kept / "bin" / "tool").chmod(0o755)
        (bench.template.folder / "deps").mkdir()
        (bench.template.folder / "deps" / "theirs").write_text("x")
        outcome = await bench.run("sh", "-c", "tool; ls deps; pwd", mounts={"deps": kept}, programs=("deps/bin",))
        assert outcome.log.splitlines()[0] == "the tool"
        assert outcome.log.splitlines()[1:2] == ["bin"]

    async def test_what_is_shown_cannot_be_written(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "shown").mkdir()
        (tmp_path / "shown").chmod(0o777)
        script = "touch a/deps/x || echo refused; mkdir a/free && echo free"
        outcome = await bench.run("sh", "-c", script, mounts={"a/deps": tmp_path / "shown"})
        assert outcome.log.splitlines()[-2:] == ["refused", "free"]
        assert list((tmp_path / "shown").iterdir()) == []

    async def test_a_kept_folder_holds_what_the_run_left_and_the_tar_that_it_was_given(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "file").write_text("from the tar")
        (tmp_path / "in" / "set").write_text("#!/bin/sh\n")
        (tmp_path / "in" / "set").chmod(0o6755)
        with tarfile.open(tmp_path / "tar", "w") as tar:
            tar.add(tmp_path / "in", ".")
        kept = tmp_path / "kept"
        kept.mkdir()
        outcome = await bench.run("sh", "-c", "echo more > more", folder=tmp_path / "tar", kept=kept)
        assert outcome.result.exit_code == 0, outcome.log
        assert (kept / "file").read_text() == "from the tar"
        assert (kept / "more").read_text() == "more\n"
        assert (kept / "set").stat().st_mode & 0o7777 == 0o755

    @pytest.mark.parametrize("member", ["../out", "/tmp/out", "link/out"])  # noqa: S108
    async def test_nothing_of_a_tar_lands_outside_of_what_is_kept(
        self, bench: Bench, tmp_path: Path, member: str
    ) -> None:
        kept, outside = tmp_path / "kept", tmp_path / "outside"
        kept.mkdir()
        outside.mkdir()
        outside.chmod(0o777)
        with tarfile.open(tmp_path / "tar", "w") as tar:
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, str(outside)
            tar.addfile(link)
            tar.addfile(tarfile.TarInfo(member))
        with contextlib.suppress(MendworkError):  # a refusal is as good
            await bench.run("true", folder=tmp_path / "tar", kept=kept)
        assert list(outside.iterdir()) == []
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("place", ["", ".", "..", "/deps", "a/../b", "a//b"])
    async def test_a_place_outside_of_the_checkout_is_refused(self, bench: Bench, tmp_path: Path, place: str) -> None:
        with pytest.raises(InvalidInput):
            await bench.run("true", mounts={place: tmp_path})


class EgressCompliance(Benched, Listening):
    """Hosts by name. Only for sandboxes that isolate the network."""

    @pytest.fixture
    def registry(self) -> Iterator[int]:
        """The port of a stand-in on this machine's loopback."""
        with serving(Registry) as server:
            yield server.server_port

    async def ask(self, bench: Bench, hosts: tuple[str, ...], *urls: str) -> Outcome:
        """What a run gets for ``urls``."""
        egress = Egress(hosts=hosts, socket=bench.template.log.with_name("egress"))
        outcome = await bench.run("python3", "-c", ASK, bench.mark, *urls, egress=egress)
        assert not egress.socket.exists()
        return outcome

    async def test_a_named_host_is_reached(self, bench: Bench, registry: int) -> None:
        outcome = await self.ask(bench, (f"localhost:{registry}",), f"http://localhost:{registry}/x?y=1")
        assert outcome.log == f"http://localhost:{registry}/x?y=1 package /x?y=1 for localhost:{registry}\n"
        assert outcome.result.refused_hosts == ()

    async def test_another_host_is_refused_and_named(self, bench: Bench, registry: int) -> None:
        urls = ("https://example.org/", f"http://localhost:{registry + 1}/", f"http://127.1:{registry}/")
        outcome = await self.ask(bench, (f"localhost:{registry}",), *urls, "http://example.org:81/")
        assert outcome.log.count("refused") == 4
        assert outcome.result.refused_hosts == tuple(
            sorted((f"localhost:{registry + 1}", f"127.1:{registry}", "example.org:443", "example.org:81"))
        )

    async def test_a_name_of_this_machine_is_refused_unless_it_is_named_with_its_port(self, bench: Bench) -> None:
        outcome = await self.ask(bench, ("localhost",), "https://localhost/", "https://localhost:443/x")
        assert outcome.result.refused_hosts in ((), ("localhost:443",))  # it may be asked inside, where nobody is
        assert [line.split()[1] for line in outcome.log.splitlines()] == ["refused", "refused"]

    async def test_nothing_else_can_be_reached(self, bench: Bench, registry: int, listening: dict[str, str]) -> None:
        egress = Egress(hosts=(f"localhost:{registry}",), socket=bench.template.log.with_name("egress"))
        outcome = await bench.python(ATTEMPTS + NETWORK, environment=listening, egress=egress)
        *attempts, interfaces = outcome.log.splitlines()
        assert [line for line in attempts if " shut " not in line] == []
        assert interfaces == "[(1, 'lo')]"

    async def test_certificates_are_shown_and_named(self, bench: Bench) -> None:
        egress = Egress(hosts=("example.org",), socket=bench.template.log.with_name("egress"))
        names = '"$SSL_CERT_FILE" "$PIP_CERT" "$NODE_EXTRA_CA_CERTS" "$GIT_SSL_CAINFO"'
        script = f'for f in {names}; do grep -c BEGIN "$f"; done'
        counts = (await bench.run("sh", "-c", script, egress=egress)).log.split()
        assert len(counts) == 4
        assert all(int(count) > 0 for count in counts)

    async def test_without_it_no_proxy_is_named_and_no_host_is_found(self, bench: Bench) -> None:
        outcome = await bench.run("sh", "-c", "env | grep -i proxy; getent hosts example.org; echo end")
        assert outcome.log == "end\n"

    async def test_both_ways_out_work_side_by_side(self, bench: Bench, registry: int) -> None:
        egress = Egress(hosts=(f"localhost:{registry}",), socket=bench.template.log.with_name("egress"))
        outlet = Outlet(port=registry, socket=bench.template.log.with_name("outlet"))
        urls = (f"http://127.0.0.1:{registry}/a", f"http://localhost:{registry}/b")
        outcome = await bench.run("python3", "-c", ASK, bench.mark, *urls, egress=egress, outlet=outlet)
        assert outcome.log.count("package /") == 2
        assert outcome.result.reached == 1

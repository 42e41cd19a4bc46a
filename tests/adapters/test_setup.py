"""The set-up on a bare machine: what it finds, fetches, adds and says."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from setup import pins
from setup.certificates import certificate_file
from setup.console import CHECKOUT, SetupError
from setup.go import Go, go_version
from setup.index import PUBLIC, Index, index_url
from setup.programs import FOR_TESTS, Built, ensure_programs, find_program
from setup.python import uv_environment
from setup.server import _adopt
from setup.system import BUBBLEWRAP, FOR_BUILDS, HAPROXY, Need, ensure_system

WHEEL = "uv-1.0-py3-none-any+x.whl"
CONTENT = b"the wheel"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def a_program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class TestIndex:
    def serve(self, server: HTTPServer, page: str, kind: str) -> Index:
        server.expect_request("/simple/uv/").respond_with_data(page, content_type=kind)
        server.expect_request(f"/files/{WHEEL}").respond_with_data(CONTENT)
        return Index(server.url_for("/simple/"), certificates=None)

    @pytest.mark.parametrize("target", [f"../../files/{WHEEL}#sha256=0", f"../../files/{WHEEL.replace('+', '%2B')}"])
    def test_html_pages_are_read(self, httpserver: HTTPServer, target: str) -> None:
        page = f'<!DOCTYPE html><body><a href="../../files/other.whl">x</a><a data-x="1" href="{target}">{WHEEL}</a>'
        assert self.serve(httpserver, page, "text/html").fetch("uv", WHEEL, sha256=SHA256) == CONTENT

    def test_json_pages_are_read(self, httpserver: HTTPServer) -> None:
        page = json.dumps({"files": [{"filename": WHEEL, "url": httpserver.url_for(f"/files/{WHEEL}")}]})
        index = self.serve(httpserver, page, "application/vnd.pypi.simple.v1+json")
        assert index.fetch("uv", WHEEL, sha256=SHA256) == CONTENT

    def test_another_content_than_the_pinned_one_is_refused(self, httpserver: HTTPServer) -> None:
        index = self.serve(httpserver, f'<a href="/files/{WHEEL}">', "text/html")
        with pytest.raises(SetupError, match="not the pinned one"):
            index.fetch("uv", WHEEL, sha256="0" * 64)

    def test_a_missing_file_is_one_sentence(self, httpserver: HTTPServer) -> None:
        with pytest.raises(SetupError, match=r"has no uv-9\.whl"):
            self.serve(httpserver, "<a href='x'>", "text/html").fetch("uv", "uv-9.whl", sha256=SHA256)

    def test_a_failing_index_is_asked_again_and_a_refusing_one_is_not(self, httpserver: HTTPServer) -> None:
        httpserver.expect_ordered_request("/simple/uv/").respond_with_data("", status=503)
        httpserver.expect_ordered_request("/simple/uv/").respond_with_data("", status=404)
        with pytest.raises(SetupError, match="404"):
            Index(httpserver.url_for("/simple"), certificates=None).fetch("uv", WHEEL, sha256=SHA256)
        assert len(httpserver.log) == 2

    def test_a_link_to_a_file_of_this_machine_is_refused(self, httpserver: HTTPServer) -> None:
        index = self.serve(httpserver, f'<a href="file:///etc/{WHEEL}">', "text/html")
        with pytest.raises(SetupError, match="no web address"):
            index.fetch("uv", WHEEL, sha256=SHA256)

    def test_a_password_reaches_the_index_and_no_sentence(self, httpserver: HTTPServer) -> None:
        pair = base64.b64encode(b"me:canary@1").decode()
        httpserver.expect_request("/simple/uv/", headers={"Authorization": f"Basic {pair}"}).respond_with_data("none")
        url = httpserver.url_for("/simple").replace("//", "//me:canary%401@")
        with pytest.raises(SetupError, match="has no") as caught:
            Index(url, certificates=None).fetch("uv", WHEEL, sha256=SHA256)
        assert "canary" not in str(caught.value)

    def test_the_index_is_the_one_that_uv_or_pip_would_use(self) -> None:
        assert index_url({}) == PUBLIC
        assert index_url({"PIP_INDEX_URL": "http://p"}) == "http://p"
        assert index_url({"PIP_INDEX_URL": "http://p", "UV_DEFAULT_INDEX": "http://u"}) == "http://u"


class TestPython:
    @pytest.mark.parametrize("broken", ["exit 127", "exit 1", "echo 'pyenv: no version' >&2; exit 1"])
    def test_a_broken_or_old_python_on_path_is_passed_over(self, tmp_path: Path, broken: str) -> None:
        a_program(tmp_path / "python3", broken)
        a_program(tmp_path / "python3.12", 'case "$*" in *setup.bootstrap*) echo "took this: $*";; esac')
        done = subprocess.run(
            ["/bin/sh", CHECKOUT / "setup" / "run", "test"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert done.stdout.startswith("took this: ")
        assert done.stdout.endswith("-m setup.bootstrap test\n")

    def test_uv_gets_certificates_a_cache_and_no_python_of_its_own(self, tmp_path: Path) -> None:
        bundle = tmp_path / "ca.crt"
        bundle.touch()
        given = uv_environment({"HOME": "/nonexistent", "SSL_CERT_FILE": str(bundle), "VIRTUAL_ENV": "/other"})
        assert given["SSL_CERT_FILE"] == str(bundle)
        assert given["UV_PYTHON_DOWNLOADS"] == "never"
        assert Path(given["UV_CACHE_DIR"]).is_relative_to(CHECKOUT)
        assert "VIRTUAL_ENV" not in given
        assert "UV_CACHE_DIR" not in uv_environment({"HOME": str(tmp_path)})

    def test_a_certificate_file_that_is_named_and_not_there_is_not_replaced(self) -> None:
        assert certificate_file({"SSL_CERT_FILE": "/nonexistent"}) is None

    def test_the_newest_wheels_are_pinned_by_whole_hashes(self) -> None:
        digests = [digest for _, digest in pins.UV_WHEELS.values()] + list(pins.GO_HASHES)
        assert len(set(digests)) == len(digests) == 10
        assert all(len(digest) == 64 and int(digest, 16) for digest in digests)

    def test_everything_in_the_lock_has_a_hash(self) -> None:
        lock = tomllib.loads((CHECKOUT / "uv.lock").read_text())
        unlocked = {
            package["name"]
            for package in lock["package"]
            if "editable" not in package["source"]
            and not all("hash" in file for file in [*package.get("wheels", []), package.get("sdist", {"hash": ""})])
        }
        assert unlocked == set()
        assert {"hatchling", "editables"} <= {package["name"] for package in lock["package"]}


class TestSystem:
    def a_need(self, program: Path) -> Need:
        return Need(name="thing", packages=("thing-package",), present=lambda environment: program.exists())

    def an_apt(self, folder: Path, program: Path) -> dict[str, str]:
        """An apt-get that installs only after an update, as on a new machine."""
        a_program(
            folder / "apt-get",
            f'echo "$*" >> {folder}/calls\n'
            f'case "$*" in *update*) : > {folder}/lists;; *) [ -e {folder}/lists ] && : > {program};; esac',
        )
        return {"PATH": str(folder)}

    def test_root_adds_what_is_missing_and_updates_only_when_it_must(self, tmp_path: Path) -> None:
        program = tmp_path / "program"
        environment = self.an_apt(tmp_path, program)
        ensure_system([self.a_need(program)], environment, root=True)
        ensure_system([self.a_need(program)], environment, root=True)
        calls = (tmp_path / "calls").read_text().splitlines()
        assert [call.split()[-1] for call in calls] == ["thing-package", "update", "thing-package"]

    def test_nobody_else_touches_the_system_and_the_command_is_said(self, tmp_path: Path) -> None:
        environment = self.an_apt(tmp_path, tmp_path / "program")
        with pytest.raises(SetupError, match=r"missing: thing\. Add it with: sudo apt-get install thing-package"):
            ensure_system([self.a_need(tmp_path / "program")], environment, root=False)
        assert not (tmp_path / "calls").exists()

    def test_a_failing_install_shows_what_apt_said(self, tmp_path: Path) -> None:
        a_program(tmp_path / "apt-get", "echo no space left; exit 100")
        with pytest.raises(SetupError, match="no space left"):
            ensure_system([self.a_need(tmp_path / "program")], {"PATH": str(tmp_path)}, root=True)

    def test_bubblewrap_is_asked_for_by_its_package(self, tmp_path: Path) -> None:
        with pytest.raises(SetupError, match="packages bubblewrap have it"):
            ensure_system([BUBBLEWRAP], {"PATH": str(tmp_path)}, root=True)

    def test_the_proxy_of_the_demo_is_asked_for_and_found_where_no_user_looks(self, tmp_path: Path) -> None:
        assert HAPROXY in FOR_BUILDS
        a_program(tmp_path / "haproxy", "true")
        assert HAPROXY.present({"PATH": str(tmp_path)})
        assert HAPROXY.present({"PATH": "/nonexistent"}) == Path("/usr/sbin/haproxy").exists()


class TestServer:
    @pytest.mark.parametrize(
        ("said", "version"),
        [("go version go1.19.8 linux/amd64", (1, 19)), ("go version go1.26.6 linux/amd64", (1, 26)), ("?", (0, 0))],
    )
    def test_an_old_go_is_known_as_old(self, tmp_path: Path, said: str, version: tuple[int, int]) -> None:
        go = a_program(tmp_path / "go", f"echo {said!r}")
        assert go_version(str(go), {}) == version
        assert (go_version(str(go), {}) >= pins.OLDEST_GO) == (version == (1, 26))

    def test_a_missing_go_has_no_version(self, tmp_path: Path) -> None:
        assert go_version(str(tmp_path / "go"), {}) == (0, 0)

    def test_a_half_built_server_is_never_taken_over(self, tmp_path: Path) -> None:
        with pytest.raises(SetupError, match="no Temporal server"):
            _adopt(a_program(tmp_path / "temporal", "true"))


class TestPrograms:
    def a_go(self, folder: Path, *, does: str) -> Go:
        """A Go that makes what it is asked for, the path in it, or that does something else first."""
        a_program(
            folder / "go",
            f'if [ "$1" = version ]; then echo go version go1.26.6 linux/amd64; exit; fi; echo "$*" >> {folder}/calls\n'
            f'{does}; name=$(basename "${{3%@*}}"); echo "$3" > "$GOBIN/$name"',
        )
        return Go(environment={"PATH": f"{folder}:/usr/bin:/bin"})

    def test_a_program_is_built_once_for_each_version_and_found(self, tmp_path: Path) -> None:
        go, into = self.a_go(tmp_path, does="true"), tmp_path / "bin"
        for version in ("v1", "v1", "v2"):
            origins = (Built(name="thing", module=f"example.org/cmd/tool@{version}"),)
            ensure_programs(go, origins=origins, into=into)
            assert find_program("thing", origins=origins, into=into).read_text().strip() == origins[0].module
        built = [line.split()[-1] for line in (tmp_path / "calls").read_text().splitlines()]
        assert built == ["example.org/cmd/tool@v1", "example.org/cmd/tool@v2"]
        assert {path.name for path in into.iterdir()} == {"thing", ".thing.module"}

    def test_a_failed_build_says_what_go_said_and_leaves_the_program_of_before_unfound(self, tmp_path: Path) -> None:
        into, origins = tmp_path / "bin", (Built(name="thing", module="example.org/cmd/tool@v2"),)
        ensure_programs(
            self.a_go(tmp_path, does="true"), origins=(replace(origins[0], module="example.org/tool@v1"),), into=into
        )
        with pytest.raises(SetupError, match="cannot be built:\nno such module"):
            ensure_programs(self.a_go(tmp_path, does="echo no such module; exit 1"), origins=origins, into=into)
        with pytest.raises(
            SetupError, match=r"not here in its version, example\.org/cmd/tool@v2: run `make setup-test`"
        ):
            find_program("thing", origins=origins, into=into)

    def test_what_the_tests_need_is_named_once(self) -> None:
        names = [name for origin in FOR_TESTS for name in origin.names]
        assert len(set(names)) == len(names)
        assert {"temporal-server", "temporal-sql-tool", "versitygw"} <= set(names)


class TestNothingSkipped:
    FILE = """
import pytest

@pytest.mark.skip
def test_skipped(): ...

@pytest.mark.xfail(reason="the adapter declares it missing")
def test_declared(): raise AssertionError

@pytest.mark.xfail
def test_undeclared(): raise AssertionError

def test_passes(): ...
"""

    @pytest.mark.parametrize(
        ("ci", "outcome"), [("1", "1 failed, 1 passed, 1 xfailed, 2 errors"), ("", "1 passed, 2 skipped, 2 xfailed")]
    )
    def test_a_skip_fails_in_ci(self, tmp_path: Path, ci: str, outcome: str) -> None:
        (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure\n")
        (tmp_path / "test_it.py").write_text(self.FILE)
        (tmp_path / "test_whole.py").write_text("import pytest\npytest.importorskip('not_there')\n")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", "-p", "no:cacheprovider"],
            cwd=tmp_path,
            env={"MENDWORK_CI": ci, "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
        )
        assert outcome in done.stdout, done.stdout
        assert (done.returncode == 0) == (ci == "")

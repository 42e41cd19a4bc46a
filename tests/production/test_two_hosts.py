"""A production site without containers: Temporal on PostgreSQL with 16 shards, S3-like blobs, and two worker hosts with
networks, disks and secrets of their own. One of them is lost in the middle."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import yaml

from adapters.cli.house.home import end_leftovers
from adapters.settings import Settings, load_settings
from domain.human.attributes import ATTRIBUTES
from setup.programs import find_program
from tests.e2e.workshop import ANSWERS, FILES, SPEC, UNASKED, git, make_repository, wait_for
from tests.production.compose import services
from tests.production.hosts import CLASSES, WorkerHost, done_by, listed, providing, working
from tests.production.network import Host, network
from tests.production.site import OPS, Site, serving
from tests.spawning import spawned
from tests.trees import files_below

pytestmark = pytest.mark.timeout(600)  # a busy machine starts ten processes slowly
BUCKET, PROVIDER = "blobs", 8000
BUILDS = ("calc-1", "calc-2", "calc-3")
SLOW = [{**entry, "faults": [{"kind": "slow", "seconds": 1.0}]} for entry in ANSWERS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """All of it."""

    folder: Path
    site: Site
    hosts: dict[str, WorkerHost]
    bucket: Path

    @property
    def repository(self) -> Path:
        return self.folder / "repositories" / "calc"

    def workers(self) -> set[str]:
        """The hosts that have done something for the builds so far."""
        return set().union(*(done_by(self.site, self.hosts, build) for build in BUILDS))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("production")
    for name in ("shared", "repositories", "hosts", "bucket"):
        (folder / name).mkdir()
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network("site", "a", "b"))
        site = stack.enter_context(serving(folder, net["site"]))
        (site.secrets / "provider_api_key").chmod(0o600)
        (site.secrets / "provider_api_key").write_text("canary-key-3f1c")
        stack.enter_context(bucket(site, folder / "bucket"))
        make_repository(folder / "repositories" / "calc", FILES)
        (folder / "answers.yaml").write_text(yaml.safe_dump(SLOW))
        hosts = {name: worker_host(name, net[name], site) for name in ("a", "b")}
        for host in hosts.values():
            bill = host.folder / "bill.jsonl"
            stack.enter_context(providing(host, answers=folder / "answers.yaml", bill=bill, port=PROVIDER))
            stack.callback(end_leftovers, settings_of(host), say=lambda line: None)
        stack.enter_context(working(hosts))
        yield Place(folder=folder, site=site, hosts=hosts, bucket=folder / "bucket" / BUCKET)


@contextlib.contextmanager
def bucket(site: Site, folder: Path) -> Iterator[None]:
    """An S3 server at the site; its keys are two more secrets."""
    (folder / BUCKET).mkdir()
    keys = {"MENDWORK_BLOBS__ACCESS_KEY": "canary-id-20c4", "MENDWORK_BLOBS__SECRET_KEY": "canary-bucket-7f21"}
    for name, key in keys.items():
        (site.secrets / name).write_text(key)
    argv = [find_program("versitygw"), "--port", f"{site.host.address}:9000", "--quiet", "posix", folder]
    given = {"PATH": site.environment["PATH"], "ROOT_ACCESS_KEY": keys["MENDWORK_BLOBS__ACCESS_KEY"]}
    given["ROOT_SECRET_KEY"] = keys["MENDWORK_BLOBS__SECRET_KEY"]
    with spawned(site.host.inside(*argv), log=site.folder / "s3.log", folder=site.folder, environment=given):
        yield


def worker_host(name: str, host: Host, site: Site) -> WorkerHost:
    """As docs/production.md has a host: its own folder, with the configuration that all have."""
    folder = site.folder / "hosts" / name
    others = [site.folder / "hosts" / other for other in ("a", "b") if other != name]
    for each in (folder, *others):
        each.mkdir(exist_ok=True)
    (folder / "mendwork.toml").write_text(
        f'store = "postgresql://mendwork@{site.postgres}/mendwork"\nshared = "{site.folder / "shared"}"\n'
        f'[temporal]\naddress = "{site.temporal}"\n[timeouts]\nheartbeat = 5\nsticky = 2\n'
        '[telemetry]\nlisten = "0.0.0.0:9464"\nlogs = "json"\n'
        f'[encryption]\nkeys = ["{site.secrets / "payloads.key"}"]\n'
        f'[blobs]\nurl = "s3://{BUCKET}/production"\nendpoint = "http://{site.host.address}:9000"\n'
        f'[projects.calc]\nrepository = "{site.folder / "repositories" / "calc"}"\n'
        f'test = "python3 -m unittest -v"\n{UNASKED}'
        f'[models.coder]\nmodel = "openai/scripted"\nbase_url = "http://127.0.0.1:{PROVIDER}/v1"\n'
        'api_key_env = "PROVIDER_API_KEY"\ninput_price = 1.0\noutput_price = 4.0\n'
    )
    return WorkerHost(name=name, host=host, folder=folder, others=others, site=site)


def settings_of(host: WorkerHost) -> Settings:
    return load_settings(start=host.folder, environment={})


class TestSite:
    def test_what_sets_it_up_may_run_again(self, place: Place) -> None:
        with psycopg.connect(place.site.cluster.url("temporal")) as database:
            assert database.execute("SELECT count(*) FROM shards").fetchone() == (16,)
            version = database.execute("SELECT curr_version FROM schema_version").fetchone()
            place.site.run(OPS / "temporal" / "schema.sh")
            place.site.run(OPS / "temporal" / "namespace.sh")
            assert database.execute("SELECT curr_version FROM schema_version").fetchone() == version

    def test_its_health_check_answers_and_so_do_its_figures(self, place: Place) -> None:
        figures = "http://127.0.0.1:9090/metrics"
        ask = "import sys, urllib.request as web; print(web.urlopen(sys.argv[1], timeout=30).read().decode())"
        said = [
            place.site.run(sys.executable, "-I", "-c", ask, url)
            for url in (services()["temporal"]["healthcheck"]["test"][-1], figures)
        ]
        assert json.loads(said[0])["serverVersion"] == "1.29.1"
        assert "service_requests" in said[1]

    def test_the_dynamic_configuration_has_no_unknown_key(self) -> None:
        program, file = find_program("temporal-server"), OPS / "temporal" / "dynamic.yaml"
        said = subprocess.run([program, "validate-dynamic-config", file], capture_output=True, text=True, check=True)
        assert said.stdout.splitlines() == [str(file)]

    def test_the_workers_have_made_the_search_attributes(self, place: Place) -> None:
        there = place.site.ask_temporal("operator", "search-attribute", "list", "--output", "json")
        assert set(ATTRIBUTES) <= set(json.loads(there)["customAttributes"])

    def test_neither_account_enters_the_others_database(self, place: Place) -> None:
        for user, database in (("mendwork", "temporal"), ("temporal", "mendwork")):
            secret = (place.site.secrets / f"{user}_db_password").read_text()
            address = f"host={place.site.host.address} dbname={database} user={user}"
            with pytest.raises(AssertionError, match="permission denied for database"):
                place.site.run("psql", address, "-c", "SELECT 1", PGPASSWORD=secret)

    def test_no_secret_is_in_a_command_line_or_a_log(self, place: Place) -> None:
        secrets = {path.read_text().strip() for path in place.site.secrets.iterdir() if path.stat().st_size}
        lines = command_lines()
        logs = [path.read_text() for path in files_below(place.folder) if path.suffix == ".log"]
        assert len(logs) >= 2 * len(CLASSES)
        assert [text[:80] for text in (*lines, *logs) if any(secret in text for secret in secrets)] == []


def command_lines() -> list[str]:
    """Of every process of the machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found.append(path.read_text(errors="replace"))
    return found


def test_builds_end_on_two_hosts_also_when_one_of_them_is_lost_in_the_middle(place: Place) -> None:
    """Any host goes on from any commit: mirrors are shared, blobs are in the bucket, all else is asked of Temporal."""
    a, b = place.hosts["a"], place.hosts["b"]
    for build in BUILDS:
        start(place.site, build)
    wait_for(lambda: place.workers() == {"a", "b"}, seconds=240, why="work on both hosts")
    wait_for(lambda: listed(place.site, "BuildPhase = 'tasks'"), seconds=240, why="a build that writes its tasks")
    a.lose()
    unfinished = listed(place.site, "WorkflowType = 'BuildSaga' AND ExecutionStatus = 'Running'")
    assert unfinished, "the host was lost in the middle"

    for build in BUILDS:
        place.site.ask_temporal("workflow", "result", "--workflow-id", build)
    wait_for(
        lambda: len(listed(place.site, "BuildStatus = 'succeeded'")) == len(BUILDS),
        seconds=60,
        why="what the list says",
    )
    assert set(done_by(place.site, {"b": b}, unfinished[0]["execution"]["workflowId"])) == {"b"}
    for build in BUILDS:
        files = git(place.repository, "show", f"mendwork/{build}:calc.py")
        assert "def mul" in files
        assert "def square" in files
    assert json.loads(b.mendwork("status", BUILDS[0], "--json"))["status"] == "succeeded"
    assert_nothing_lies_on_a_host_alone(place)


def start(site: Site, build: str) -> None:
    given = json.dumps({"spec": SPEC, "project": "calc"})
    words = ("--type", "BuildSaga", "--task-queue", "mendwork", "--workflow-id", build, "--input", given)
    site.ask_temporal("workflow", "start", *words)


def assert_nothing_lies_on_a_host_alone(place: Place) -> None:
    blobs = [path for path in (place.bucket / "production").rglob("*") if path.is_file()]
    assert len(blobs) > len(BUILDS) * 5
    for path in blobs:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.parent.name + path.name
    for host in place.hosts.values():
        kept = {path.name for path in (host.folder / ".mendwork").iterdir()}
        assert kept.isdisjoint({"blobs", "mirrors", "environments", "mendwork.db"}), kept
    assert (place.folder / "shared" / "mirrors" / "calc.git").is_dir()

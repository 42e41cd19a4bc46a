"""Which server is meant, and one sentence for each way in which it is not there."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from adapters.settings import Settings
from adapters.temporal.connect import Target, connect, connect_to, external_target, resolve_target
from adapters.temporal.state import DevState, clear_state, only_instance, read_state, seconds_since_start, write_state
from domain.errors import AlreadyRunning, InvalidInput, ServerUnavailable, UnknownName
from tests.conftest import TemporalServer

PROFILES = """
[profile.default]
address = "from-file:7233"
[profile.cloud]
address = "cloud.example:7233"
namespace = "team"
api_key = "secret-canary"
"""


@dataclass(frozen=True)
class Message:
    name: str
    id: UUID
    parts: tuple[int, ...]


@pytest.fixture
def profiles(tmp_path: Path, environment: dict[str, str]) -> dict[str, str]:
    (tmp_path / "no-profiles.toml").write_text(PROFILES)
    return environment


@pytest.fixture
def deaf() -> Iterator[str]:
    """A server that accepts (the kernel does, into its backlog) and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def nobody() -> Iterator[str]:
    """A port that nobody listens on and nobody else can take."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


class TestTarget:
    def test_the_environment_wins_over_the_settings(
        self, make_settings: Callable[..., Settings], environment: dict[str, str]
    ) -> None:
        settings = make_settings(temporal={"address": "set:1", "namespace": "ours"})
        assert resolve_target(settings, environment).address == "set:1"
        target = resolve_target(settings, {**environment, "TEMPORAL_ADDRESS": "env:1"})
        assert (target.address, target.namespace) == ("env:1", "ours")

    def test_a_profile_is_read_as_the_temporal_cli_reads_it(self, settings: Settings, profiles: dict[str, str]) -> None:
        assert resolve_target(settings, profiles).address == "from-file:7233"
        cloud = resolve_target(settings, {**profiles, "TEMPORAL_PROFILE": "cloud"})
        assert (cloud.address, cloud.namespace) == ("cloud.example:7233", "team")
        assert cloud.options["api_key"] == "secret-canary"
        assert cloud.options["tls"] is True
        assert "secret-canary" not in repr(cloud)

    def test_an_unknown_profile_is_one_sentence(self, settings: Settings, profiles: dict[str, str]) -> None:
        with pytest.raises(InvalidInput, match="'nope' not found"):
            resolve_target(settings, {**profiles, "TEMPORAL_PROFILE": "nope"})

    def test_a_broken_profile_file_is_one_sentence_that_does_not_quote_it(
        self, settings: Settings, profiles: dict[str, str]
    ) -> None:
        Path(profiles["TEMPORAL_CONFIG_FILE"]).write_text('[profile.default]\napi_key = secret-canary"\n')
        with pytest.raises(InvalidInput) as caught:
            resolve_target(settings, profiles)
        assert "canary" not in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_nothing_named_means_the_embedded_one(self, settings: Settings, environment: dict[str, str]) -> None:
        assert external_target(settings, environment) is None
        settings.state.mkdir()
        write_state(settings.state, DevState(pid=os.getpid(), address="here:1", namespace="n", ui="http://x"))
        target = resolve_target(settings, environment)
        assert (target.address, target.namespace) == ("here:1", "n")

    def test_without_any_server_the_sentence_says_how_to_have_one(
        self, settings: Settings, environment: dict[str, str]
    ) -> None:
        with pytest.raises(ServerUnavailable, match=r"`mendwork dev`.*TEMPORAL_ADDRESS"):
            resolve_target(settings, environment)


class TestConnecting:
    async def test_dataclasses_and_uuids_pass_as_plain_json(
        self, settings: Settings, environment: dict[str, str], temporal: TemporalServer
    ) -> None:
        client = await connect(settings, {**environment, **temporal.environment})
        sent = Message(name="x", id=uuid4(), parts=(1, 2))
        payloads = await client.data_converter.encode([sent])
        assert await client.data_converter.decode(payloads, [Message]) == [sent]

    async def test_a_wrong_namespace_is_named_beside_those_that_exist(
        self, make_settings: Callable[..., Settings], environment: dict[str, str], temporal: TemporalServer
    ) -> None:
        settings = make_settings(temporal={"address": temporal.address, "namespace": "wrong"})
        with pytest.raises(UnknownName, match=r"'wrong'; known: .*\bdefault\b"):
            await connect(settings, environment)

    async def test_a_dead_address_is_one_sentence_at_once(self, nobody: str) -> None:
        began = time.monotonic()
        with pytest.raises(ServerUnavailable, match=rf"answers at {nobody} \(a test\)") as caught:
            await connect_to(Target(address=nobody, namespace="default", origin="a test"))
        assert time.monotonic() - began < 30
        assert "\n" not in str(caught.value)

    async def test_a_deaf_server_is_given_up_after_the_patience(self, deaf: str) -> None:
        with pytest.raises(ServerUnavailable, match=r"answers at 127.*: no answer within 0.5 s"):
            await connect_to(Target(address=deaf, namespace="default", origin="a test"), patience=0.5)

    async def test_what_is_no_address_is_one_sentence(self) -> None:
        with pytest.raises(ServerUnavailable, match="no Temporal server answers at"):
            await connect_to(Target(address="not an address", namespace="default", origin="a test"))


class TestState:
    def test_it_reads_back_and_is_forgotten(self, tmp_path: Path) -> None:
        state = DevState(pid=os.getpid(), address="a:1", namespace="n", server_pid=7, workers={"model": 8})
        write_state(tmp_path, state)
        assert read_state(tmp_path) == state
        clear_state(tmp_path)
        assert read_state(tmp_path) is None

    def test_the_state_of_a_killed_one_counts_as_none(self, tmp_path: Path) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        write_state(tmp_path, DevState(pid=ended.pid, address="a:1", namespace="n"))
        assert read_state(tmp_path) is None

    def test_its_age_counts_from_the_last_start_and_without_one_it_is_endless(self, tmp_path: Path) -> None:
        assert seconds_since_start(tmp_path) == math.inf
        write_state(tmp_path, DevState(pid=os.getpid(), address="a:1", namespace="n"))
        assert 0 <= seconds_since_start(tmp_path) < 60
        then = time.time() - 500
        os.utime(tmp_path / "dev.json", (then, then))
        assert 500 <= seconds_since_start(tmp_path) < 560

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"unknown": 1}'])
    def test_a_damaged_file_counts_as_none(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "dev.json").write_text(text)
        assert read_state(tmp_path) is None

    def test_a_second_instance_is_told_the_pid_of_the_first(self, tmp_path: Path) -> None:
        with only_instance(tmp_path):
            with pytest.raises(AlreadyRunning, match=rf"pid {os.getpid()}\)"), only_instance(tmp_path):
                pass
            with pytest.raises(AlreadyRunning, match=rf"pid {os.getpid()}\)"), only_instance(tmp_path):
                pass
        with only_instance(tmp_path):
            pass

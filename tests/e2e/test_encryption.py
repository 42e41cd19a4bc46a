"""A whole build whose payloads are encrypted: nothing of it is readable at Temporal, and every command still works."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.payloads.keys import new_key, new_token
from tests.e2e.projects import waiting
from tests.e2e.test_rebuild import change, rows
from tests.e2e.test_temporal_cli import content_of, history, started, temporal
from tests.e2e.workshop import ANSWERS, DEV, MENDWORK, UNASKED, Workshop, wait_for
from tests.trees import files_below

SPEC = "# Quagga counting\n\nThe calculator multiplies okapis and squares them.\n"
SECRETS = ("Quagga", "okapis", "Add square", "Zorilla", "scripted")
"""Words of the spec, of a task's title, of a person's name, and a model's name."""
SETTINGS = '\n[encryption]\nkeys = ["keys/2026a.key"]\n\n[codec]\ntoken_file = "keys/token"\n'


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """A codec server, and the words that make the Temporal CLI use it."""

    url: str
    words: tuple[str, ...]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    at = Workshop(tmp_path_factory.mktemp("encrypted") / "w")
    at.spec.write_text(SPEC)
    (at.root / "keys").mkdir()
    for key in ("2025b", "2026a"):
        new_key(at.root / "keys" / f"{key}.key")
    new_token(at.root / "keys" / "token")
    asks = '\n[projects.asking]\nrepository = "repository"\ntest = "python3 -m unittest -v"\nreview = false\n'
    with at.running(dev=DEV, extra=SETTINGS + asks + 'approve = ["change"]\n'):
        yield at


@contextlib.contextmanager
def decoding(at: Workshop) -> Iterator[Decoding]:
    """``mendwork codec serve`` on a free port."""
    with at.spawned([*MENDWORK, "codec", "serve", "--port", "0"], log="codec.log"):
        line = re.compile(r"^http://127\.0\.0\.1:\d+$", re.MULTILINE)
        url = wait_for(lambda: line.search((at.root / "codec.log").read_text()), why="the codec server")[0]
        token = (at.root / "keys" / "token").read_text().strip()
        yield Decoding(url=url, words=("--codec-endpoint", url, "--codec-auth", f"Bearer {token}"))


@pytest.fixture(scope="module")
def codec(shop: Workshop) -> Iterator[Decoding]:
    with decoding(shop) as serving:
        yield serving


@pytest.fixture(scope="module")
def build(shop: Workshop) -> str:
    """A build that waited for a person, was approved, and succeeded."""
    name = shop.mendwork("build", "spec.md", "--project", "asking", "--detach").out.strip()
    digest = waiting(shop, name)["digest"]
    answered = shop.mendwork("approve", name, digest[:12], "--by", "Zorilla")
    assert answered.code == 0, answered.err
    watched = shop.mendwork("watch", name)
    assert watched.code == 0, watched.err
    return name


def kept(at: Workshop) -> bytes:
    """All that the server keeps of all histories."""
    return b"".join(content_of(path) for path in at.state.glob("temporal.db*"))


def exported(at: Workshop, workflow: str, *words: str) -> str:
    """The history as Temporal's own command prints it."""
    ran = temporal(at, "workflow", "show", "--workflow-id", workflow, "--output", "json", *words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def shown(at: Workshop, workflow: str, *words: str) -> str:
    """All that can be read in the payloads of a history."""
    found = payloads(json.loads(exported(at, workflow, *words)))
    return " ".join(base64.b64decode(each.get("data", "")).decode(errors="replace") for each in found)


class TestAtTemporal:
    def test_nothing_readable_is_kept(self, shop: Workshop, build: str) -> None:
        database = kept(shop)
        assert build.encode() in database
        assert database.count(b"binary/encrypted") > 50
        assert [word for word in SECRETS if word.encode() in database] == []

    def test_no_digest_of_a_prompt_an_answer_or_a_diff_is_kept(self, shop: Workshop, build: str) -> None:
        log = shop.mendwork("trace", build, "--jsonl").out
        digests = set(re.findall(r"\b[0-9a-f]{64}\b", log))
        database = kept(shop)
        assert len(digests) > 5
        assert [digest for digest in digests if digest.encode() in database] == []

    def test_every_payload_but_search_attributes_is_of_the_key(self, shop: Workshop, build: str) -> None:
        encodings = [found for saga in ("", "-task-mul") for found in payloads(history(shop, build + saga))]
        assert len(encodings) > 30
        assert {found["metadata"].get("encryption-key-id") for found in encodings} == {"MjAyNmE="}

    def test_a_failures_sentence_is_not_kept_and_its_kind_is(self, shop: Workshop) -> None:
        started(shop, "by-hand-x", {"spec": "x", "project": "Okapi"})
        failure = history(shop, "by-hand-x")[-1]["workflowExecutionFailedEventAttributes"]["failure"]
        assert failure["message"] == "Encoded failure"
        assert failure["applicationFailureInfo"]["type"] == "UnknownName"

    def test_no_key_is_in_a_log_an_environment_or_a_process_list(self, shop: Workshop, build: str) -> None:
        keys = [path.read_bytes().strip() for path in (shop.root / "keys").iterdir()]
        texts = [content_of(path) for path in files_below(shop.state)]
        texts += [content_of(shop.root / "dev.log")]
        for pid in shop.pids().values():
            texts += [Path(f"/proc/{pid}/{file}").read_bytes() for file in ("environ", "cmdline")]
        assert not [text for text in texts for key in keys if key in text]


def payloads(value: Any) -> Iterator[dict[str, Any]]:
    """Every payload of a history, but those of search attributes."""
    if isinstance(value, dict) and "metadata" in value and "encoding" in value["metadata"]:
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from payloads(inner) if name != "searchAttributes" else ()
    elif isinstance(value, list):
        for inner in value:
            yield from payloads(inner)


class TestOurCommands:
    def test_the_log_is_rebuilt_from_the_servers_histories(self, shop: Workshop, build: str) -> None:
        before = rows(shop, build)
        change(shop, "DELETE FROM events WHERE build = ?", build)
        ran = shop.mendwork("events", "rebuild", build)
        assert ran.code == 0, ran.err
        assert rows(shop, build) == before

    def test_a_command_with_another_key_names_the_one_it_lacks(self, shop: Workshop, build: str) -> None:
        shop.environment["MENDWORK_ENCRYPTION__KEYS"] = "keys/2025b.key"
        try:
            ran = shop.mendwork("events", "rebuild", build)
        finally:
            del shop.environment["MENDWORK_ENCRYPTION__KEYS"]
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            "mendwork: a payload is encrypted with key '2026a', which [encryption].keys lacks; known: 2025b\n"
        )

    def test_the_log_is_rebuilt_from_exports_and_only_with_the_key(
        self, shop: Workshop, build: str, tmp_path: Path
    ) -> None:
        files = []
        for saga in ("", "-task-mul", "-task-square"):
            (tmp_path / f"{saga}.json").write_text(exported(shop, build + saga))
            files += ["--from", str(tmp_path / f"{saga}.json")]
        elsewhere = Workshop(tmp_path / "w")
        elsewhere.configure(extra=SETTINGS.replace("keys/", f"{shop.root}/keys/"))
        ran = elsewhere.mendwork("events", "rebuild", *files)
        assert ran.code == 0, ran.err
        assert rows(elsewhere, build) == rows(shop, build)
        for without, known in ((SETTINGS.replace("keys/2026a", f"{shop.root}/keys/2025b"), "2025b"), ("", "none")):
            elsewhere.configure(extra=without)
            ran = elsewhere.mendwork("events", "rebuild", *files)
            assert ran.code == 2
            assert f"encrypted with key '2026a', which [encryption].keys lacks; known: {known}" in ran.err

    def test_a_phase_is_replayed_in_a_world_that_is_encrypted_too(self, shop: Workshop, build: str) -> None:
        ran = shop.mendwork("replay", build, "--phase", "plan", "--keep")
        assert ran.code == 0, ran.err
        world = b"".join(content_of(path) for path in shop.state.glob("replay/*/.mendwork/temporal.db*"))
        assert b"binary/encrypted" in world
        assert [word for word in SECRETS if word.encode() in world] == []


class TestWithTemporalsOwnCommand:
    def test_a_history_reads_as_it_would_without_encryption(self, shop: Workshop, build: str, codec: Decoding) -> None:
        assert "Quagga" not in shown(shop, build)
        decoded = shown(shop, build, *codec.words)
        assert all(word in decoded for word in ("Quagga", "Zorilla"))
        assert "encryption-key-id" not in exported(shop, build, *codec.words)

    def test_an_export_that_it_decoded_rebuilds_the_log_without_a_key(
        self, shop: Workshop, build: str, codec: Decoding, tmp_path: Path
    ) -> None:
        (tmp_path / "saga.json").write_text(exported(shop, build, *codec.words))
        elsewhere = Workshop(tmp_path / "w")
        elsewhere.configure()
        ran = elsewhere.mendwork("events", "rebuild", "--from", str(tmp_path / "saga.json"))
        assert ran.code == 0, ran.err

    def test_a_failure_reads_as_a_sentence(self, shop: Workshop, codec: Decoding) -> None:
        started(shop, "by-hand-y", {"spec": "x", "project": "Okapi"})
        assert "unknown project 'Okapi'" not in shown(shop, "by-hand-y")
        assert "unknown project 'Okapi'" in shown(shop, "by-hand-y", *codec.words)

    def test_a_query_answers_and_a_result_reads(self, shop: Workshop, build: str, codec: Decoding) -> None:
        asked = ("workflow", "query", "--workflow-id", build, "--type", "state")
        assert "succeeded" not in temporal(shop, *asked).stdout
        answered = temporal(shop, *asked, *codec.words)
        assert '"succeeded"' in answered.stdout, answered
        read = temporal(shop, "workflow", "result", "--workflow-id", build, *codec.words)
        assert f"mendwork/{build}" in read.stdout

    def test_a_build_is_started_and_approved_through_it(self, shop: Workshop, codec: Decoding) -> None:
        request = {"spec": SPEC, "project": "asking"}
        command = ("workflow", "start", "--type", "BuildSaga", "-t", "mendwork", "--workflow-id", "through-1")
        begun = temporal(shop, *command, "--input", json.dumps(request), *codec.words)
        assert begun.returncode == 0, begun.stderr
        answer = json.dumps({"digest": waiting(shop, "through-1")["digest"], "by": "Zorilla"})
        words = ("workflow", "update", "execute", "--workflow-id", "through-1", "--name", "approve")
        answered = temporal(shop, *words, "--input", answer, *codec.words)
        assert "accepted" in answered.stdout, answered
        assert shop.mendwork("watch", "through-1").code == 0
        assert [word for word in SECRETS if word.encode() in kept(shop)] == []

    def test_a_wrong_token_is_told_and_nothing_is_decoded(self, shop: Workshop, build: str, codec: Decoding) -> None:
        words = ("workflow", "query", "--workflow-id", build, "--type", "state")
        refused = temporal(shop, *words, "--codec-endpoint", codec.url, "--codec-auth", "Bearer wrong")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "a bearer token is needed" in refused.stderr

    def test_a_namespace_in_the_endpoint_is_understood(self, shop: Workshop, build: str, codec: Decoding) -> None:
        words = ("--codec-endpoint", f"{codec.url}/{{namespace}}", *codec.words[2:])
        assert "Quagga" in shown(shop, build, *words)
        other = ("--codec-endpoint", f"{codec.url}/elsewhere", *codec.words[2:])
        refused = temporal(shop, "workflow", "query", "--workflow-id", build, "--type", "state", *other)
        assert "for the namespace default alone" in refused.stderr


def test_a_key_is_rotated_while_a_build_waits(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w", answers=ANSWERS)
    (at.root / "keys").mkdir()
    new_key(at.root / "keys" / "old.key")
    asking = UNASKED.replace("[]", '["change"]')
    with at.running(extra='\n[encryption]\nkeys = ["keys/old.key"]\n', consent=asking):
        build = at.mendwork("build", "spec.md", "--detach").out.strip()
        digest = waiting(at, build)["digest"]
    new_key(at.root / "keys" / "new.key")
    with at.running(extra='\n[encryption]\nkeys = ["keys/new.key", "keys/old.key"]\n', consent=asking):
        assert at.mendwork("approve", build, digest[:12]).code == 0
        ran = at.mendwork("watch", build)
        assert ran.code == 0, ran.err
        used = [found["metadata"]["encryption-key-id"] for found in payloads(history(at, build))]
        assert sorted(set(used), key=used.index) == ["b2xk", "bmV3"]  # "old", then "new"


def test_a_key_that_cannot_be_used_is_told_before_anything_starts(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w")
    at.configure(extra='\n[encryption]\nkeys = ["keys/none.key"]\n')
    ran = at.mendwork("dev")
    assert ran.code == 2
    assert ran.err == "mendwork: [encryption].keys: none.key cannot be read: No such file or directory\n"

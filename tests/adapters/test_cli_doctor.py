"""``mendwork doctor``: each thing that can be missing or broken is a line with the command that cures it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from hypothesis import given
from hypothesis import strategies as st

from adapters.cli.doctor import configured, store
from adapters.cli.doctor.configured import admit
from adapters.cli.doctor.examine import CHECKS, doctor, examine, told
from adapters.cli.doctor.finding import Finding, Patient, aside, cure_in
from adapters.store import open_store
from adapters.store.migrate import HEAD
from domain.errors import StoreUnavailable
from tests.adapters.test_store_migrations import move, on
from tests.e2e.workshop import make_repository

SECRET = "canary-77ab"
CONFIG = """
[models.fast]
model = "openai/gpt-x"
api_key_env = "FAST_KEY"

[models.own]
model = "openai/local"
base_url = "http://127.0.0.1:9/v1"

[models.usual]
model = "anthropic/claude-x"

[projects.notes]
repository = "notes"
test = "sh -c true"
"""


def patient(folder: Path, environment: dict[str, str], config: str | None = CONFIG) -> Patient:
    """Of a folder with that configuration."""
    if config is not None:
        (folder / "mendwork.toml").write_text(config)
    return admit(folder, environment)[0]


def states(found: Sequence[Finding]) -> dict[str, str]:
    return {each.name: each.state for each in found}


def test_without_a_file_the_cure_is_init_and_the_defaults_count(tmp_path: Path, environment: dict[str, str]) -> None:
    found, about = admit(tmp_path, {**environment, "MENDWORK_TEMPORAL__PORT": "7311"})
    assert (about.state, about.cure) == ("missing", "mendwork init")
    assert found.settings is not None
    assert found.settings.temporal.port == 7311


def test_without_a_file_variables_that_are_no_settings_are_told_too(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    found, about = admit(tmp_path, {**environment, "MENDWORK_TEMPORAL__PORT": "seven"})
    assert found.settings is None
    assert "MENDWORK_*" in about.detail


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[temporal]\nprt = 1\n", "mendwork.toml:2: unknown key 'temporal.prt'; did you mean 'port'?"),
        ("[temporal\n", "line 1"),
        ("[temporal]\nport = 'x'\n", "temporal.port"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_and_the_machine_is_looked_at_all_the_same(
    text: str, part: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "mendwork.toml").write_text(text)
    found, about = admit(tmp_path, environment)
    assert (about.state, found.settings) == ("broken", None)
    assert part in about.detail
    assert str(tmp_path / "mendwork.toml") in about.cure
    assert {"python", "git", "sandbox", "disk", "state"} <= set(states(await examine(found)))


def test_a_named_file_that_is_not_there_is_told(tmp_path: Path, environment: dict[str, str]) -> None:
    _, about = admit(tmp_path, {**environment, "MENDWORK_CONFIG": str(tmp_path / "none.toml")})
    assert (about.state, about.cure) == ("broken", "unset MENDWORK_CONFIG")


async def test_a_look_makes_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    await examine(patient(tmp_path, environment))
    assert set(os.listdir(tmp_path)) <= {"mendwork.toml", "home"}


class TestModels:
    async def test_a_key_is_told_by_its_name_and_never_by_its_value(
        self, tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "mendwork.toml").write_text(CONFIG)
        variables = {
            **environment,
            "FAST_KEY": SECRET,
            "MENDWORK_STORE": f"postgresql://u:{SECRET}@127.0.0.1:9/x?sslpassword={SECRET}",
        }
        for json_wanted in (True, False):
            assert await doctor(start=tmp_path, environment=variables, repair=False, json=json_wanted) == 1
            said = capsys.readouterr()
            assert SECRET not in said.out + said.err
            assert "FAST_KEY is set" in said.out

    async def test_the_variable_that_lacks_is_named_with_how_to_set_it(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        found = await configured.models(patient(tmp_path, environment))
        assert states(found) == {"model fast": "missing", "model own": "ok", "model usual": "missing"}
        assert [each.cure for each in found] == [
            "read -rs FAST_KEY && export FAST_KEY",
            "",
            "read -rs ANTHROPIC_API_KEY && export ANTHROPIC_API_KEY",
        ]

    async def test_a_key_that_lies_in_the_folder_of_secrets_is_there(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "FAST_KEY").write_text(SECRET)
        found = await configured.models(patient(tmp_path, {**environment, "MENDWORK_SECRETS": f"{tmp_path}/secrets"}))
        assert states(found) == {"model fast": "ok", "model own": "ok", "model usual": "missing"}
        assert SECRET not in str(found)

    async def test_an_empty_variable_is_no_key(self, tmp_path: Path, environment: dict[str, str]) -> None:
        found = await configured.models(patient(tmp_path, {**environment, "FAST_KEY": " "}))
        assert found[0].state == "missing"


class TestProjects:
    async def test_a_repository_and_its_programs_are_there(self, tmp_path: Path, environment: dict[str, str]) -> None:
        make_repository(tmp_path / "notes", {"a": "b"})
        found = await configured.projects(patient(tmp_path, environment))
        assert [(each.state, each.detail) for each in found] == [("ok", "notes, with sh")]

    @pytest.mark.parametrize(
        ("make", "test", "part"),
        [
            (None, "sh -c true", "there is no folder"),
            ("plain", "sh -c true", "is no git repository"),
            ("repository", "no-such-runner --all", "'no-such-runner' is not on PATH"),
        ],
    )
    async def test_what_would_refuse_a_build_is_told_before(
        self, make: str | None, test: str, part: str, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        if make == "plain":
            (tmp_path / "notes").mkdir()
        elif make:
            make_repository(tmp_path / "notes", {"a": "b"})
        found = await configured.projects(patient(tmp_path, environment, CONFIG.replace("sh -c true", test)))
        assert [each.state for each in found] == ["broken"]
        assert part in found[0].detail
        assert found[0].cure

    async def test_the_outlet_is_looked_for_only_where_a_set_up_needs_one(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        assert await configured.targets(patient(tmp_path, environment)) == []
        setup = '[projects.notes.setup]\ncommand = "sh setup"\nregistries = "pypi.org"\n'
        found = await configured.targets(patient(tmp_path, environment, CONFIG + setup))
        assert [each.name for each in found] == ["haproxy"]

    async def test_a_target_s_programs_are_looked_for_where_a_project_has_one(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        delivery = '[projects.notes.delivery]\ntarget = "local"\nrun = "sh run"\n'
        found = await configured.targets(patient(tmp_path, environment, CONFIG + delivery))
        assert found
        assert all(each.name.startswith("target local") for each in found)


class TestTheStore:
    async def test_one_that_is_not_there_yet_is_well_and_is_not_made(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        found = await store.store(patient(tmp_path, environment))
        assert [each.state for each in found] == ["ok"]
        assert not (tmp_path / ".mendwork").exists()

    async def test_one_of_this_version_is_well(self, tmp_path: Path, environment: dict[str, str]) -> None:
        ill = patient(tmp_path, environment)
        assert ill.settings is not None
        async with await open_store(ill.settings.store_url):
            pass
        found = await store.store(ill)
        assert [(each.state, HEAD in each.detail) for each in found] == [("ok", True)]

    async def test_an_older_one_is_brought_up_to_date_by_fix(
        self, tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        ill = patient(tmp_path, environment)
        assert ill.settings is not None
        async with await open_store(ill.settings.store_url):
            pass
        await on(ill.settings.store_url, lambda connection: move(connection, "0002", command.downgrade))
        found = await store.store(ill)
        assert [(each.state, each.cure) for each in found] == [("missing", "mendwork doctor --fix")]
        assert "is at migration 0002" in found[0].detail
        await doctor(start=tmp_path, environment=environment, repair=True, json=False)
        assert "fixed: the store is at this version's migration" in capsys.readouterr().err
        assert [(each.state, HEAD in each.detail) for each in await store.store(ill)] == [("ok", True)]

    async def test_a_newer_one_needs_a_newer_mendwork(self, tmp_path: Path, environment: dict[str, str]) -> None:
        ill = patient(tmp_path, environment)
        await self.stamp(ill, "9999")
        found = await store.store(ill)
        assert [each.state for each in found] == ["broken"]
        assert "9999" in found[0].detail

    async def test_a_file_that_is_no_database_is_told(self, tmp_path: Path, environment: dict[str, str]) -> None:
        ill = patient(tmp_path, environment)
        ill.state.mkdir()
        (ill.state / "mendwork.db").write_text("no database " * 100)
        found = await store.store(ill)
        assert [each.state for each in found] == ["broken"]
        assert "damaged" in found[0].detail

    @pytest.mark.parametrize("url", ["nonsense", "oracle://host/x", "postgresql://u:p@127.0.0.1:9/x"])
    async def test_one_that_cannot_be_reached_is_told_with_where_it_is_named(
        self, url: str, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        found = await store.store(patient(tmp_path, {**environment, "MENDWORK_STORE": url}))
        assert [(each.state, each.cure) for each in found] == [
            ("broken", "mendwork config get store --show-origin"),
        ]

    async def stamp(self, ill: Patient, revision: str) -> None:
        assert ill.settings is not None
        async with await open_store(ill.settings.store_url):
            pass
        with closing(sqlite3.connect(ill.state / "mendwork.db")) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))


class TestTheExamination:
    async def test_a_check_that_hangs_or_fails_is_a_line_and_holds_up_nobody(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        never = threading.Event()

        async def hanging(ill: Patient) -> Sequence[Finding]:
            await asyncio.Event().wait()
            return []

        async def blocked(ill: Patient) -> Sequence[Finding]:
            await aside(never.wait)
            return []

        async def failing(ill: Patient) -> Sequence[Finding]:
            raise ValueError(SECRET)

        async def refusing(ill: Patient) -> Sequence[Finding]:
            raise StoreUnavailable("a sentence for people")

        checks = {
            "hanging": hanging,
            "blocked": blocked,
            "failing": failing,
            "refusing": refusing,
            "python": CHECKS["python"],
        }
        found = await examine(patient(tmp_path, environment), checks=checks, within=0.5)
        never.set()
        assert [(each.name, each.state) for each in found] == [
            ("hanging", "broken"),
            ("blocked", "broken"),
            ("failing", "broken"),
            ("refusing", "broken"),
            ("python", "ok"),
        ]
        assert [each.detail for each in found[:4]] == [
            "no answer within 0.5 s",
            "no answer within 0.5 s",
            "this check failed: ValueError",
            "a sentence for people",
        ]
        assert {each.cure for each in found[:4]} == {"mendwork doctor"}

    @pytest.mark.parametrize(
        ("config", "variables"),
        [
            (None, {"MENDWORK_STORE": "oracle://host/x"}),
            ("[temporal\n", {}),
            (CONFIG, {"MENDWORK_STORE": "postgresql://u:p@127.0.0.1:9/x", "TEMPORAL_ADDRESS": "127.0.0.1:9"}),
            (CONFIG + '[projects.notes.delivery]\ntarget = "local"\nrun = "sh run"\n', {"TEMPORAL_CONFIG_FILE": "/"}),
        ],
    )
    async def test_whatever_is_not_well_comes_with_one_line_that_cures_it(
        self, config: str | None, variables: dict[str, str], tmp_path: Path, environment: dict[str, str]
    ) -> None:
        if config is not None:
            (tmp_path / "mendwork.toml").write_text(config)
        found, about = admit(tmp_path, {**environment, **variables})
        ill = [each for each in (about, *await examine(found)) if each.state != "ok"]
        assert ill
        assert [each for each in ill if not each.cure or not each.cure.isprintable()] == []

    async def test_an_error_in_a_thread_reaches_whoever_waits(self) -> None:
        def fail() -> None:
            raise StoreUnavailable("no")

        assert await aside(lambda: 3) == 3
        with pytest.raises(StoreUnavailable):
            await aside(fail)

    async def test_json_has_the_same_findings_as_the_lines(
        self, tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "mendwork.toml").write_text(CONFIG)
        assert await doctor(start=tmp_path, environment=environment, repair=False, json=True) == 1
        answer = json.loads(capsys.readouterr().out)
        assert answer["ok"] is False
        assert await doctor(start=tmp_path, environment=environment, repair=False, json=False) == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == [each["state"] for each in answer["checks"]]
        assert all({"name", "state", "purpose", "detail", "cure"} == set(each) for each in answer["checks"])


def test_a_cure_is_told_once_and_at_the_end() -> None:
    sentence = "the sandbox needs bwrap; install it: apt-get install -y bubblewrap"
    finding = Finding(name="sandbox", state="missing", purpose="p", detail=sentence, cure=cure_in(sentence))
    line = told(finding)
    assert line.count("apt-get") == 1
    assert line.endswith("-> apt-get install -y bubblewrap")
    assert cure_in("nothing can be done") == ""


@given(st.text(), st.text(), st.text())
def test_a_finding_is_one_printable_line_whatever_is_in_it(name: str, detail: str, cure: str) -> None:
    line = told(Finding(name=name, state="broken", purpose="p", detail=detail, cure=cure))
    assert line.isprintable()
    assert line.startswith("broken ")

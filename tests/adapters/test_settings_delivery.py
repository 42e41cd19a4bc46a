"""``[projects.NAME.delivery]``: what it comes to, and one sentence for everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.settings import Settings, load_settings
from domain.delivery.project import Delivery, Step
from domain.errors import InvalidInput
from domain.kpi.policy import WatchPolicy
from domain.kpi.probe import Probe
from domain.risk.policy import WEIGHTS

PROJECT = '[projects.notes]\nrepository = "notes"\ntest = "true"\n'
LEAST = PROJECT + '[projects.notes.delivery]\ntarget = "local"\nrun = "python -m notes"\n'
WHOLE = (
    LEAST
    + """
build = ["make", "dist"]
output = "dist"
integration = "python -m pytest it"
port = 8080
staging_port = 8081
health = { path = "/health", status = 204 }
start_seconds = 5
drain_seconds = 0
environment = { MODE = "fast" }
secrets = ["DB_PASSWORD"]
keep = 2

[[projects.notes.delivery.steps]]
name = "migrate"
run = "python -m notes migrate"
kind = "reversible"
undo = "python -m notes migrate back"

[[projects.notes.delivery.steps]]
name = "mail"
run = "python -m notes mail"
kind = "final"

[projects.notes.delivery.watch]
seconds = 90
window = 10
rate = 50
paths = ["/", "/notes?limit=1"]
on_inconclusive = "extend"

[projects.notes.delivery.risk]
limit = 0.3
weights = { migrations = 0.5 }
"""
)

Read = Callable[[str], Settings]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str) -> Settings:
        (tmp_path / "mendwork.toml").write_text(text)
        return load_settings(start=tmp_path, environment={})

    return read


def delivery_of(settings: Settings) -> Delivery:
    found = settings.allowlist()["notes"].delivery
    assert found is not None
    return found


class TestADelivery:
    def test_is_none_where_nothing_is_said(self, read: Read) -> None:
        assert read(PROJECT).allowlist()["notes"].delivery is None

    def test_needs_a_target_and_a_command_and_has_the_contracts_defaults(self, read: Read) -> None:
        assert delivery_of(read(LEAST)) == Delivery(target="local", run=("python", "-m", "notes"))

    def test_is_read_whole(self, read: Read) -> None:
        delivery = delivery_of(read(WHOLE))
        assert (delivery.build, delivery.output, delivery.integration[-1]) == (("make", "dist"), "dist", "it")
        assert (delivery.port, delivery.staging_port, delivery.keep) == (8080, 8081, 2)
        assert delivery.health == Probe(path="/health", status=204)
        assert (delivery.start_seconds, delivery.drain_seconds) == (5.0, 0.0)
        assert (dict(delivery.environment), delivery.secrets) == ({"MODE": "fast"}, ("DB_PASSWORD",))
        back = ("python", "-m", "notes", "migrate", "back")
        assert delivery.steps == (
            Step(name="migrate", run=back[:4], kind="reversible", undo=back),
            Step(name="mail", run=("python", "-m", "notes", "mail"), kind="final"),
        )
        probes = (Probe(path="/"), Probe(path="/notes?limit=1"))
        assert delivery.watch == WatchPolicy(seconds=90, window=10, rate=50, probes=probes, on_inconclusive="extend")
        assert (delivery.risk.limit, dict(delivery.risk.weights)) == (0.3, {**WEIGHTS, "migrations": 0.5})

    def test_takes_a_plain_path_as_its_health_check(self, read: Read) -> None:
        assert delivery_of(read(LEAST + 'health = "/up"')).health == Probe(path="/up")

    def test_names_its_secrets_for_the_one_process_that_has_them(self, read: Read) -> None:
        assert read(WHOLE).deploy_secrets == {"DB_PASSWORD"}
        assert read(PROJECT).deploy_secrets == frozenset()

    def test_may_have_every_release_approved(self, read: Read) -> None:
        settings = read(PROJECT + 'approve = ["change", "release"]\n')
        assert settings.allowlist()["notes"].consent.approve == ("change", "release")


WATCH = "[projects.notes.delivery.watch]\n"
STEP = '[[projects.notes.delivery.steps]]\nname = "a"\nrun = "x"\n'


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("colour = 1", r"delivery: unknown key 'colour'; known: build, drain_seconds, environment, "),
        ('health = "up"', r"delivery\.health: has to begin with '/'"),
        ("health = { pth = '/' }", r"health: unknown key 'pth'; known: contains, path, status"),
        ("health = { status = 42 }", r"health\.status: Input should be greater than"),
        ("port = 70000", r"delivery\.port: Input should be less than"),
        ("start_seconds = 0", r"start_seconds: Input should be greater than 0"),
        ("start_seconds = inf", r"start_seconds: Input should be"),
        ("keep = 0", r"delivery\.keep: "),
        ('build = "make"', r"delivery: is missing: build needs it"),
        ('output = "dist"', r"delivery: is missing: output needs it"),
        ('build = "make"\noutput = "../up"', r"output: has to be a folder inside the checkout"),
        ('build = "make"\noutput = "/abs"', r"output: has to be a folder inside the checkout"),
        ("environment = { PORT = '1' }", r"environment.*PORT is set by Mendwork"),
        ("environment = { A = '1' }\nsecrets = ['A']", r"delivery: A is in environment too"),
        (WATCH + "window = 400", r"watch: a window of 400 s is longer than the watch of 300 s"),
        (WATCH + "max_errors = 1.5", r"watch\.max_errors: Input should be less than or equal to 1"),
        (WATCH + "level = 0", r"watch\.level: "),
        (WATCH + "rate = 0", r"watch\.rate: "),
        (WATCH + "on_no_data = 'promote'", r"on_no_data: Input should be 'extend', 'ask' or 'roll back'"),
        (WATCH + "paths = ['/']\nprobes = ['/']", r"watch: give probes or paths, not both"),
        (WATCH + "paths = ['a b']", r"watch\.paths\.0: has to begin with '/'"),
        ("[projects.notes.delivery.risk]\nlimit = 2", r"risk\.limit: Input should be less than or equal to 1"),
        ("[projects.notes.delivery.risk]\nweights = { moon = 1 }", r"risk\.weights: unknown key 'moon'; known: att"),
        ("[projects.notes.delivery.risk]\nweights = { auth = 3 }", r"risk\.weights\.auth: Input should be less than"),
        (STEP + "kind = 'soft'", r"steps\.0\.kind: Input should be 'read-only', 'reversible', "),
        (STEP + "kind = 'reversible'", r"steps\.0: a reversible step needs the command that takes it back"),
        (STEP + "kind = 'final'\nundo = 'y'", r"steps\.0: a final step is never taken back"),
        (STEP + "kind = 'final'\n" + STEP + "kind = 'final'", r"delivery: two steps have the name 'a'"),
        (STEP.replace('"a"', '"A b"') + "kind = 'final'", r"steps\.0\.name: "),
    ],
)
def test_what_is_wrong_is_one_sentence_that_names_the_key(read: Read, more: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=rf"mendwork\.toml: projects\.notes\.(delivery\.)?.*{sentence}") as caught:
        read(LEAST + more)
    assert "\n" not in str(caught.value)


def test_an_unknown_target_lists_the_known_ones(read: Read) -> None:
    with pytest.raises(InvalidInput, match=r"delivery\.target: unknown target 'moon'; known: local"):
        read(LEAST.replace('"local"', '"moon"'))


def test_what_looks_like_a_secrets_value_is_not_repeated(read: Read) -> None:
    with pytest.raises(InvalidInput, match=r"secrets\.0: is no name of a variable") as caught:
        read(LEAST + "secrets = ['sk-hunter2']")
    assert "hunter2" not in str(caught.value)


class TestPorts:
    OTHER = LEAST.replace("notes", "calc")

    def test_cannot_be_given_twice_in_one_file(self, read: Read) -> None:
        sentence = (
            r"port 8080 is given twice: projects\.notes\.delivery\.port and projects\.calc\.delivery\.staging_port"
        )
        with pytest.raises(InvalidInput, match=sentence):
            read(LEAST + "port = 8080\n" + self.OTHER + "staging_port = 8080\n")

    def test_cannot_be_temporals(self, read: Read) -> None:
        with pytest.raises(InvalidInput, match=r"port 7233 is given twice: temporal\.port and projects\.notes"):
            read(LEAST + "port = 7233")
        assert delivery_of(read('[temporal]\naddress = "t:7233"\n' + LEAST + "port = 7233")).port == 7233

    def test_may_be_left_to_be_chosen_by_everybody(self, read: Read) -> None:
        assert len(read(LEAST + self.OTHER).allowlist()) == 2


def test_a_providers_key_is_no_secret_of_a_release(read: Read) -> None:
    model = '[models.fast]\nmodel = "openai/x"\napi_key_env = "MY_KEY"\n'
    with pytest.raises(InvalidInput, match="MY_KEY is a provider's key"):
        read(LEAST + "secrets = ['MY_KEY']\n" + model)

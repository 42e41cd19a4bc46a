"""``mendwork config``: what counts, where it comes from, and what is never shown."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cli.config.lines import leaves, line_numbers
from adapters.cli.config.listing import configured, show_all, show_one
from adapters.cli.config.masking import MASK, masked
from domain.errors import InvalidInput, UnknownName

SECRET = "canary-5f1c"
WHOLE = f"""# ours
store = "postgresql://mendwork:{SECRET}@db/mendwork?sslpassword={SECRET}"

[temporal]
port = 7300

[models.fast]
model = "openai/gpt-x"
base_url = "https://{SECRET}@models.example/v1"
api_key_env = "FAST_KEY"

[projects.notes]
repository = "notes"
test = [
  "python3",  # ours
  "-m", "pytest",
]
limits = {{ attempts = 4 }}

[projects.notes.delivery]
target = "local"
run = "python3 app.py --token={SECRET}"
health = "/ok"
secrets = ["DEPLOY_TOKEN"]
environment = {{ API_TOKEN = "{SECRET}", COLOUR = "red" }}

[[projects.notes.delivery.steps]]
name = "one"
run = "true"
kind = "final"

[[projects.notes.delivery.steps]]
name = "two"
run = "true"
kind = "final"
"""
SPELLED = {"temporal": {"prt": "port"}, "projects": {"delivry": "delivery"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mendwork.toml").write_text(WHOLE)
    return tmp_path


async def listed(
    folder: Path, capsys: pytest.CaptureFixture[str], environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Every value with its origin, by key."""
    assert await show_all(start=folder, environment=environment or {}, show_origin=False, json=True) == 0
    return {each["key"]: each for each in json.loads(capsys.readouterr().out)}


async def test_each_value_says_who_gave_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variables = {"MENDWORK_TIMEOUTS__HEARTBEAT": "7", "MENDWORK_TEMPORAL": '{"namespace": "team"}'}
    found = await listed(folder, capsys, variables)
    file = folder / "mendwork.toml"
    origins = {key: each["origin"] for key, each in found.items()}
    assert origins["store"] == f"{file}:2"
    assert origins["temporal.port"] == f"{file}:5"
    assert origins["projects.notes.test"] == f"{file}:14", "where the statement begins"
    assert origins["projects.notes.limits.attempts"] == f"{file}:18"
    assert origins["projects.notes.delivery.health.path"] == f"{file}:23", "given in short"
    assert origins["projects.notes.delivery.steps"] == f"{file}:27"
    assert origins["timeouts.heartbeat"] == "MENDWORK_TIMEOUTS__HEARTBEAT"
    assert origins["temporal.namespace"] == "MENDWORK_TEMPORAL"
    assert origins["temporal.ui_port"] == "default"
    assert origins["projects.notes.branch"] == "default"
    assert (found["timeouts.heartbeat"]["value"], found["temporal.namespace"]["value"]) == (7.0, "team")


async def test_a_variable_counts_before_the_file_and_the_longer_name_before_the_shorter(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {"MENDWORK_TEMPORAL__PORT": "7500", "MENDWORK_TEMPORAL": '{"port": 7400}'}
    port = (await listed(folder, capsys, variables))["temporal.port"]
    assert port == {"key": "temporal.port", "value": 7500, "origin": "MENDWORK_TEMPORAL__PORT"}


async def test_a_variable_that_makes_a_table_of_a_short_form_leaves_the_rest_to_the_defaults(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "MENDWORK_PROJECTS__NOTES__DELIVERY__HEALTH__STATUS"
    found = await listed(folder, capsys, {name: "204"})
    assert found["projects.notes.delivery.health.status"]["origin"] == name
    assert found["projects.notes.delivery.health.path"] == {
        "key": "projects.notes.delivery.health.path",
        "value": "/",
        "origin": "default",
    }


async def test_no_secret_is_shown_but_the_names_of_their_variables_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for json_wanted in (True, False):
        await show_all(start=folder, environment={}, show_origin=True, json=json_wanted)
        told = capsys.readouterr().out
        assert SECRET not in told
        assert "FAST_KEY" in told
        assert "DEPLOY_TOKEN" in told
        assert '"red"' in told
    await show_one("store", start=folder, environment={}, show_origin=False, json=False)
    assert capsys.readouterr().out == f"postgresql://mendwork:{MASK}@db/mendwork?sslpassword={MASK}\n"


async def test_what_an_empty_setting_stands_for_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mendwork.toml").write_text('[models.fast]\nmodel = "openai/gpt-x"\n')
    found = await listed(folder, capsys)
    assert found["store"]["value"] == f"sqlite+aiosqlite:///{folder}/.mendwork/mendwork.db"
    assert found["roles.coding"]["value"] == ["fast"]


async def test_one_value_is_printed_alone_and_a_section_as_its_lines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await show_one("temporal.port", start=folder, environment={}, show_origin=False, json=False)
    assert capsys.readouterr().out == "7300\n"
    await show_one("temporal.port", start=folder, environment={}, show_origin=True, json=True)
    assert json.loads(capsys.readouterr().out)["origin"].endswith("mendwork.toml:5")
    await show_one("temporal", start=folder, environment={}, show_origin=True, json=False)
    told = capsys.readouterr().out.splitlines()
    assert f"{folder}/mendwork.toml:5  temporal.port = 7300" in told
    assert 'default  temporal.namespace = "default"' in told


async def test_a_key_that_nobody_knows_is_refused_with_the_nearest(folder: Path) -> None:
    with pytest.raises(UnknownName, match=r"'temporal\.prt'; did you mean 'temporal\.port'\?"):
        await show_one("temporal.prt", start=folder, environment={}, show_origin=False, json=False)
    with pytest.raises(UnknownName, match="`mendwork config list` shows"):
        await show_one("\x1b[2Jzzzzzzzz", start=folder, environment={}, show_origin=False, json=False)


def test_every_unknown_key_of_the_file_is_said_with_its_line_and_the_nearest_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    misspelt = (
        WHOLE.replace("port = 7300", "prt = 7300")
        .replace("attempts = 4", "atempts = 4")
        .replace('name = "two"', 'nme = "two"')
        .replace("[models.fast]", "[modles.fast]")
    )
    (tmp_path / "mendwork.toml").write_text(misspelt)
    with pytest.raises(InvalidInput, match="has 4 unknown keys"):
        configured(start=tmp_path, environment={})
    file = tmp_path / "mendwork.toml"
    assert capsys.readouterr().err.splitlines() == [
        f"{file}:5: unknown key 'temporal.prt'; did you mean 'port'?",
        f"{file}:7: unknown key 'modles'; did you mean 'models'?",
        f"{file}:18: unknown key 'projects.notes.limits.atempts'; did you mean 'attempts'?",
        f"{file}:27: unknown key 'projects.notes.delivery.steps.nme'; did you mean 'name'?",
    ]


def test_a_key_without_a_near_one_comes_with_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mendwork.toml").write_text("[sandbox]\nzzz = 1\n")
    with pytest.raises(InvalidInput, match=r"has 1 unknown key$"):
        configured(start=tmp_path, environment={})
    assert "unknown key 'sandbox.zzz'; known: engine" in capsys.readouterr().err


def test_another_mistake_is_told_as_the_settings_tell_it(tmp_path: Path) -> None:
    (tmp_path / "mendwork.toml").write_text("[temporal]\nport = 'x'\n")
    with pytest.raises(InvalidInput, match=r"mendwork\.toml: temporal\.port: "):
        configured(start=tmp_path, environment={})
    (tmp_path / "mendwork.toml").write_text("[temporal\n")
    with pytest.raises(InvalidInput, match="line 1"):
        configured(start=tmp_path, environment={})


NAMES = st.text(st.sampled_from("abc_-"), min_size=1, max_size=4)
SCALARS = st.one_of(st.integers(), st.booleans(), st.lists(st.integers(), max_size=3), st.sampled_from(["x", '"', "["]))
TREES = st.recursive(
    st.dictionaries(NAMES, SCALARS, max_size=4), lambda below: st.dictionaries(NAMES, below | SCALARS, max_size=4)
)


def written(tree: Mapping[str, Any], above: tuple[str, ...], numbers: dict[tuple[str, ...], int]) -> list[str]:
    """A document of ``tree`` after ``len(numbers)`` values, each value over one line or several."""
    lines: list[str] = []

    def add(table: Mapping[str, Any], path: tuple[str, ...]) -> None:
        if path:
            lines.append(f"[{'.'.join(path)}]  # a table")
        for key, value in table.items():
            if not isinstance(value, dict):
                numbers[(*path, key)] = len(lines) + 1
                lines.extend(f"{key} = {json.dumps(value, indent=1 if isinstance(value, list) else None)}".split("\n"))
        for key, value in table.items():
            if isinstance(value, dict):
                lines.append("")
                add(value, (*path, key))

    add(tree, above)
    return lines


@given(TREES)
def test_every_value_of_a_document_has_the_line_on_which_it_begins(tree: dict[str, Any]) -> None:
    numbers: dict[tuple[str, ...], int] = {}
    text = "\n".join(written(tree, (), numbers))
    values = {keys for keys, value in leaves(tomllib.loads(text)).items() if value != {}}
    found = line_numbers(text)
    assert {keys: found[keys] for keys in values} == numbers


@given(
    st.sampled_from(["postgresql://user:{}@host/db", "https://{}@host/v1", "https://u:{}@host", "x?api_key={}&y=1"]),
    st.text(st.characters(codec="ascii", categories=("L", "N"), include_characters="-_:%!"), min_size=1),
)
def test_a_password_in_an_address_is_never_shown(form: str, secret: str) -> None:
    told = masked(("projects", "base_url"), form.format(f"\u00a7{secret}"))
    assert "\u00a7" not in told


@pytest.mark.parametrize("key", ["password", "api_key", "token", "client_secret", "keyphrase_token", "credentials"])
def test_what_is_called_a_secret_is_one(key: str) -> None:
    assert masked(("encryption", key), "value") == MASK
    assert masked(("encryption", key), ["value"]) == [MASK]
    assert masked(("encryption", key), "") == "", "that nothing is set is no secret"


@pytest.mark.parametrize("key", ["port", "heartbeat", "keep", "tokens_limit", "monkey"])
def test_what_is_none_stays(key: str) -> None:
    assert masked(("section", key), "value") == "value"

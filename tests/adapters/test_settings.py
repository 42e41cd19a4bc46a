"""What people write into ``mendwork.toml``, the environment and flags, and what they are told when it is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from adapters.settings import Settings, load_settings
from domain.errors import InvalidInput
from domain.money.usage import Price

WHOLE = """
store = "postgresql://mendwork@db/mendwork"

[temporal]
address = "temporal:7233"

[timeouts]
heartbeat = 2

[models.fast]
model = "openai/gpt-x"
api_key_env = "MY_KEY"
input_price = 0.5
output_price = 2

[models.slow]
model = "anthropic/claude-x"

[roles]
coding = ["slow"]

[projects.notes]
repository = "../notes"
test = "python -m pytest -q"
toolchain = ["tools"]
limits = { attempts = 5 }
"""

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """``load(text, VARIABLE=…, flags=…)``: write the file, read the settings from its folder."""

    def load(text: str | bytes = "", *, flags: Mapping[str, Any] | None = None, **environment: str) -> Settings:
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "mendwork.toml").write_bytes(content)
        return load_settings(start=tmp_path, environment=environment, flags=flags)

    return load


class TestFinding:
    def test_an_empty_file_has_working_defaults(self, load: Load, tmp_path: Path) -> None:
        settings = load("")
        assert settings.root == tmp_path
        assert settings.state == tmp_path / ".mendwork"
        assert settings.store_url == f"sqlite+aiosqlite:///{tmp_path}/.mendwork/mendwork.db"
        assert settings.temporal.port == 7233

    def test_the_file_is_found_from_a_folder_below(self, load: Load, tmp_path: Path) -> None:
        load("[temporal]\nport = 1")
        below = tmp_path / "a" / "b"
        below.mkdir(parents=True)
        assert load_settings(start=below, environment={}).root == tmp_path

    def test_a_named_file_wins_over_the_one_here(self, load: Load, tmp_path: Path) -> None:
        named = tmp_path / "elsewhere" / "other.toml"
        named.parent.mkdir()
        named.write_text("[temporal]\nport = 9")
        settings = load("[temporal]\nport = 1", MENDWORK_CONFIG=str(named))
        assert (settings.temporal.port, settings.root) == (9, named.parent)

    def test_no_file_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match=r"no mendwork\.toml in .* or above; it names the projects"):
            load_settings(start=tmp_path, environment={})

    def test_a_named_file_that_is_not_there_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match=r"MENDWORK_CONFIG names /none\.toml, which is no file"):
            load_settings(start=tmp_path, environment={"MENDWORK_CONFIG": "/none.toml"})


class TestReading:
    def test_a_whole_file_is_read(self, load: Load, tmp_path: Path) -> None:
        settings = load(WHOLE)
        project = settings.allowlist()["notes"]
        assert project.repository == str(tmp_path.parent / "notes")
        assert project.test == ("python", "-m", "pytest", "-q")
        assert project.toolchain == (str(tmp_path / "tools"),)
        assert (project.branch, project.limits.attempts, project.limits.tasks) == ("main", 5, 50)
        assert settings.store_url == "postgresql://mendwork@db/mendwork"
        assert (settings.timeouts.heartbeat, settings.timeouts.sticky) == (2.0, 5.0)

    def test_prices_are_per_million_tokens_and_unknown_without_both(self, load: Load) -> None:
        settings = load(WHOLE)
        assert settings.models["fast"].price() == Price(
            input_micros_per_million=500_000, output_micros_per_million=2_000_000
        )
        assert settings.models["slow"].price() is None

    def test_a_role_without_a_chain_asks_every_model_in_order(self, load: Load) -> None:
        settings = load(WHOLE)
        assert settings.chain("coding") == ("slow",)
        assert settings.chain("reasoning") == ("fast", "slow")

    def test_a_chain_with_an_unknown_model_lists_the_known_ones(self, load: Load) -> None:
        with pytest.raises(InvalidInput, match=r"ROLES__CODING: unknown model .*'fats'; known: fast, slow"):
            load(WHOLE, MENDWORK_ROLES__CODING="fats")

    def test_a_project_name_that_cannot_be_a_branch_is_refused(self, load: Load) -> None:
        with pytest.raises(InvalidInput, match="'My App'"):
            load('[projects."My App"]\nrepository = "."\ntest = "t"')


class TestPrecedence:
    def test_the_environment_wins_over_the_file_and_flags_over_both(self, load: Load) -> None:
        flags = {"temporal": {"port": 3}}
        file = "[temporal]\nport = 1\nui_port = 1\nnamespace = 'file'"
        environment = {"MENDWORK_TEMPORAL__PORT": "2", "MENDWORK_TEMPORAL__UI_PORT": "2"}
        temporal = load(file, flags=flags, **environment).temporal
        assert (temporal.port, temporal.ui_port, temporal.namespace) == (3, 2, "file")

    def test_a_variable_may_name_a_value_without_a_section(self, load: Load) -> None:
        assert load(WHOLE, MENDWORK_STORE="sqlite:////x.db").store == "sqlite:////x.db"

    def test_a_variable_reaches_into_projects_and_limits(self, load: Load) -> None:
        settings = load(
            WHOLE,
            MENDWORK_PROJECTS__NOTES__LIMITS__ATTEMPTS="7",
            MENDWORK_PROJECTS__NOTES__TEST="node --test 'a b'",
            MENDWORK_PROJECTS__NOTES__BRANCH="2024",
        )
        project = settings.projects["notes"]
        assert (project.limits.attempts, project.test, project.branch) == (7, ("node", "--test", "a b"), "2024")

    @pytest.mark.parametrize("chain", ['["slow", "fast"]', "slow,fast", " slow , fast "])
    def test_lists_are_json_or_separated_by_commas(self, load: Load, chain: str) -> None:
        assert load(WHOLE, MENDWORK_ROLES__CODING=chain).chain("coding") == ("slow", "fast")

    def test_a_model_may_come_from_the_environment_alone(self, load: Load) -> None:
        settings = load("", MENDWORK_MODELS__LOCAL__MODEL="openai/x", MENDWORK_MODELS__LOCAL__BASE_URL="http://h/v1")
        assert settings.models["local"].base_url == "http://h/v1"

    def test_the_environment_that_was_passed_in_is_the_only_one(self, tmp_path: Path) -> None:
        (tmp_path / "mendwork.toml").write_text("")
        program = (
            "from pathlib import Path; import sys; from adapters.settings import load_settings; "
            "print(load_settings(start=Path(sys.argv[1]), environment={}).temporal.port)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env={**os.environ, "MENDWORK_TEMPORAL__PORT": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "7233\n"

    def test_other_variables_with_our_prefix_are_left_alone(self, load: Load) -> None:
        assert load("", MENDWORK_PORT="tcp://10.0.0.1:80", MENDWORK_ROOT="/etc").root != Path("/etc")


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("[temporal\nport = 1", r"mendwork\.toml: .*\(at line 1, column 10\)"),
            ("a = 1\na = 2\n", r"mendwork\.toml: Cannot overwrite a value \(at line 2, column 6\)"),
            (b"store = '\xff'", r"mendwork\.toml: is not UTF-8"),
            (
                "[temporal]\nport = 70000",
                r"mendwork\.toml: temporal\.port: Input should be less than or equal to 65535",
            ),
            ("[temporal]\nport = 'x'", r"mendwork\.toml: temporal\.port: Input should be a valid integer"),
            ("temporal = 1", r"mendwork\.toml: temporal: Input should be a valid dictionary"),
            ("[temporal]\nprot = 1", r"temporal: unknown key 'prot'; known: address, build_id, deployment, namespace"),
            (
                "[tempral]",
                r"mendwork\.toml: unknown key 'tempral'; known: .*models.*projects, roles, sandbox, shared, store",
            ),
            ("root = '/etc'", r"mendwork\.toml: unknown key 'root'; known: .*models.*projects"),
            ("[projects.a]\ntest = 't'", r"mendwork\.toml: projects\.a\.repository: Field required"),
            ("[projects.a]\nrepository='.'\ntest=''", r"projects\.a: the test command is missing"),
            ("[projects.a]\nrepository='.'\ntest=\"it's\"", r"projects\.a\.test: No closing quotation"),
            ("[projects.a]\nrepository='.'\ntest='t'\nlimits={tasks=0}", r"projects\.a\.limits: tasks must be a numb"),
            ("[projects.a]\nrepository='.'\ntest='t'\nlimits={model_seconds=nan}", r"model_seconds must be a number"),
            (
                "[projects.a]\nrepository='.'\ntest='t'\nlimits={x=0}",
                r"limits: unknown key 'x'; known: artifact_bytes, attempts, ",
            ),
            ("[timeouts]\nheartbeat = inf", r"timeouts\.heartbeat: Input should be a finite number"),
            ("[models.a]\nmodel='m'\ninput_price=inf", r"models\.a\.input_price: Input should be a finite number"),
            ("[models.a]\nmodel=''", r"models\.a\.model: String should have at least 1 character"),
            ("[timeouts]\nheartbeat = 0\nsticky = 0", r"timeouts\.heartbeat: .* \(and 1 more\)"),
        ],
    )
    def test_a_mistake_in_the_file_is_one_sentence(self, load: Load, text: str | bytes, sentence: str) -> None:
        with pytest.raises(InvalidInput, match=sentence) as caught:
            load(text)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "value", "sentence"),
        [
            ("MENDWORK_TEMPORAL__PORT", "x", r"^MENDWORK_TEMPORAL__PORT: temporal\.port: Input should be"),
            ("MENDWORK_TEMPORAL__PROT", "1", r"^MENDWORK_TEMPORAL__PROT: temporal: unknown key 'prot'; known: addr"),
            ("MENDWORK_TEMPRAL__PORT", "1", r"^MENDWORK_TEMPRAL__PORT: unknown key 'tempral'; known: .*models, "),
            ("MENDWORK_ROOT__X", "1", r"^MENDWORK_ROOT__X: unknown key 'root'"),
            ("MENDWORK_TEMPORAL", "x", r"^MENDWORK_TEMPORAL: temporal: Input should be a valid dictionary"),
            ("MENDWORK_ROLES__CODING", '["a"', r"^MENDWORK_ROLES__CODING: begins like JSON and is none: .*column 5\)"),
            ("MENDWORK_MODELS__X__BASE_URL", "http://h", r"^MENDWORK_MODELS__X__BASE_URL: models\.x\.model: Field req"),
            ("MENDWORK_PROJECTS__NOTES__LIMITS__TASKS", "0", r"^MENDWORK_PROJECTS__NOTES__LIMITS__TASKS: .*tasks must"),
        ],
    )
    def test_a_mistake_in_the_environment_names_the_variable(
        self, load: Load, name: str, value: str, sentence: str
    ) -> None:
        with pytest.raises(InvalidInput, match=sentence):
            load(WHOLE, **{name: value})

    def test_a_mistake_in_a_flag_names_the_command_line(self, load: Load) -> None:
        with pytest.raises(InvalidInput, match=r"^the command line: temporal\.port: Input should be a valid integer"):
            load(WHOLE, flags={"temporal": {"port": "x"}})

    def test_a_mistake_in_the_file_is_not_blamed_on_a_good_variable(self, load: Load) -> None:
        with pytest.raises(InvalidInput, match=r"mendwork\.toml: temporal\.port"):
            load("[temporal]\nport = 'x'", MENDWORK_TEMPORAL__UI_PORT="1")


class TestSecrets:
    def test_no_setting_is_a_key(self) -> None:
        names = {name for section in _sections(Settings) for name in section.model_fields}
        assert {n for n in names if any(w in n for w in ("key", "secret", "token", "password"))} == {
            "api_key_env",
            "secrets",  # names of variables, as api_key_env is
            "keys",  # names of files, as token_file is
            "token_file",
            "store_password",  # of the environment or a file of its own, and refused in mendwork.toml
            "access_key",  # both, of the bucket of blobs, likewise
            "secret_key",
        }

    @pytest.mark.parametrize("line", ['api_key = "sk-hunter2"', 'api_key_env = "sk-hunter2"'])
    def test_a_key_in_the_file_is_refused_without_repeating_it(self, load: Load, line: str) -> None:
        with pytest.raises(InvalidInput, match=r"models\.fast") as caught:
            load(f'[models.fast]\nmodel = "openai/x"\n{line}')
        assert "hunter2" not in str(caught.value)

    def test_no_key_of_payloads_lies_where_a_projects_sandbox_sees_it(self, load: Load) -> None:
        project = "[projects.notes]\nrepository = '.'\ntest = 't'\ntoolchain = ['tools']\n"
        with pytest.raises(InvalidInput, match="a key lies in the toolchain of notes, which sandboxes see"):
            load(project + '[encryption]\nkeys = ["keys/../tools/lib/a.key"]')
        assert load(project + '[encryption]\nkeys = ["toolshed/a.key"]').key_files[0].name == "a.key"

    def test_the_stores_password_is_not_in_the_text_of_the_settings(self, load: Load) -> None:
        settings = load('store = "postgresql://u:hunter2@db/x"')
        assert "hunter2" not in f"{settings} {settings!r}"

    def test_a_broken_value_is_not_repeated(self, load: Load) -> None:
        with pytest.raises(InvalidInput) as caught:
            load("", MENDWORK_STORE='["hunter2"]', MENDWORK_TEMPORAL__PORT="hunter2")
        assert "hunter2" not in str(caught.value)


def _sections(section: type[BaseModel]) -> list[type[BaseModel]]:
    below: list[type[BaseModel]] = [section]
    for each in section.model_fields.values():
        for kind in (each.annotation, *getattr(each.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                below += _sections(kind)
    return below

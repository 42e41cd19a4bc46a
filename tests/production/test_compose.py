"""docker-compose.yml and what it mounts: every file is there, no secret is in it, each class sees its own alone."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from adapters.cli.serving.seen import CLASSES
from adapters.settings import load_settings
from adapters.temporal.server import RETENTION, TUNED
from domain.errors import InvalidInput
from tests.production.compose import CHECKOUT, FILE, OURS, resolved, services, targets

ENDS = {"temporal-schema", "temporal-namespace"}
SECRET = re.compile(r"(?i)(password|passwd|secret|token|api_?key|private_?key|credential)")
CONFIGURATION = CHECKOUT / "ops" / "compose" / "mendwork.toml"


def volumes(service: str) -> dict[str, str]:
    """What is mounted, by where; "" is a volume without a name, which each container has for itself."""
    found = (each.removesuffix(":ro") for each in services()[service].get("volumes", []))
    return {target: source for source, _, target in (each.removesuffix(":rw").rpartition(":") for each in found)}


class TestFile:
    def test_docker_compose_of_debian_reads_it_with_an_empty_environment(self) -> None:
        said = subprocess.run(["docker-compose", "version", "--short"], capture_output=True, text=True, check=True)
        assert said.stdout.startswith("1.29"), "newer ones read what this one reads, not the other way round"
        assert set(OURS) < set(services())

    def test_every_file_that_is_mounted_is_in_the_checkout(self) -> None:
        named = {source for name in services() for source in volumes(name).values() if source.startswith("/")}
        made = {str(CHECKOUT / "repositories")}
        assert len(named - made) >= 8
        assert [source for source in named - made if not Path(source).exists()] == []

    def test_every_service_has_a_health_check_or_says_why_not(self) -> None:
        without = {name for name, each in services().items() if "healthcheck" not in each}
        assert without == ENDS
        for name in ENDS:
            assert f"  {name}: # ends; no health check:" in FILE.read_text()
            assert services()[name]["restart"] == "on-failure"

    def test_every_service_that_stays_comes_again_by_itself(self) -> None:
        assert {each["restart"] for name, each in services().items() if name not in ENDS} == {"unless-stopped"}

    def test_who_waits_for_somebody_waits_until_it_is_well(self) -> None:
        waits = {(name, on): how["condition"] for name, each in services().items()
                 for on, how in each.get("depends_on", {}).items()}  # fmt: skip
        for (name, on), condition in waits.items():
            wanted = "service_completed_successfully" if on in ENDS else "service_healthy"
            assert condition == wanted or (name, on) == ("grafana", "prometheus"), (name, on)
        assert all(("temporal-namespace" in services()[name]["depends_on"]) for name in OURS)

    def test_every_image_of_others_has_a_version(self) -> None:
        images = {name: each["image"] for name, each in services().items() if "build" not in each}
        assert all(re.search(r":v?\d+(\.\d+)*", image) for image in images.values()), images
        assert images["temporal"].endswith(":1.29.1")

    def test_only_this_machine_reaches_what_is_published(self) -> None:
        published = [port for each in services().values() for port in each.get("ports", [])]
        assert published
        assert all(port.startswith("127.0.0.1:") for port in published), "the UI and Prometheus ask for no password"


class TestSecrets:
    def test_no_variable_and_no_command_holds_one(self) -> None:
        for name, each in services().items():
            for variable, value in each.get("environment", {}).items():
                named = variable.endswith(("_FILE", "__FILE")) or variable == "MENDWORK_SECRETS"
                assert named or not SECRET.search(variable), f"{name}: {variable}"
                assert not SECRET.search(str(value)) or str(value).startswith("/run/secrets"), f"{name}: {variable}"
            words = " ".join([*map(str, each.get("command") or []), *map(str, each.get("entrypoint") or [])])
            assert not SECRET.search(words), name

    def test_no_secret_is_in_the_repository_and_every_one_is_used(self) -> None:
        declared = {name: Path(each["file"]) for name, each in resolved()["secrets"].items()}
        assert {path.parent for path in declared.values()} == {CHECKOUT / "secrets"}
        used = {each["source"] for service in services().values() for each in service.get("secrets", [])}
        assert used == set(declared)
        assert "/secrets/" in (CHECKOUT / ".gitignore").read_text().splitlines()

    def test_each_class_gets_what_it_may_know(self) -> None:
        everybodys, stores = {"payloads.key"}, {"MENDWORK_STORE_PASSWORD"}
        assert {name: targets(name) - everybodys for name in OURS} == {
            "saga": stores,
            "workspace": set(),
            "model": {*stores, "PROVIDER_API_KEY"},
            "sandbox": set(),
            "deploy": set(),
        }
        assert targets("temporal") == targets("temporal-schema") == {"temporal_db_password"}

    def test_what_models_write_runs_where_nothing_leads_outside(self) -> None:
        networks = resolved()["networks"]
        open_ones = {name for name, each in networks.items() if not (each or {}).get("internal")}
        assert {name for name in OURS if set(services()[name]["networks"]) & open_ones} == {"model"}
        assert {name for name in services() if "data" in services()[name]["networks"]} == {
            *("postgresql", "temporal", "temporal-schema", "saga", "model"),
        }

    def test_repositories_are_the_workspace_workers_alone(self) -> None:
        assert [name for name in OURS if "/srv/repositories" in volumes(name)] == ["workspace"]
        mirrors = "/srv/mendwork/.mendwork/mirrors"
        assert {name for name in OURS if mirrors in volumes(name)} == {"workspace", "sandbox"}

    def test_the_script_makes_all_of_them_once(self, tmp_path: Path) -> None:
        script = CHECKOUT / "ops" / "compose" / "secrets.sh"
        first = subprocess.run([script, tmp_path / "s"], capture_output=True, text=True, check=True)
        assert "put your provider's key into" in first.stderr
        before = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}
        assert set(before) == {path.rpartition("/")[2] for path in (s["file"] for s in resolved()["secrets"].values())}
        assert len(set(before.values())) == len(before), "each is another one"
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "s" / "payloads.key").stat().st_mode & 0o777 == 0o400
        (tmp_path / "s" / "provider_api_key").chmod(0o600)
        (tmp_path / "s" / "provider_api_key").write_text("mine")
        again = subprocess.run([script, tmp_path / "s"], capture_output=True, text=True, check=True)
        assert again.stderr == ""
        after = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}
        assert after == {**before, "provider_api_key": b"mine"}


class TestTogether:
    """What a run of all of it showed."""

    def test_containers_of_one_class_do_not_share_a_state_folder(self) -> None:
        """They have the same process numbers, by which those of one folder tell each other apart."""
        own = {name: volumes(name)["/srv/mendwork/.mendwork"] for name in OURS}
        assert own == {**dict.fromkeys(OURS, ""), "deploy": "deploy"}, "a site of releases stays, and its worker is one"

    def test_no_option_is_one_of_the_docker_command_alone(self) -> None:
        given = {option for each in services().values() for option in each.get("security_opt", [])}
        assert given == {"seccomp:unconfined", "apparmor:unconfined"}, "1.29 hands others on as they are"

    def test_temporals_tools_ask_for_addresses_alone_where_nothing_leads_outside(self) -> None:
        """gRPC's own resolver asks for a TXT record too, which Docker 20.10 leaves without any answer there."""
        tools = services()["temporal-namespace"]
        assert tools["environment"]["TEMPORAL_ADDRESS"] == "passthrough:///temporal:7233"
        assert set(tools["networks"]) == {"work"}

    def test_prometheus_writes_where_its_volume_is(self) -> None:
        assert f"--storage.tsdb.path={min(volumes('prometheus'), key=len)}" in services()["prometheus"]["command"]


class TestConfiguration:
    def test_the_configuration_that_is_mounted_can_be_used(self) -> None:
        settings = load_settings(start=CONFIGURATION.parent, environment={"MENDWORK_STORE_PASSWORD": "p/w"})
        assert settings.store_url == "postgresql://mendwork:p%2Fw@postgresql:5432/mendwork"
        assert settings.temporal.address == services()["temporal-ui"]["environment"]["TEMPORAL_ADDRESS"]
        assert {model.api_key_env for model in settings.models.values()} <= targets("model")
        ours = {str(file).removeprefix("/run/secrets/") for file in settings.key_files}
        assert all(ours <= targets(name) for name in (*OURS, "codec"))
        assert settings.codec.token_file.removeprefix("/run/secrets/") in targets("codec")

    def test_each_worker_is_asked_at_its_own_port_and_so_does_prometheus(self) -> None:
        settings = load_settings(start=CONFIGURATION.parent, environment={})
        ports = {name: settings.telemetry.listens(CLASSES.index(name)) for name in CLASSES}
        scraped = yaml.safe_load((CHECKOUT / "ops" / "compose" / "prometheus.yml").read_text())["scrape_configs"]
        found = {each["names"][0]: each["port"] for job in scraped for each in job["dns_sd_configs"]}
        for name in OURS:
            _, port = ports[name] or ("", 0)
            assert services()[name]["environment"]["READY"] == f"http://127.0.0.1:{port}/readyz"
            assert services()[name]["command"][-1] == name
            assert found[name] == port
        assert set(found) <= set(services())
        assert all("watched" in services()[name]["networks"] for name in found)

    def test_temporal_gets_the_keys_that_the_embedded_server_gets(self) -> None:
        read = yaml.safe_load((CHECKOUT / "ops" / "temporal" / "dynamic.yaml").read_text())
        assert {key: values[0]["value"] for key, values in read.items()} == {
            key: yaml.safe_load(value) for key, value in TUNED.items()
        }
        hours = RETENTION.total_seconds() / 3600
        assert services()["temporal-namespace"]["environment"]["RETENTION"] == f"{hours:.0f}h"

    @pytest.mark.parametrize("broken", ["store_password = 'x'", "stor = 'x'"])
    def test_a_mistake_in_it_would_be_told(self, tmp_path: Path, broken: str) -> None:
        (tmp_path / "mendwork.toml").write_text(f"{broken}\n{CONFIGURATION.read_text()}")
        with pytest.raises(InvalidInput):
            load_settings(start=tmp_path, environment={})


class TestImage:
    def test_nothing_but_what_runs_is_in_it(self) -> None:
        lines = (CHECKOUT / ".dockerignore").read_text().splitlines()
        kept = {line[1:] for line in lines if line.startswith("!")}
        assert "*" in lines
        wheel = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
        assert kept == {*wheel["only-include"], "setup", "pyproject.toml", "uv.lock", "README.md"}
        assert all((CHECKOUT / name).exists() for name in kept)

    def test_it_does_not_run_as_root(self) -> None:
        lines = (CHECKOUT / "Dockerfile").read_text().splitlines()
        assert [line for line in lines if line.startswith("USER ")] == ["USER mendwork"]
        assert any("useradd --uid 1000" in line for line in lines), "the owner that ops/compose/secrets.sh gives keys"
        isolating = ["sandbox", "deploy"]
        assert [name for name in (*OURS, "codec") if services()[name].get("user") == "root"] == isolating
        assert all(services()[name]["command"][0].endswith("/isolating.sh") for name in isolating)
        assert [name for name in (*OURS, "codec") if services()[name].get("cap_add")] == isolating
        start = (CHECKOUT / "ops" / "compose" / "isolating.sh").read_text()
        assert start.rstrip().endswith('--no-new-privs \\\n    python -P -m worker "$1"')
        assert "exec setpriv --reuid mendwork --regid mendwork --init-groups --bounding-set=-all" in start

"""What a production site has in one place: PostgreSQL, Temporal's server on it, set up by the scripts that
docker-compose.yml mounts; S3-like blobs, and a provider of models on each host."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from adapters.temporal.finding import find_server
from setup.programs import find_program
from tests.postgres import Cluster, running_cluster
from tests.production.compose import CHECKOUT
from tests.production.network import Host
from tests.spawning import printed, spawned

OPS = CHECKOUT / "ops"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """``secrets`` is the folder that ops/compose/secrets.sh filled; ``temporal`` the address of its frontend."""

    folder: Path
    host: Host
    cluster: Cluster
    secrets: Path

    @property
    def postgres(self) -> str:
        return f"{self.host.address}:5432"

    @property
    def temporal(self) -> str:
        return f"{self.host.address}:7233"

    @property
    def environment(self) -> dict[str, str]:
        """As the scripts of ops/ have it in their images."""
        programs = (self.cluster.binaries, find_program("temporal-server").parent, find_temporal().parent)
        return {
            "PATH": ":".join([*map(str, programs), os.defpath, "/usr/sbin", "/sbin"]),
            "HOME": str(self.folder),
            "TEMPORAL_DB_HOST": self.postgres,
            "TEMPORAL_DB_PASSWORD_FILE": str(self.secrets / "temporal_db_password"),
            "TEMPORAL_BROADCAST_ADDRESS": self.host.address,
            "TEMPORAL_ADDRESS": self.temporal,
        }

    def run(self, *argv: object, **more: str) -> str:
        """What a command prints; it has to end well."""
        return printed(self.host.inside(*argv), environment={**self.environment, **more})

    def ask_temporal(self, *words: str) -> str:
        """What the Temporal CLI prints."""
        return self.run(find_temporal(), *words)


def find_temporal() -> Path:
    return find_server(explicit=None, environment=os.environ)


@contextlib.contextmanager
def serving(folder: Path, host: Host) -> Iterator[Site]:
    """PostgreSQL with its accounts, Temporal's schemas and server, and its namespace."""
    secrets = folder / "secrets"
    subprocess.run([OPS / "compose" / "secrets.sh", secrets], check=True, capture_output=True)
    with running_cluster() as cluster:
        site = Site(folder=folder, host=host, cluster=cluster, secrets=secrets)
        _open(cluster, host)
        databases = OPS / "postgresql" / "databases.sh"
        site.run(databases, PGHOST=str(cluster.folder), PGUSER=cluster.user, SECRETS=str(secrets))
        site.run(OPS / "temporal" / "schema.sh")
        start = host.inside(OPS / "temporal" / "start.sh")
        with spawned(start, log=folder / "temporal.log", folder=folder, environment=site.environment):
            site.run(OPS / "temporal" / "namespace.sh")
            yield site


def _open(cluster: Cluster, host: Host) -> None:
    """Start the cluster again, on the host's address, where a password is asked for."""
    cluster.stop()
    with (cluster.folder / "data" / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 10.77.0.0/24 scram-sha-256\n")
    options = f"-c listen_addresses={host.address} -k {cluster.folder} -c fsync=off -c max_connections=300"
    control = [cluster.binaries / "pg_ctl", "-D", cluster.folder / "data", "-l", cluster.folder / "log", "-w"]
    as_user = ["setpriv", "--reuid", cluster.user, "--regid", cluster.user, "--clear-groups"]
    subprocess.run(
        host.inside(*as_user, *control, "-t", "60", "-o", options, "start"),
        cwd="/",
        env={"PATH": os.defpath + ":/usr/sbin:/sbin", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=90,
        check=True,
    )

"""A real S3 server on a free port: versitygw, whose buckets are folders that can be looked into from outside."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adapters.blobs.bucket import Bucket
from setup.programs import find_program
from tests.trees import files_below

ACCESS, SECRET = "mendwork-tests", "canary-bucket-7f21"
BUCKET = "blobs"


@dataclass(kw_only=True)
class S3:
    """``folder`` has a folder for each bucket; the one that is there is BUCKET."""

    folder: Path
    host: str
    port: int
    log: Path
    users: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The key, as people give it to Mendwork."""
        return {"MENDWORK_BLOBS__ACCESS_KEY": ACCESS, "MENDWORK_BLOBS__SECRET_KEY": SECRET}

    def settings(self, prefix: str) -> str:
        """The section of a mendwork.toml."""
        return f'\n[blobs]\nurl = "s3://{BUCKET}/{prefix}"\nendpoint = "{self.endpoint}"\n'

    def bucket(self, prefix: str = "", **changes: str) -> Bucket:
        """With the right key, but for ``changes``."""
        given = {"name": BUCKET, "endpoint": self.endpoint, "access_key": ACCESS, "secret_key": SECRET, **changes}
        return Bucket(prefix=prefix, **given)

    def path(self, prefix: str, digest: str) -> Path:
        """The file behind a blob."""
        return self.folder / BUCKET / prefix / digest[:2] / digest[2:]

    def listing(self, prefix: str = "") -> dict[str, bytes]:
        """What lies there, by its name below the prefix; looked at without any of our code, or the server's."""
        root = self.folder / BUCKET / prefix
        return {
            str(path.relative_to(root)): path.read_bytes() for path in files_below(root) if ".sgwtmp" not in path.parts
        }

    def blobs(self, prefix: str = "") -> set[str]:
        """The digests of what lies there, every one of them held against its bytes."""
        found = {name.replace("/", ""): content for name, content in self.listing(prefix).items()}
        for digest, content in found.items():
            assert hashlib.sha256(content).hexdigest() == digest
        return set(found)

    def put(self, prefix: str, content: bytes) -> str:
        """A blob that appears without Mendwork; its digest."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.path(prefix, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return digest

    def start(self) -> None:
        """Until it answers."""
        argv = [
            str(find_program("versitygw")),
            "--port",
            f"{self.host}:{self.port}",
            "--health",
            "/health",
            "--quiet",
            "--keep-alive",
        ]
        argv += ["--iam-dir", str(self.users)]
        environment = {"PATH": os.environ["PATH"], "ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, "posix", str(self.folder)], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + 30
        while not self._answers():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"the S3 server does not answer: {self.log.read_text()}"
            time.sleep(0.02)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """And wait for its end."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as asked:
                asked.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
                return b" 200 " in asked.recv(100)
        except OSError:
            return False


@contextlib.contextmanager
def serving_s3(host: str = "127.0.0.1") -> Iterator[S3]:
    """One with an empty bucket, on an address of this machine; nothing is left of it."""
    memory = Path("/dev/shm")  # what it writes is forgotten with the test
    folder = Path(tempfile.mkdtemp(prefix="mendwork-s3-", dir=memory if memory.is_dir() else None))
    try:
        (folder / "data" / BUCKET).mkdir(parents=True)
        (folder / "users").mkdir()
        server = S3(
            folder=folder / "data", host=host, port=_free_port(host), log=folder / "log", users=folder / "users"
        )
        try:
            server.start()
            yield server
        finally:
            server.kill(signal.SIGTERM)
    finally:
        shutil.rmtree(folder)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port

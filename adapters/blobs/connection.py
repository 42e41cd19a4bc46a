"""The client of a bucket and the threads that it is used from: one of each a process.

Retries, time limits, proxies and keys are ours: what the environment and the files of a person's home say about
Amazon's services is not looked at, and no metadata service is asked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from adapters.blobs.bucket import Bucket
from domain.errors import InvalidInput

T = TypeVar("T")

THREADS = 8
CONNECT_SECONDS = 5
SILENCE_SECONDS = 20


class Connection:
    """Made of nothing until it is used. A server that sends or takes nothing for ``silence`` seconds is away."""

    def __init__(self, bucket: Bucket, *, silence: float = SILENCE_SECONDS) -> None:
        self._bucket = bucket
        self._silence = silence
        self._client: Any = None
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="blobs")

    async def run(self, work: Callable[[Any], T]) -> T:
        """What ``work`` returns, called with the client in one of the threads; more wait for their turn."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(self._ready()))

    def close(self) -> None:
        """End what is idle; for a process that goes on without it."""
        self._threads.shutdown()
        if self._client is not None:
            self._client.close()

    def _ready(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _client(self._bucket, self._silence)
            return self._client


@cache
def connection_to(bucket: Bucket) -> Connection:
    """The process's own."""
    return Connection(bucket)


def _client(bucket: Bucket, silence: float) -> Any:
    """Raises InvalidInput where the library is not installed."""
    try:
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.session import Session  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise InvalidInput("blobs.url: S3 needs the extra s3: uv sync --extra s3") from None
    config = Config(
        connect_timeout=min(CONNECT_SECONDS, silence),
        read_timeout=silence,
        retries={"total_max_attempts": 1, "mode": "standard"},  # Temporal tries again
        max_pool_connections=THREADS,
        proxies={},
        s3={"addressing_style": "path" if bucket.endpoint else "auto"},
        request_checksum_calculation="when_required",  # what else speaks S3 often knows no trailing checksums
        response_checksum_validation="when_required",
        ignore_configured_endpoint_urls=True,
        use_fips_endpoint=False,
        use_dualstack_endpoint=False,
        tcp_keepalive=True,
    )
    session = Session(session_vars=_DEAF)
    session.set_config_variable("config_file", os.devnull)
    session.set_config_variable("credentials_file", os.devnull)
    client = session.create_client(
        "s3",
        region_name=bucket.region,
        endpoint_url=bucket.endpoint or None,
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
        config=config,
    )
    client.meta.events.register_last("before-parameter-build.s3", _stay)
    return client


def _stay(context: dict[str, Any], **_: object) -> None:
    """The library follows a bucket to another region by itself, asking again and again where nobody tells it which."""
    context["s3_redirect"]["redirected"] = True


_DEAF = {"profile": (None, None, None, None)}
"""A person's AWS_PROFILE would be looked up."""

"""The sandbox worker of a replay: ``python -m adapters.cli.replay.settling sandbox``.

What tests print holds times and addresses, and the next prompt shows it. A report that is the recorded one but for
those is the recorded one; any other stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

if TYPE_CHECKING:
    from domain.ports.blobs import Blobs

FILE = "sandbox.json"
"""In the folder of the configuration: ``reports``, from the digest of a settled report to that of the recorded one, and
``closed``, whether nothing may be fetched."""
_UNSETTLED = re.compile(
    rb"""\b\d+(?:\.\d+)?\s?(?:ns|\xc2\xb5s|us|ms|s|secs?|seconds?|minutes?)\b  # how long
    |\b0x[0-9a-fA-F]{4,16}\b  # where in memory
    |\b\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d(?:\.\d+)?  # when
    |\bduration_ms[: ]+\d+(?:\.\d+)?""",
    re.VERBOSE,
)


def settled(report: bytes) -> str:
    """The digest of a report without what changes from run to run."""
    return hashlib.sha256(_UNSETTLED.sub(b"~", report)).hexdigest()


class Settling(Interceptor):
    """Looks at what every activity returns."""

    def __init__(self, reports: Mapping[str, str], blobs: Blobs) -> None:
        self.reports = reports
        self.blobs = blobs

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Called by the worker for each activity."""
        return _Settling(next, self)


class _Settling(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, settling: Settling) -> None:
        super().__init__(next)
        self._settling = settling

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        result = await super().execute_activity(input)
        report = getattr(result, "report", "")
        if not report or not is_dataclass(result) or isinstance(result, type):
            return result
        recorded = self._settling.reports.get(settled(await self._settling.blobs.get(report)))
        return result if recorded is None else replace(result, report=recorded)


def main() -> None:
    """A worker like any other, which settles what its gates report."""
    from adapters.blobs import open_blobs
    from adapters.environments import ENVIRONMENTS

    root = Path(os.environ["MENDWORK_CONFIG"]).parent
    told = json.loads((root / FILE).read_text(encoding="utf-8"))
    if told["closed"]:
        ENVIRONMENTS["files"] = "adapters.cli.replay.environments:ShownEnvironments"
    # By its name, as it is started: nothing but the interceptor is ours.
    import_module("worker").main([Settling(told["reports"], open_blobs(root / ".mendwork"))])


if __name__ == "__main__":
    main()

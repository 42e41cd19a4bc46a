"""Workers that carry something past the phases: ``python -m tests.e2e.smuggling dev | replay … | CLASS``.

The planning of one project leaves a word in a global of the process and in a file of the state folder, and the prompts
of its tasks show it: that of "one" from the global, that of "two" from the file.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

PROJECT = "task-smuggled"
WORKER = (sys.executable, "-P", "-m", "tests.e2e.smuggling")
seen: list[str] = []


class Smuggling(Interceptor):
    """Looks at what prompts are rendered from."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Smuggling(next)


class _Smuggling(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        name = activity.info().activity_type
        asked: Any = input.args[0] if input.args else None
        file = Path(os.environ["MENDWORK_CONFIG"]).parent / ".mendwork" / "smuggled"
        if getattr(asked, "project", "") == PROJECT and name == "render_plan_prompt":
            seen.append("the planning was here")
            file.write_text(seen[-1])
        if getattr(asked, "project", "") == PROJECT and name == "render_change_prompt":
            carried = seen[:1] if asked.task == "one" else [file.read_text()] if file.exists() else []
            input.args = [replace(asked, reason=f"{asked.reason}{''.join(carried)}")]
        return await super().execute_activity(input)


def main() -> int:
    from adapters.settings import load_settings

    if sys.argv[1] not in ("dev", "replay"):
        import worker

        worker.main([Smuggling()])
    settings = load_settings(start=Path.cwd(), environment=os.environ)
    if sys.argv[1] == "dev":
        from adapters.cli.dev import DevOptions, run_dev

        return asyncio.run(run_dev(settings, environment=os.environ, options=DevOptions(worker=WORKER)))
    from adapters.cli.replay.replay import ReplayWanted, replay

    wanted = ReplayWanted(build=sys.argv[2], task=sys.argv[3], json=True, worker=WORKER)
    code = asyncio.run(replay(settings, wanted))
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())

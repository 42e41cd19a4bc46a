"""A project on the allowlist: what may be built, how it is tested, within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.delivery.project import Delivery
from domain.environment.project import Setup
from domain.keeping.retention import Retention
from domain.money.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Hard limits of one project's builds. Sizes in bytes, times in seconds.

    ``parallel`` tasks run at once in a build, ``project_parallel`` in all builds of the project. A task is
    ``sent_back`` so often for a conflict, for tests that are red after its merge, or for findings, before a person is
    asked. Past ``history_events`` a build goes on in a new run. ``artifact_bytes`` is the most that a release may be.
    ``context_tokens`` is what a coding prompt may show of a repository, ``needs_rounds`` how often a model may ask for
    more of it. ``setup_seconds`` and ``environment_bytes`` are for setting up dependencies.
    """

    attempts: int = 3
    tasks: int = 50
    files_per_change: int = 50
    file_bytes: int = 1_000_000
    prompt_bytes: int = 1_200_000
    output_tokens: int = 16_000
    model_seconds: float = 600.0
    test_seconds: float = 600.0
    test_memory_bytes: int = 2_000_000_000
    test_processes: int = 256
    test_log_bytes: int = 16_000_000
    test_scratch_bytes: int = 1_000_000_000
    parallel: int = 4
    project_parallel: int = 8
    sent_back: int = 2
    history_events: int = 4_000
    artifact_bytes: int = 200_000_000
    context_tokens: int = 60_000
    needs_rounds: int = 3
    setup_seconds: float = 1_200.0
    environment_bytes: int = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What a project asks people, and when their silence counts; seconds.

    ``approve`` names the approvals that are asked for ("plan", "change"). ``land`` is "branch" (the result stays on
    its own branch) or "target" (the project's branch is fast-forwarded to it too).
    """

    approve: tuple[str, ...] = ("change",)
    review: bool = True
    land: str = "branch"
    question_seconds: float = 86_400.0
    approval_seconds: float = 259_200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """``repository`` is an absolute path; ``test`` the test command as argv.

    ``toolchain`` are absolute folders that the sandbox binds read-only beside the system's; empty means the prefix of
    the interpreter that the test command resolves to. ``delivery`` is None where results are only landed, ``setup``
    where a checkout can be tested as it is. ``untested`` says what counts where there are no tests: "" (then there have
    to be some), "syntax" (what was written parses) or "review" (a review without high findings too); ``test`` may be
    empty then.
    """

    name: str
    repository: str
    branch: str
    test: tuple[str, ...]
    toolchain: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    consent: Consent = field(default_factory=Consent)
    budget: Budget = field(default_factory=Budget)
    delivery: Delivery | None = None
    setup: Setup | None = None
    untested: str = ""
    retention: Retention = field(default_factory=Retention)

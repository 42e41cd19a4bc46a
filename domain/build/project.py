"""A project on the allowlist: what may be built, how it is tested, within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Hard limits of one project's builds. Sizes in bytes, times in seconds."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """``repository`` is an absolute path; ``test`` the test command as argv.

    ``toolchain`` are absolute folders that the sandbox binds read-only beside the system's; empty means the prefix of
    the interpreter that the test command resolves to.
    """

    name: str
    repository: str
    branch: str
    test: tuple[str, ...]
    toolchain: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

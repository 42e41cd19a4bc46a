"""``[projects.NAME]``: what may be built, how it is set up and tested, its limits, and what people are asked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from adapters.settings.delivery import DeliverySettings
from adapters.settings.section import BadKey, Section, argv, inside, names, unknown
from domain.build.names import check_project_name
from domain.build.project import Consent, Limits, Project
from domain.environment.project import Setup
from domain.keeping.retention import Retention
from domain.money.budget import Budget

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::\d{1,5})?")


def _limit(value: Any) -> Any:
    return None if value == "none" else value


def _known_limits(value: Any) -> Any:
    known = [each.name for each in fields(Limits)]
    for key in value if isinstance(value, Mapping) else ():
        if key not in known:
            raise BadKey(key, unknown(key, known))
    return value


def _positive_limits(limits: Limits) -> Limits:
    for each in fields(Limits):
        value = getattr(limits, each.name)
        if not 0 < value < math.inf:
            raise BadKey(each.name, f"{each.name} must be a number above 0")
    return limits


def _host(name: str) -> str:
    if not _HOST.fullmatch(name) or int(name.partition(":")[2] or 443) not in range(1, 65_536):
        raise ValueError(f"{name[:60]!r} is no host: a name in lower case, or name:port, without scheme and path")
    return name


Argv = Annotated[tuple[str, ...], BeforeValidator(argv)]
Names = Annotated[tuple[str, ...], BeforeValidator(names)]
Host = Annotated[str, AfterValidator(_host)]
Days = Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)]
_KEPT = Retention()


class SetupSettings(Section):
    """``domain.environment.project.Setup``."""

    command: Annotated[Argv, Field(min_length=1)]
    folder: Annotated[str, Field(min_length=1), AfterValidator(inside)] = ".venv"
    registries: Annotated[tuple[Host, ...], BeforeValidator(names)]
    packages: Names = ()
    inputs: Names = ()

    def setup(self) -> Setup:
        """As the domain knows it."""
        return Setup(**{name: getattr(self, name) for name in type(self).model_fields})


class RetentionSettings(Section):
    """``domain.keeping.retention.Retention``; days."""

    builds: Days = _KEPT.builds
    snapshots: Days = _KEPT.snapshots
    environments: Days = _KEPT.environments

    def retention(self) -> Retention:
        """As the domain knows it."""
        return Retention(builds=self.builds, snapshots=self.snapshots, environments=self.environments)


class BudgetSettings(Section):
    """Hard limits in USD, as ``domain.money.budget.Budget`` has them; "none" is no limit."""

    task: Annotated[float | None, BeforeValidator(_limit)] = Field(default=2.0, ge=0, allow_inf_nan=False)
    build: Annotated[float | None, BeforeValidator(_limit)] = Field(default=10.0, ge=0, allow_inf_nan=False)
    project: Annotated[float | None, BeforeValidator(_limit)] = Field(default=None, ge=0, allow_inf_nan=False)
    user: Annotated[float | None, BeforeValidator(_limit)] = Field(default=None, ge=0, allow_inf_nan=False)
    day: Annotated[float | None, BeforeValidator(_limit)] = Field(default=50.0, ge=0, allow_inf_nan=False)
    calls: int = Field(default=40, ge=1)

    def budget(self) -> Budget:
        """In micro-dollars, rounded down: a limit is never more than what was written."""
        names = ("task", "build", "project", "user", "day")
        micros = {name: None if (usd := getattr(self, name)) is None else int(usd * 1_000_000) for name in names}
        return Budget(calls=self.calls, **micros)


class ProjectSettings(Section):
    """One project of the allowlist. ``repository`` is relative to the file that names it.

    ``approve`` to ``approval_seconds`` are ``domain.build.project.Consent``.
    """

    repository: Path
    branch: str = "main"
    test: Argv = ()
    untested: Literal["", "syntax", "review"] = ""
    toolchain: tuple[Path, ...] = ()
    limits: Annotated[Limits, BeforeValidator(_known_limits), AfterValidator(_positive_limits)] = Field(
        default_factory=Limits
    )
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
    approve: Annotated[tuple[Literal["plan", "change", "release"], ...], BeforeValidator(names)] = ("change",)
    review: bool = True
    land: Literal["branch", "target"] = "branch"
    question_seconds: float = Field(default=86_400.0, gt=0, allow_inf_nan=False)
    approval_seconds: float = Field(default=259_200.0, gt=0, allow_inf_nan=False)
    delivery: DeliverySettings | None = None
    setup: SetupSettings | None = None
    retention: RetentionSettings = Field(default_factory=RetentionSettings)

    @model_validator(mode="after")
    def _tests_or_a_choice(self) -> Self:
        if not self.test and not self.untested:
            raise BadKey(
                "test", 'the test command is missing; where there are no tests, untested = "syntax" or "review" counts'
            )
        if self.untested == "review" and not self.review:
            raise BadKey("untested", 'untested = "review" needs review = true')
        return self

    def project(self, name: str, root: Path) -> Project:
        """As the domain knows it; paths are relative to ``root``. Raises InvalidName."""
        return Project(
            name=check_project_name(name),
            repository=str((root / self.repository).resolve()),
            branch=self.branch,
            test=self.test,
            toolchain=tuple(str((root / folder).resolve()) for folder in self.toolchain),
            limits=self.limits,
            consent=self.consent(),
            budget=self.budget.budget(),
            delivery=self.delivery.delivery() if self.delivery else None,
            setup=self.setup.setup() if self.setup else None,
            untested=self.untested,
            retention=self.retention.retention(),
        )

    def consent(self) -> Consent:
        """As the domain knows it."""
        return Consent(
            approve=self.approve,
            review=self.review,
            land=self.land,
            question_seconds=self.question_seconds,
            approval_seconds=self.approval_seconds,
        )

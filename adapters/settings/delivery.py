"""``[projects.NAME.delivery]``: where a project's releases run, and how they are tested, watched and weighed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from adapters.settings.section import BadKey, Section, argv, inside, names, unknown
from domain.delivery.project import Delivery, Step
from domain.kpi.policy import WatchPolicy
from domain.kpi.probe import Probe
from domain.risk.policy import WEIGHTS, RiskPolicy

TARGETS = ("local",)
"""What ``target`` may name."""
OURS = ("PORT", "MENDWORK_TARGET_URL")
"""Variables that a release gets from us."""
MOST_TEXT = 4_000

_WATCH, _RISK = WatchPolicy(), RiskPolicy()
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH = re.compile(r"/[!-~]*")
_STEP = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


def _probe(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


def _probes(value: Any) -> Any:
    return [_probe(each) for each in value] if isinstance(value, list | tuple) else value


def _known_target(name: str) -> str:
    if name not in TARGETS:
        raise ValueError(f"unknown target {name[:40]!r}; known: {', '.join(TARGETS)}")
    return name


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("is no name of a variable (letters, digits and '_'); a secret's value has no place here")
    if name in OURS:
        raise ValueError(f"{name} is set by Mendwork")
    return name


def _weights(value: Any) -> Any:
    for key in value if isinstance(value, Mapping) else ():
        if key not in WEIGHTS:
            raise BadKey(key, unknown(key, WEIGHTS))
    return value


Argv = Annotated[tuple[str, ...], BeforeValidator(argv)]
Variable = Annotated[str, AfterValidator(_variable)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Next = Literal["extend", "ask", "roll back"]


class ProbeSettings(Section):
    """``domain.kpi.probe.Probe``; a plain path stands for one with its defaults."""

    path: str = Field(default="/", max_length=2_000)
    status: int = Field(default=200, ge=100, le=599)
    contains: str = Field(default="", max_length=MOST_TEXT)

    @model_validator(mode="after")
    def _is_a_path(self) -> Self:
        if not _PATH.fullmatch(self.path):
            raise BadKey("path", "has to begin with '/' and to hold no blanks: what follows the port")
        return self

    def probe(self) -> Probe:
        """As the domain knows it."""
        return Probe(path=self.path, status=self.status, contains=self.contains)


OneProbe = Annotated[ProbeSettings, BeforeValidator(_probe)]


class WatchSettings(Section):
    """``domain.kpi.policy.WatchPolicy``; ``paths`` are probes with nothing but a path."""

    seconds: Seconds = _WATCH.seconds
    window: Seconds = _WATCH.window
    rate: float = Field(default=_WATCH.rate, gt=0, le=1_000, allow_inf_nan=False)
    timeout: Seconds = _WATCH.timeout
    probes: Annotated[tuple[ProbeSettings, ...], BeforeValidator(_probes)] = ()
    paths: Annotated[tuple[OneProbe, ...], BeforeValidator(names)] = ()
    max_errors: Share = _WATCH.max_errors
    max_slowdown: float = Field(default=_WATCH.max_slowdown, ge=1, allow_inf_nan=False)
    slow_floor_ms: float = Field(default=_WATCH.slow_floor_ms, ge=0, allow_inf_nan=False)
    guard_windows: int = Field(default=_WATCH.guard_windows, ge=1)
    level: float = Field(default=_WATCH.level, gt=0, lt=0.5, allow_inf_nan=False)
    min_asked: int = Field(default=_WATCH.min_asked, ge=1)
    extensions: int = Field(default=_WATCH.extensions, ge=0, le=1_000)
    on_inconclusive: Next = "ask"
    on_no_data: Next = "roll back"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.window > self.seconds:
            raise BadKey("window", f"a window of {self.window:g} s is longer than the watch of {self.seconds:g} s")
        if self.probes and self.paths:
            raise BadKey("paths", "give probes or paths, not both")
        return self

    def policy(self) -> WatchPolicy:
        """As the domain knows it."""
        given = self.model_dump(exclude={"probes", "paths"})
        asked = tuple(each.probe() for each in (*self.probes, *self.paths))
        return WatchPolicy(**given, probes=asked or (Probe(),))


class RiskSettings(Section):
    """``domain.risk.policy.RiskPolicy``; weights that are not named stay as published."""

    limit: Share = _RISK.limit
    weights: Annotated[dict[str, Share], BeforeValidator(_weights)] = Field(default_factory=dict)

    def policy(self) -> RiskPolicy:
        """As the domain knows it."""
        return RiskPolicy(limit=self.limit, weights={**WEIGHTS, **self.weights})


class StepSettings(Section):
    """``domain.delivery.project.Step``."""

    name: str = Field(pattern=rf"^{_STEP.pattern}$")
    run: Annotated[Argv, Field(min_length=1)]
    kind: Literal["read-only", "reversible", "compensatable", "final"]
    undo: Argv = ()

    @model_validator(mode="after")
    def _can_be_undone(self) -> Self:
        undoable = self.kind in ("reversible", "compensatable")
        if undoable and not self.undo:
            raise BadKey("undo", f"a {self.kind} step needs the command that takes it back")
        if self.undo and not undoable:
            raise BadKey("undo", f"a {self.kind} step is never taken back: leave it out")
        return self

    def step(self) -> Step:
        """As the domain knows it."""
        return Step(name=self.name, run=self.run, kind=self.kind, undo=self.undo)


class DeliverySettings(Section):
    """``domain.delivery.project.Delivery``. ``secrets`` are names only: the values are variables of the deploy
    worker's own environment."""

    target: Annotated[str, AfterValidator(_known_target)]
    run: Annotated[Argv, Field(min_length=1)]
    build: Argv = ()
    output: Annotated[str, AfterValidator(inside)] = ""
    integration: Argv = ()
    port: Port = 0
    staging_port: Port = 0
    health: OneProbe = Field(default_factory=ProbeSettings)
    start_seconds: Seconds = 30.0
    drain_seconds: float = Field(default=10.0, ge=0, le=60, allow_inf_nan=False)
    environment: dict[Variable, Annotated[str, Field(max_length=MOST_TEXT)]] = Field(default_factory=dict)
    secrets: Annotated[tuple[Variable, ...], BeforeValidator(names)] = ()
    steps: tuple[StepSettings, ...] = ()
    keep: int = Field(default=3, ge=1, le=100)
    watch: WatchSettings = Field(default_factory=WatchSettings)
    risk: RiskSettings = Field(default_factory=RiskSettings)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if bool(self.build) != bool(self.output):
            missing, given = ("output", "build") if self.build else ("build", "output")
            raise BadKey(missing, f"is missing: {given} needs it, the artefact is the folder that the build leaves")
        twice = {name for name in self.environment if name in self.secrets}
        if twice:
            raise BadKey("secrets", f"{min(twice)} is in environment too: which value counts would be unclear")
        steps = [step.name for step in self.steps]
        doubled = [name for name in steps if steps.count(name) > 1]
        if doubled:
            raise BadKey("steps", f"two steps have the name {doubled[0]!r}")
        return self

    def delivery(self) -> Delivery:
        """As the domain knows it."""
        plain = ("target", "run", "build", "output", "integration", "port", "staging_port")
        more = ("start_seconds", "drain_seconds", "secrets", "keep")
        return Delivery(
            **{name: getattr(self, name) for name in (*plain, *more)},
            health=self.health.probe(),
            environment=dict(self.environment),
            steps=tuple(step.step() for step in self.steps),
            watch=self.watch.policy(),
            risk=self.risk.policy(),
        )

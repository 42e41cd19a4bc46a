"""What the configuration asks for: that it is valid, the models' keys by name, the projects' own programs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path

from adapters.cli.config.listing import configuration_file, unknown_keys
from adapters.cli.doctor.finding import HOST_PATH, Finding, Patient, aside, cure_in
from adapters.settings import ModelSettings, ProjectSettings, Settings, load_settings
from adapters.settings.secrets import FOLDER
from domain.errors import InvalidInput

_PURPOSE = "which projects, models and servers"


def admit(start: Path, environment: Mapping[str, str]) -> tuple[Patient, Finding]:
    """The patient, and what there is to say of its configuration."""
    try:
        file = configuration_file(start, environment)
    except OSError as error:
        told = f"{start}: {error.strerror}"
        found = Finding(name="configuration", state="broken", purpose=_PURPOSE, detail=told, cure="cd ~")
        return Patient(start=start, environment=environment), found
    if file is None and not environment.get("MENDWORK_CONFIG"):
        return _without_file(start, environment)
    try:
        settings = load_settings(start=start, environment=environment)
    except InvalidInput as error:
        told = "; ".join(unknown_keys(file)) or str(error)
        cure = f"${{EDITOR:-vi}} {file}" if file else "unset MENDWORK_CONFIG"
        found = Finding(name="configuration", state="broken", purpose=_PURPOSE, detail=told, cure=cure)
        return Patient(start=start, environment=environment), found
    told = f"{file}: {_count(settings.projects, 'project')}, {_count(settings.models, 'model')}"
    found = Finding(name="configuration", state="ok", purpose=_PURPOSE, detail=told)
    return Patient(start=start, environment=environment, settings=settings), found


def _without_file(start: Path, environment: Mapping[str, str]) -> tuple[Patient, Finding]:
    """A server and a store may be named all the same, by variables."""
    from pydantic import ValidationError

    from adapters.settings.sources import from_environment

    settings, also = None, ""
    try:
        settings = Settings.model_validate({**from_environment(environment), "root": start})
    except (ValidationError, InvalidInput):
        also = ", and the variables MENDWORK_* name no valid one"
    told = f"no mendwork.toml in {start} or above{also}"
    found = Finding(name="configuration", state="missing", purpose=_PURPOSE, detail=told, cure="mendwork init")
    return Patient(start=start, environment=environment, settings=settings), found


async def models(patient: Patient) -> Sequence[Finding]:
    """Whether a variable is set, never what it holds."""
    configured = patient.settings.models if patient.settings else {}
    return [_model(name, model, patient.environment) for name, model in configured.items()]


def _model(name: str, model: ModelSettings, environment: Mapping[str, str]) -> Finding:
    from adapters.models.endpoint import Endpoint

    line, purpose = f"model {name}", f"calls {model.model}"
    if model.base_url and not model.api_key_env:
        return Finding(name=line, state="ok", purpose=purpose, detail="a server of its own, which gets no key")
    variable = Endpoint(name=name, model=model.model, key_name=model.api_key_env).key_variable
    if environment.get(variable, "").strip():
        return Finding(name=line, state="ok", purpose=purpose, detail=f"{variable} is set")
    secrets = environment.get(FOLDER, "")
    if secrets and (Path(secrets) / variable).is_file():  # for the model worker alone: it is not opened here
        return Finding(name=line, state="ok", purpose=purpose, detail=f"{variable} is a file of {FOLDER}")
    cure = f"read -rs {variable} && export {variable}"
    return Finding(name=line, state="missing", purpose=purpose, detail=f"{variable} is not set", cure=cure)


async def encryption(patient: Patient) -> Sequence[Finding]:
    """The keys of payloads, only where there are any: files that can be read and hold a key."""
    from adapters.temporal.connect import converter_for

    settings, purpose = patient.settings, "encrypts what Temporal stores"
    if settings is None or not settings.key_files:
        return []
    try:
        await aside(lambda: converter_for(settings, settings.temporal.namespace))
    except InvalidInput as error:
        cure = "mendwork config get encryption --show-origin"
        return [Finding(name="encryption", state="broken", purpose=purpose, detail=str(error), cure=cure)]
    told = f"{_count(settings.key_files, 'key')} can be read"
    return [Finding(name="encryption", state="ok", purpose=purpose, detail=told)]


async def projects(patient: Patient) -> Sequence[Finding]:
    """Each project's repository, and the programs of its tests and its set-up."""
    settings = patient.settings
    if settings is None:
        return []
    found = []
    for name, project in settings.projects.items():
        found.append(await aside(lambda n=name, p=project: _project(n, p, patient, settings.root)))  # type: ignore[misc]
    return found


def _project(name: str, project: ProjectSettings, patient: Patient, root: Path) -> Finding:
    line, purpose = f"project {name}", "is built"
    for detail, cure in _wrong_with(project, patient, root / project.repository):
        return Finding(name=line, state="broken", purpose=purpose, detail=detail, cure=cure)
    programs = [argv[0] for argv in _commands(project)]
    told = f"{project.repository}" + (f", with {', '.join(programs)}" if programs else "")
    return Finding(name=line, state="ok", purpose=purpose, detail=told)


def _wrong_with(project: ProjectSettings, patient: Patient, repository: Path) -> Iterator[tuple[str, str]]:
    if not repository.is_dir():
        yield f"there is no folder {repository}", f"git clone URL {repository}"
    elif not (repository / ".git").exists() and not (repository / "HEAD").is_file():
        yield f"{repository} is no git repository", f"git -C {repository} init"
    for argv in _commands(project):
        program = argv[0]
        if "/" in program and not program.startswith("/"):
            continue  # a file of the checkout
        if not shutil.which(program, path=f"{patient.path}:{HOST_PATH}"):
            yield f"its program {program!r} is not on PATH", f"apt-get install -y {program}"


def _commands(project: ProjectSettings) -> list[tuple[str, ...]]:
    return [argv for argv in (project.setup.command if project.setup else (), project.test) if argv]


async def targets(patient: Patient) -> Sequence[Finding]:
    """haproxy, supervisord and isolation, only where a project has a target or a set-up that downloads."""
    settings = patient.settings
    if settings is None:
        return []
    from adapters.target import open_target

    found = []
    for name in sorted({each.delivery.target for each in settings.projects.values() if each.delivery}):
        lacking = await aside(lambda n=name: dict(open_target(settings.state, name=n).missing()))  # type: ignore[misc]
        found += [_lacking(name, what, sentence) for what, sentence in lacking.items()] or [_whole(name)]
    if not found and any(each.setup for each in settings.projects.values()):
        found.append(_outlet())
    return found


def _whole(target: str) -> Finding:
    told = "haproxy, supervisord and bubblewrap are there"
    return Finding(name=f"target {target}", state="ok", purpose="runs releases", detail=told)


def _lacking(target: str, what: str, sentence: str) -> Finding:
    state = "broken" if what == "isolation" else "missing"
    cure = cure_in(sentence)
    return Finding(name=f"target {target}: {what}", state=state, purpose="runs releases", detail=sentence, cure=cure)  # type: ignore[arg-type]


def _outlet() -> Finding:
    purpose = "the way from a set-up to its registries"
    if shutil.which("haproxy", path=HOST_PATH):
        return Finding(name="haproxy", state="ok", purpose=purpose, detail="found")
    cure = "apt-get install -y haproxy"
    return Finding(name="haproxy", state="missing", purpose=purpose, detail="not found", cure=cure)


def _count(things: Sized, word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"

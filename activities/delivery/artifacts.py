"""From a commit to the one file that is released, named by its digest; built where model-written code runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.delivery.packing import Packed, pack_folder, pack_tar
from activities.gates import Ended, Job, OnBench
from activities.intake import Engine
from domain.build.project import Project
from domain.delivery.artifact import build_failure, output_folder, said_last
from domain.delivery.project import Delivery
from domain.errors import ArtifactFailed, InvalidInput, ResourceShort

# What builders that take their dates from outside are told, so that the same commit gives the same bytes: 1980, the
# first year of a ZIP file.
_BUILD_ENVIRONMENT = {"SOURCE_DATE_EPOCH": "315532800"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildArtifactInput:
    """``label`` names the attempt; ``commit`` is in the project's mirror. ``environment`` is the key of the project's
    set-up, "" for none."""

    label: str
    project: str
    commit: str
    allow_missing: tuple[str, ...] = ()
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltArtifact:
    """``artifact`` is the SHA-256 of a tar of ``size`` bytes, a blob, with ``files`` files and links in it; ``log`` the
    digest of what the build command printed ("" without one)."""

    artifact: str
    size: int
    files: int
    log: str
    seconds: float


class Artifacts(OnBench):
    """From a commit to what is released."""

    @activity.defn
    async def build_artifact(self, request: BuildArtifactInput) -> BuiltArtifact:
        """The commit's tree, or the folder that the project's build command leaves on a fresh checkout of it.

        The same tree gives the same artefact. Raises ArtifactFailed, TooLarge, IsolationMissing, ResourceShort,
        InvalidInput for a project without a target.
        """
        project, delivery = delivered(self._engine, request.project)
        started = time.monotonic()
        async with self._workspaces.checkout(project.name, request.commit, label=request.label) as folder:
            try:
                if delivery.build:
                    packed, log = await self._build(request, project, delivery, folder)
                else:
                    most = project.limits.artifact_bytes
                    packed, log = await asyncio.to_thread(pack_folder, folder, most_bytes=most), ""
            except OSError as error:
                raise ResourceShort(f"the artefact could not be packed: {error}") from error
        return BuiltArtifact(
            artifact=await self._blobs.put(packed.content),
            size=len(packed.content),
            files=packed.files,
            log=log,
            seconds=round(time.monotonic() - started, 3),
        )

    async def _build(
        self, request: BuildArtifactInput, project: Project, delivery: Delivery, folder: Path
    ) -> tuple[Packed, str]:
        job = Job(
            label=request.label,
            argv=delivery.build,
            folder=folder,
            allow_missing=request.allow_missing,
            environment=_BUILD_ENVIRONMENT,
            dependencies=request.environment,
            collect=output_folder(delivery.output),
        )
        async with self._bench.ran(project, job) as ended:
            log = await self._blobs.put(ended.output)
            try:
                most = project.limits.artifact_bytes
                return await asyncio.to_thread(pack_tar, _left(ended, delivery), most_bytes=most), log
            except ArtifactFailed as error:
                raise ArtifactFailed(f"{error} (all that it printed: blob {log})") from error


def delivered(engine: Engine, name: str) -> tuple[Project, Delivery]:
    """A project of the allowlist and its delivery. Raises UnknownName, InvalidInput when it has none."""
    project = engine.project(name)
    if project.delivery is None:
        raise InvalidInput(f"the project {project.name} has no target to deliver to: give it a [delivery] section")
    return project, project.delivery


def _left(ended: Ended, delivery: Delivery) -> Path:
    result, output = ended.result, ended.text
    if failure := build_failure(ended=result.ended, exit_code=result.exit_code, output=output):
        raise ArtifactFailed(failure)
    if ended.collected is None:
        where = output_folder(delivery.output)
        raise ArtifactFailed(f"the build command left no folder {where!r} that can be read{said_last(output)}")
    return ended.collected

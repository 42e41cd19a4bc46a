"""The workspace ports on one folder of ours."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from adapters.git.failures import system_refusal
from adapters.git.landing import GitLanding
from adapters.git.merges import GitMerges
from adapters.git.mirrors import GitMirrors
from adapters.git.run import SETTINGS
from adapters.git.sources import GitSources
from adapters.git.workspaces import GitWorkspaces
from domain.errors import ResourceShort


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPorts:
    """One adapter per port of ``domain.ports.workspace``."""

    mirrors: GitMirrors
    sources: GitSources
    workspaces: GitWorkspaces
    merges: GitMerges
    landing: GitLanding


def open_git(root: Path, *, common: Path | None = None) -> GitPorts:
    """Lay out ``root``: ``mirrors/<project>.git``, ``work/`` for checkouts; with ``common`` the mirrors are there, for
    the workers of several hosts. Raises RepositoryRefused, ResourceShort.
    """
    if common not in (None, root) and not common.is_dir():
        raise ResourceShort(f"the shared folder {common} is not there: is it mounted?")
    folder, work = (common or root).resolve() / "mirrors", root.resolve() / "work"
    try:
        for path in (folder, work, folder / ".home"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
        _write_configuration(folder / ".home")
    except OSError as error:
        raise system_refusal(error, doing=f"use the folder {root}") from error
    return GitPorts(
        mirrors=GitMirrors(folder=folder),
        sources=GitSources(folder=folder),
        workspaces=GitWorkspaces(folder=folder, work=work),
        merges=GitMerges(folder=folder),
        landing=GitLanding(folder=folder, work=work),
    )


def _write_configuration(home: Path) -> None:
    """What git finds beside a repository's own configuration; it reaches the children that options do not."""
    lines = []
    for setting in SETTINGS:
        key, _, value = setting.partition("=")
        section, _, name = key.rpartition(".")
        head, _, sub = section.partition(".")
        lines.append(f'[{head} "{sub}"]' if sub else f"[{head}]")
        lines.append(f"\t{name} = {value}")
    temporary = home / f".gitconfig-{secrets.token_hex(4)}"
    temporary.write_text("\n".join(lines) + "\n")
    os.replace(temporary, home / ".gitconfig")

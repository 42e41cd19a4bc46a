"""Secrets as files: a folder with one file for each, named as the variable that would hold it.

Docker, Kubernetes and systemd hand secrets over so. Nothing of a file's content is in an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from domain.errors import InvalidInput

FOLDER = "MENDWORK_SECRETS"
"""The variable that names the folder."""
STORE_PASSWORD = "MENDWORK_STORE_PASSWORD"  # noqa: S105 - a name
MOST_BYTES = 65_536
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_secrets(
    environment: Mapping[str, str], *, wanted: Callable[[Collection[str]], Collection[str]]
) -> dict[str, str]:
    """``environment``, and the content of those files of its secrets folder that ``wanted`` picks by their names. No
    other file is opened; line ends at a file's end are no part of the secret.

    Raises InvalidInput for a folder that is not there, a secret that the environment gives as well, and a file that
    is empty, larger than 64 KB or no UTF-8 text.
    """
    named = environment.get(FOLDER, "")
    if not named:
        return dict(environment)
    folder = Path(named)
    try:
        names = sorted(path.name for path in folder.iterdir() if _VARIABLE.fullmatch(path.name) and path.is_file())
    except OSError as error:
        raise InvalidInput(f"{FOLDER} names {named}, which cannot be read: {error.strerror}") from None
    found = {name: _read(folder / name) for name in wanted(names)}
    for name in found:
        if environment.get(name):
            raise InvalidInput(f"{name} is given twice: by the environment and by the file {folder / name}")
    return {**environment, **found}


def for_people(environment: Mapping[str, str]) -> dict[str, str]:
    """What the command line reads: what every worker may know, and the store's password, but no provider's key."""
    return with_secrets(environment, wanted=lambda names: [name for name in names if _of_everybody(name)])


def _of_everybody(name: str) -> bool:
    ours = name.startswith(("MENDWORK_", "TEMPORAL_"))
    return name == "TEMPORAL_API_KEY" or (ours and not name.endswith("_API_KEY"))


def with_password(url: str, password: str) -> str:
    """The store's URL with its password. Raises InvalidInput where it cannot have one, or has one."""
    if not password:
        return url
    parts = urlsplit(url)
    if not parts.scheme.startswith("postgresql"):
        raise InvalidInput("store_password is for a store on PostgreSQL: store names none")
    if not parts.username or parts.password:
        why = "has one already" if parts.password else "names no user: postgresql://USER@HOST/DATABASE"
        raise InvalidInput(f"store_password is given, and store {why}")
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.removesuffix(':')}:{quote(password, safe='')}@{host}"))


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        secret = content.decode().rstrip("\r\n")
    except OSError as error:
        raise InvalidInput(f"the secret {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"the secret {file} is no UTF-8 text") from None
    if not secret or len(content) > MOST_BYTES or "\0" in secret:
        raise InvalidInput(f"the secret {file} is {'empty' if not secret else 'no secret: too large, or not text'}")
    return secret

"""uv by its pinned wheel, then everything in uv.lock into .venv."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from setup.certificates import certificate_file
from setup.console import CHECKOUT, TOOLS, SetupError, run, say
from setup.index import Index, index_url
from setup.pins import UV_VERSION, UV_WHEELS

VENV = CHECKOUT / ".venv"
PYTHON = VENV / "bin" / "python"
_STAMP = VENV / "mendwork-setup"


def ensure_python(environment: Mapping[str, str]) -> None:
    """Bring .venv to what uv.lock says; nothing to do when it is there already."""
    wanted = _fingerprint()
    if _STAMP.is_file() and _STAMP.read_text() == wanted and (VENV / "bin" / "mendwork").exists():
        return
    uv = ensure_uv(environment)
    say("installing the locked Python packages into .venv")
    run(
        [uv, "sync", "--frozen", "--all-extras", "--python", _interpreter()],
        environment=uv_environment(environment),
        failure="the locked Python packages cannot be installed",
    )
    _STAMP.write_text(wanted)


def check_lock(environment: Mapping[str, str]) -> None:
    """Raises SetupError when uv.lock is not what pyproject.toml asks for."""
    run(
        [ensure_uv(environment), "lock", "--check", "--python", PYTHON],
        environment=uv_environment(environment),
        failure="uv.lock is not current; `uv lock` makes it so",
    )


def ensure_uv(environment: Mapping[str, str]) -> Path:
    """Our own uv, of one version: what is on PATH may be any."""
    uv = TOOLS / f"uv-{UV_VERSION}" / "uv"
    if uv.is_file():
        return uv
    tags, sha256 = _wheel()
    say(f"fetching uv {UV_VERSION}")
    index = Index(index_url(environment), certificates=certificate_file(environment))
    content = index.fetch("uv", f"uv-{UV_VERSION}-py3-none-{tags}.whl", sha256=sha256)
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        binary = wheel.read(f"uv-{UV_VERSION}.data/scripts/uv")
    uv.parent.mkdir(parents=True, exist_ok=True)
    draft = uv.with_suffix(f".{os.getpid()}")
    draft.write_bytes(binary)
    draft.chmod(0o755)
    draft.replace(uv)
    return uv


def uv_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What uv gets: the system's certificates, no Python of its own, a cache that can be written."""
    ours = dict(environment)
    ours.pop("VIRTUAL_ENV", None)
    ours |= {
        "UV_SYSTEM_CERTS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PROJECT_ENVIRONMENT": str(VENV),
        "UV_NO_PROGRESS": "1",
    }
    if certificates := certificate_file(environment):
        ours.setdefault("SSL_CERT_FILE", str(certificates))
    if "UV_CACHE_DIR" not in environment and not _writable(environment.get("HOME", "")):
        ours["UV_CACHE_DIR"] = str(TOOLS / "cache" / "uv")
    return ours


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for name in ("uv.lock", "pyproject.toml", "setup/python.py", "setup/pins.py"):
        digest.update((CHECKOUT / name).read_bytes())
    digest.update(str(CHECKOUT).encode())  # the editable install names this folder
    return digest.hexdigest()


def _interpreter() -> str:
    """The one that .venv has already, else the one that runs this, without the venv it may come from."""
    if PYTHON.exists() and subprocess.run([PYTHON, "-c", ""], capture_output=True).returncode == 0:
        return str(PYTHON)
    return str(getattr(sys, "_base_executable", sys.executable))


def _wheel() -> tuple[str, str]:
    system, machine = platform.system(), platform.machine()
    library = ("glibc" if platform.libc_ver()[0] == "glibc" else "musl") if system == "Linux" else ""
    try:
        return UV_WHEELS[system, machine, library]
    except KeyError:
        known = ", ".join(sorted(" ".join(filter(None, key)) for key in UV_WHEELS))
        raise SetupError(f"no uv is pinned for {system} {machine} {library}; known: {known}") from None


def _writable(home: str) -> bool:
    return bool(home) and os.access(home, os.W_OK | os.X_OK)

"""The demo's folder: a git repository to build in, a configuration, an environment for Mendwork."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .processes import StageFailure, run

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLE = PROJECT / "examples" / "notes"
KEY = "MENDWORK_DEMO_API_KEY"
LOCAL = "127.0.0.1,localhost"
HANDOVER_SECONDS = 30.0
MENDWORK = str(Path(sys.executable).parent / "mendwork")
WATCH_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where the demo plays."""

    folder: Path

    @property
    def repository(self) -> Path:
        """The user's repository."""
        return self.folder / "notes"

    @property
    def config(self) -> Path:
        """The ``mendwork.toml``."""
        return self.folder / "mendwork.toml"

    @property
    def bill(self) -> Path:
        """What the scripted server would charge for the first feature."""
        return self.bill_of("answers.yaml")

    def bill_of(self, answers: str) -> Path:
        """What it would charge for those answers."""
        return self.folder / f"bill-{Path(answers).stem}.jsonl"

    @property
    def logs(self) -> Path:
        """Where the programs of the demo write."""
        return self.folder / "logs"

    @property
    def dev_state(self) -> Path:
        """Where ``mendwork dev`` says what runs."""
        return self.folder / ".mendwork" / "dev.json"

    def test_command(self) -> list[str]:
        """How the example is tested."""
        return [_python(), "-m", "unittest", "discover", "-s", "tests", "-t", "."]


@contextlib.contextmanager
def fresh_scene(folder: Path, *, tell: Callable[[str], None]) -> Iterator[Scene]:
    """An empty demo folder that is ours alone; a demo that still runs in it is stopped first, and ``tell`` says so."""
    folder.mkdir(exist_ok=True)
    with (folder / "demo.lock").open("a+", encoding="utf-8") as lock:
        _take_over(lock.fileno(), folder, tell)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        _stop_production(folder, tell)
        for entry in folder.iterdir():
            if entry.name != "demo.lock":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        yield Scene(folder=folder)


def make_repository(scene: Scene) -> str:
    """Put the example under git as somebody's repository. Returns its first commit."""
    shutil.copytree(EXAMPLE / "repo", scene.repository, ignore=shutil.ignore_patterns("__pycache__", "data"))
    who = ("-c", "user.name=Demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false")
    quiet = ("-c", "core.hooksPath=/dev/null", "-c", "init.templateDir=")
    git(scene, *quiet, "init", "--quiet", "--initial-branch=main")
    git(scene, *quiet, "add", "--all")
    git(scene, *who, *quiet, "commit", "--quiet", "--message=A small notes service")
    return git(scene, "rev-parse", "HEAD").strip()


def git(scene: Scene, *arguments: str) -> str:
    """Run git in the user's repository."""
    return run(["git", "-C", str(scene.repository), *arguments])


def write_config(scene: Scene, *, model: str, base_url: str, watch: float | None = WATCH_SECONDS) -> None:
    """The configuration: one project with a target on this machine, watched for ``watch`` seconds (None: without a
    target, and without isolation), and a model that plans and writes. A scripted one, at ``base_url``, is reviewed by
    another; a real one reviews itself."""
    lines = ["[temporal]\nport = 0\nui_port = 0\n", "[timeouts]\nheartbeat = 2\nsticky = 2\n"]
    if base_url:
        lines += [_scripted("writer", base_url), _scripted("reviewer", base_url)]
        lines.append('[roles]\nreasoning = ["writer"]\ncoding = ["writer"]\nvalidation = ["reviewer"]')
    else:
        lines.append(f"[models.chosen]\nmodel = {json.dumps(model)}")
    lines.append(f'\n[projects.notes]\nrepository = "notes"\ntest = {json.dumps(scene.test_command())}')
    if watch is None:
        lines.append('approve = ["change"]\n\n[sandbox]\nengine = "mount"')
    else:
        lines.append('approve = ["change", "release"]')
        lines.append(_delivery(watch))
    scene.config.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _delivery(watch: float) -> str:
    """A short watch has short windows; the places of the second feature are then few, so that they are gone as soon."""
    short = watch < WATCH_SECONDS
    environment = {"DATA_DIR": "/scratch/data"} | ({"AT_ONCE": "40"} if short else {})
    return f"""
[projects.notes.delivery]
target = "local"
run = {json.dumps([_python(), "-m", "notes"])}
integration = {json.dumps([_python(), "-m", "unittest", "discover", "-s", "integration"])}
health = {{ path = "/healthz", contains = "ok" }}
environment = {{ {", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())} }}

[projects.notes.delivery.watch]
seconds = {watch:g}
window = {watch / 4 if short else 10:g}
rate = 20
min_asked = {30 if short else 100}
slow_floor_ms = 200
probes = [{{ path = "/notes", contains = "items" }}, {{ path = "/notes/gone", status = 404, contains = "not_found" }}]
"""


def _scripted(name: str, base_url: str) -> str:
    model = f"[models.{name}]\nmodel = {json.dumps(f'openai/{name}')}\nbase_url = {json.dumps(base_url)}\n"
    return f"{model}api_key_env = {json.dumps(KEY)}\ninput_price = 3.0\noutput_price = 15.0\n"


def stage_environment(scene: Scene, environment: Mapping[str, str], *, scripted: bool) -> dict[str, str]:
    """The environment for Mendwork: this demo's configuration and Temporal server, nobody else's."""
    kept = {name: value for name, value in environment.items() if not name.startswith(("TEMPORAL_", "MENDWORK_"))}
    kept |= {name: environment[name] for name in ("MENDWORK_TEMPORAL__SERVER",) if name in environment}
    kept["MENDWORK_CONFIG"] = str(scene.config)
    kept["TEMPORAL_CONFIG_FILE"] = str(scene.folder / "no-temporal-profiles.toml")
    if scripted:
        kept[KEY] = "the-scripted-server-wants-none"
        for name in ("NO_PROXY", "no_proxy"):
            kept[name] = ",".join(filter(None, (environment.get(name, ""), LOCAL)))
    return kept


def _take_over(lock: int, folder: Path, tell: Callable[[str], None]) -> None:
    """Have the folder's lock, which the kernel frees when its holder ends, and ask that holder to end."""
    until = time.monotonic() + HANDOVER_SECONDS
    asked = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise StageFailure(f"another demo runs in {folder} and does not stop") from error
            if not asked:
                asked = _stop_holder(folder, tell)
            time.sleep(0.1)
        else:
            return


def _stop_holder(folder: Path, tell: Callable[[str], None]) -> bool:
    holder = (folder / "demo.lock").read_text(encoding="utf-8").strip()
    if not holder.isdigit():
        return False
    tell(f"Another demo (pid {holder}) runs in {folder}: it is stopped.")
    with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
        os.kill(int(holder), signal.SIGTERM)
    return True


def _stop_production(folder: Path, tell: Callable[[str], None]) -> None:
    """Production outlives Mendwork, also that of a demo that was killed."""
    config = folder / "mendwork.toml"
    if not (config.exists() and (folder / ".mendwork").is_dir()):
        return
    try:
        run([MENDWORK, "target", "stop"], environment={**os.environ, "MENDWORK_CONFIG": str(config)})
    except StageFailure as error:
        tell(f"What the last demo may have left in production cannot be stopped: {error}")


def _python() -> str:
    """``python3`` where that is one the example can run on, else the interpreter below our own environment."""
    found = shutil.which("python3")
    with contextlib.suppress(StageFailure):
        if found and run([found, "-c", "import sys; print(sys.version_info >= (3, 11))"]).strip() == "True":
            return "python3"
    return str(Path(sys.executable).resolve())

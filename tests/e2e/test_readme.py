"""What the README tells a person to type, typed: blocks marked ``console`` run in order, in one workshop."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.temporal.finding import find_server
from tests.e2e.workshop import ANSWERS, CHECKOUT, FILES, MENDWORK, Ran, Workshop, make_repository, wait_for

README = CHECKOUT / "README.md"
BLOCK = re.compile(r"^```(?:console|sh)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = ("$ ", ".venv/bin/mendwork ")
REVIEW = {"summary": "nothing is wrong", "findings": []}


@dataclass(frozen=True, kw_only=True)
class Typed:
    """One command; ``code`` is that of a comment ``# exit code N``, 0 without one."""

    argv: tuple[str, ...]
    code: int = 0


def commands(text: str) -> list[Typed]:
    """The commands of blocks marked ``console`` (behind "$ ") and ``sh`` (Mendwork's own); other lines are output."""
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines() if line.startswith(TYPED)]
    return [_typed(line.removeprefix("$ ").removeprefix(".venv/bin/")) for line in lines]


def _typed(line: str) -> Typed:
    said = re.search(r"#.*exit code (\d+)", line)
    return Typed(argv=tuple(shlex.split(line, comments=True)), code=int(said.group(1)) if said else 0)


def configuration(text: str) -> str:
    """The README's mendwork.toml: the first block of TOML."""
    found = re.search(r"^```toml[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, "README.md shows no mendwork.toml"
    return found.group(1)


class Typist:
    """A person who types what the README says, with the names that it leaves open filled in."""

    def __init__(self, at: Workshop) -> None:
        self._at = at
        self._build = ""
        self._desk = at.root.parent / "new-desk"
        self._desk.mkdir()

    def type(self, typed: Typed) -> Ran:
        """Run one command to its end."""
        argv = self._filled(typed.argv)
        if argv[0] == "temporal":
            named = os.environ.get("MENDWORK_TEMPORAL__SERVER")
            argv[0] = str(find_server(explicit=Path(named) if named else None, environment=os.environ))
        else:
            argv[:1] = MENDWORK
        where, environment = self._at.root, {**self._at.environment, "TEMPORAL_ADDRESS": self._address()}
        if typed.argv[1] == "init":  # at a desk where nothing is yet, by somebody who cannot be asked
            argv.append("--yes")
            where = self._desk
            environment = {name: value for name, value in environment.items() if not name.startswith("MENDWORK_")}
        done = subprocess.run(
            argv,
            cwd=where,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        started = re.search(r"^build-[a-z0-9-]+-\d+$", done.stdout, re.MULTILINE)
        if typed.argv[1] in ("build", "rerun", "resume") and started and "--dry-run" not in typed.argv:
            self._build = started.group(0)
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    def _filled(self, argv: Sequence[str]) -> list[str]:
        """BUILD is the build that was started last, DIGEST and ASK what it waits for; where none is, one is started."""
        ask = {"digest": "", "id": ""}
        if any(name in word for word in argv for name in ("DIGEST", "ASK")):
            ask = wait_for(self._asked, seconds=90, why="an ask")
        elif not self._build:
            self._begin()
        names = {"DIGEST": ask["digest"][:12], "ASK": ask["id"], "BUILD": self._build}
        return [re.sub("DIGEST|ASK|BUILD", lambda name: names[name.group()], word) for word in argv]

    def _asked(self) -> dict[str, str] | None:
        if not self._build or self._at.status(self._build)["status"] != "running":
            self._begin()
        asks = json.loads(self._at.mendwork("pending", self._build, "--json").out)
        return asks[0] if asks else None

    def _begin(self) -> None:
        self._build = self._at.mendwork("build", "feature.md", "--detach").out.strip()
        wait_for(lambda: self._at.mendwork("status", self._build).code == 0, why=f"the first row of {self._build}")

    def _address(self) -> str:
        return str(json.loads((self._at.state / "dev.json").read_text())["address"])


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Workshop]:
    """The README's own mendwork.toml beside a repository ``shop``; only the provider and the ports are ours."""
    at = Workshop(tmp_path / "w" / "desk", answers=[*ANSWERS, {"role": "Review", "answer": REVIEW}])
    make_repository(at.root.parent / "shop", FILES)
    (at.root / "feature.md").write_text(at.spec.read_text())
    (at.root / "mendwork.toml").write_text(configuration(README.read_text()))
    at.environment |= {
        "MENDWORK_TEMPORAL__PORT": "0",
        "MENDWORK_TEMPORAL__UI_PORT": "0",
        "MENDWORK_PROJECTS__SHOP__TEST": "python3 -m unittest",
        "OPENAI_API_KEY": at.environment["SCRIPTED_API_KEY"],
    }
    with at.provider() as base_url:
        models = set(re.findall(r"^\[models\.([a-z0-9_]+)\]", configuration(README.read_text()), re.MULTILINE))
        for model in models:
            at.environment |= {
                f"MENDWORK_MODELS__{model.upper()}__MODEL": "openai/scripted",
                f"MENDWORK_MODELS__{model.upper()}__BASE_URL": base_url,
                f"MENDWORK_MODELS__{model.upper()}__INPUT_PRICE": "1.0",
                f"MENDWORK_MODELS__{model.upper()}__OUTPUT_PRICE": "4.0",
            }
        with at.spawned([*MENDWORK, "dev"], log="dev.log"):
            wait_for(at.is_ready, seconds=90, why=f"mendwork dev ({at.root / 'dev.log'})")
            with at.checked():
                yield at


def test_what_is_to_be_typed_is_found_with_its_exit_code() -> None:
    marked = "$ mendwork build x.md   # exit code 7: it waits\nwhat it prints\n$ temporal -a 'b c'\n"
    text = f"```sh\nmake no\n.venv/bin/mendwork dev  # on\n```\n\n```console\n{marked}```\n"
    assert commands(text) == [
        Typed(argv=("mendwork", "dev")),
        Typed(argv=("mendwork", "build", "x.md"), code=7),
        Typed(argv=("temporal", "-a", "b c")),
    ]


@pytest.mark.timeout(400)
def test_the_commands_of_the_readme_do_what_it_says(at: Workshop) -> None:
    listed = [typed for typed in commands(README.read_text()) if typed.argv[1:] != ("dev",)]
    assert listed, "README.md has no block that is marked console"
    typist = Typist(at)
    for typed in listed:
        ran = typist.type(typed)
        # Where the README's reader sits at a terminal, a build asks there; here it comes back with its question.
        allowed = {typed.code, 7} if typed.argv[1] in ("build", "rerun", "resume") else {typed.code}
        assert ran.code in allowed, f"{' '.join(typed.argv)}: {ran.code}\n{ran.out}\n{ran.err}"

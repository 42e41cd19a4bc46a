"""A user's repository with a few branches, all of them in the mirror: what the tests of merges start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from adapters.compliance.user_repository import UserRepository
from adapters.git.adapter import GitPorts, open_git
from domain.ports.workspace import Rebased, RebaseRequest

LINES = "".join(f"line {number}\n" for number in range(40)).encode()
LINK, GONE, EXECUTABLE = object(), object(), object()


@dataclass
class Scene:
    """A user's repository whose branches come into the mirror; of the usual three ``theirs`` goes onto ``ours``."""

    folder: Path
    options: tuple[str, ...] = ()
    user: UserRepository = field(init=False)
    ports: GitPorts = field(init=False)

    def __post_init__(self) -> None:
        self.user = UserRepository(self.folder / "user", *self.options, commit=False)
        (self.user.path / ".git" / "info" / "attributes").write_text("* -text\n")  # commits what the test writes
        self.user.git("symbolic-ref", "HEAD", "refs/heads/unused")
        self.ports = open_git(self.folder / "state")

    def branch(self, name: str, start: str, files: dict[str, object]) -> str:
        """A branch with one commit more, that writes ``files``."""
        if start:
            self.user.git("checkout", "--quiet", "--detach", start)
        for path, content in files.items():
            self._write(self.user.path / path, content)
        commit = self.user.commit({})
        self.user.git("checkout", "--quiet", "--detach")
        self.user.git("update-ref", f"refs/heads/{name}", commit)
        return commit

    def _write(self, path: Path, content: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is EXECUTABLE:
            path.chmod(0o755)
        elif content is GONE:
            path.unlink()
        elif isinstance(content, str):
            path.unlink(missing_ok=True)
            path.symlink_to(content)
        elif isinstance(content, bytes):
            path.unlink(missing_ok=True)
            path.write_bytes(content)

    async def known(self) -> None:
        """Every branch comes into the mirror."""
        for ref in self.user.refs():
            name = ref.removeprefix("refs/heads/")
            await self.ports.mirrors.fetch_base(self.user.project(branch=name), build=f"of-{name}")

    async def rebase(self, onto: str = "ours", base: str = "base", head: str = "theirs") -> Rebased:
        onto, base, head = (self.user.git("rev-parse", name) for name in (onto, base, head))
        request = RebaseRequest(project="shop", build="b1", onto=onto, base=base, head=head)
        return await self.ports.merges.rebase(request)

    async def merge(self, base: dict[str, object], ours: dict[str, object], theirs: dict[str, object]) -> Rebased:
        self.branch("base", "", base)
        self.branch("ours", "base", ours)
        self.branch("theirs", "base", theirs)
        await self.known()
        return await self.rebase()

    async def content(self, commit: str, path: str) -> bytes:
        return await self.ports.sources.read("shop", commit, path)

    @property
    def mirror(self) -> Path:
        return self.folder / "state" / "mirrors" / "shop.git"

    def pins(self) -> list[str]:
        """Every ref of the mirror."""
        mirror = UserRepository.__new__(UserRepository)
        mirror.path = self.mirror
        return sorted(mirror.refs())


def edited(number: int, text: str) -> bytes:
    return LINES.replace(f"line {number}\n".encode(), f"{text}\n".encode())

"""Files of every kind, as git objects: what a repository of others may hold and an ordinary one does not."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.compliance.user_repository import UserRepository

FILE, PROGRAM, LINK, MODULE = "100644", "100755", "120000", "160000"
POINTER = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:"
    + b"4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
    + b"\nsize 12345\n"
)
ATTRIBUTES = b"""[attr]mine text eol=crlf ident filter=lfs working-tree-encoding=UTF-16
* text=auto eol=crlf ident filter=lfs diff=lfs merge=lfs export-subst export-ignore working-tree-encoding=UTF-16LE
*.txt mine
*.bin filter=lfs -text
"""
MODULES = b'[submodule "vendored"]\n\tpath = vendored\n\turl = ../vendored\n'

Odd = Mapping[bytes, tuple[str, bytes]]
"""Mode and content by path; of a submodule the content is the hexadecimal name of its commit."""

ODD: Odd = {
    b".gitattributes": (FILE, ATTRIBUTES),
    b".gitignore": (FILE, b"*.bin\nbuild/\nignored\n"),
    b".gitmodules": (FILE, MODULES),
    b".mailmap": (FILE, b"A <a@h> B <b@h>\n"),
    b"sub/.gitattributes": (FILE, b"* -diff merge=ours encoding=latin-1\n"),
    b"ignored": (FILE, b"tracked all the same\n"),
    b"binary.bin": (FILE, bytes(range(256)) * 40),
    b"zeros": (FILE, b"\0" * 5000),
    b"empty": (FILE, b""),
    b"crlf.txt": (FILE, b"one\r\ntwo\r\n"),
    b"mixed.txt": (FILE, b"one\r\ntwo\nthree\rfour"),
    b"no end.txt": (FILE, b"no line end"),
    b"ident.txt": (FILE, b"$Id$ $Format:%H$ $Id: 1234 $\n"),
    b"utf16.txt": (FILE, "größe\n".encode("utf-16")),
    b"latin.txt": (FILE, "größe\n".encode("latin-1")),
    b"marks.txt": (FILE, b"<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n"),
    b"weights.dat": (FILE, POINTER),
    b"run.sh": (PROGRAM, b"#!/bin/sh\necho run\n"),
    b"program\r\n.sh": (PROGRAM, b"#!/bin/sh\r\n"),
    b"link": (LINK, b"run.sh"),
    b"folder link": (LINK, b"sub"),
    b"dangling": (LINK, b"no/such/place"),
    b"absolute": (LINK, b"/etc/passwd"),
    b"upwards": (LINK, b"../../../outside"),
    b"itself": (LINK, b"itself"),
    b"bytes link": (LINK, b"latin-\xe9\xff"),
    b"vendored": (MODULE, b"1" * 40),
    b"latin-\xe9": (FILE, b"a name of bytes\n"),
    b"latin-\\xe9": (FILE, b"a name that looks like it\n"),
    b"sub/\xff\xfe/deep": (FILE, b"bytes above\n"),
    b"tab\there": (FILE, b"tab\n"),
    b"line\nend": (FILE, b"newline\n"),
    b"escape\x1b[31m": (FILE, b"colour\n"),
    b" leading and trailing ": (FILE, b"blank\n"),
    b"-dash": (FILE, b"dash\n"),
    b"--help": (FILE, b"option\n"),
    b"back\\slash": (FILE, b"back\n"),
    b"quo\"te's": (FILE, b"quotes\n"),
    b":(glob)*": (FILE, b"magic\n"),
    b"a*?[b]": (FILE, b"pattern\n"),
    b"$(touch owned)`touch owned`;x": (FILE, b"shell\n"),
    b"CON": (FILE, b"device\n"),
    b"name.": (FILE, b"dot\n"),
    b"Case": (FILE, b"upper\n"),
    b"case": (FILE, b"lower\n"),
    b"CASE/inner": (FILE, b"folder\n"),
    "caf\u00e9".encode(): (FILE, b"NFC\n"),
    "cafe\u0301".encode(): (FILE, b"NFD\n"),
    "\u202eright to left".encode(): (FILE, b"bidi\n"),
    "\U0001f9ea 试验".encode(): (FILE, b"wide\n"),
    b"n" * 255: (FILE, b"long name\n"),
    b"/".join([b"d" * 200] * 6) + b"/deep": (FILE, b"long path\n"),
    b"sub.d/x": (FILE, b"sorts beside sub\n"),
    b"sub-d": (FILE, b"sorts before it\n"),
    b"app.py": (FILE, b"one\ntwo\nthree\n"),
}


@dataclass(frozen=True, kw_only=True)
class Stored:
    """An entry of a tree as git has it: everything that must not change."""

    mode: str
    kind: str
    name: str


def write_tree(user: UserRepository, files: Odd, *, onto: str = "") -> str:
    """Commit exactly ``files`` on main, whatever a working tree could hold; the commit's name."""
    index = b"".join(
        f"{mode} {content.decode() if mode == MODULE else stored(user, content)}\t".encode() + path + b"\0"
        for path, (mode, content) in files.items()
    )
    user.git("read-tree", "--empty")
    raw(user.path, "update-index", "-z", "--index-info", stdin=index)
    tree = user.git("write-tree")
    commit = user.git("commit-tree", tree, *(("-p", onto) if onto else ()), "-m", "odd")
    user.git("update-ref", "refs/heads/main", commit)
    return commit


def stored(user: UserRepository, content: bytes) -> str:
    """A blob of the repository."""
    return raw(user.path, "hash-object", "-w", "--no-filters", "--stdin", stdin=content).decode().strip()


def tree_of(repository: Path, commit: str) -> dict[bytes, Stored]:
    """Every entry of a commit, by the bytes of its path."""
    found = {}
    for line in raw(repository, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        if line:
            fields, _, path = line.partition(b"\t")
            mode, kind, name = fields.decode().split()
            found[path] = Stored(mode=mode, kind=kind, name=name)
    return found


def raw(repository: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """What git prints, byte for byte."""
    argv = ("git", "-c", "safe.directory=*", "-c", "core.fsync=none", *arguments)
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(argv, cwd=repository, env=environment, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def on_disk(folder: Path) -> dict[bytes, tuple[str, bytes]]:
    """What lies below ``folder``, in the shape of ``ODD``; an empty folder is a submodule that is not there."""
    found = {}
    root = os.fsencode(folder)
    for place, folders, files in os.walk(root):
        for name in [*files, *folders]:
            path = os.path.join(place, name)
            state = os.lstat(path)
            shown = os.path.relpath(path, root)
            if stat.S_ISLNK(state.st_mode):
                found[shown] = (LINK, os.readlink(path))
            elif stat.S_ISREG(state.st_mode):
                with open(path, "rb") as file:
                    found[shown] = (PROGRAM if state.st_mode & 0o100 else FILE, file.read())
            elif not os.listdir(path):
                found[shown] = (MODULE, b"")
    return found


def expected(files: Odd) -> dict[bytes, tuple[str, bytes]]:
    """What a checkout of ``files`` has on disk."""
    return {path: (mode, b"" if mode == MODULE else content) for path, (mode, content) in files.items()}

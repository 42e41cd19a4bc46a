"""Python's manifests. Every reader raises ValueError (or TypeError, AttributeError for another shape) when it cannot
tell all the names; what comes from an address instead of a registry is given by that address."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(.*)", re.DOTALL)
_ELSEWHERE = ("url", "git", "file")
_KEYWORDS = ("install_requires", "extras_require", "setup_requires", "tests_require")


def requirement(text: str) -> str:
    """The name in "name[extra] >=1; marker", or the address in "name @ https://…"."""
    found = _NAME.match(text)
    if "://" in text.partition(";")[0]:
        return (
            text.partition("@")[2].strip().split()[0] if found and found[2].startswith("@") else text.strip().split()[0]
        )
    if not found or (found[2] and found[2][0] not in "<>=!~;(,@"):
        raise ValueError(f"no requirement: {text[:80]!r}")
    return found[1]


def requirements(text: str) -> set[str]:
    """A list for pip: one a line, with options."""
    return {name for line in _lines(text) for name in _of_line(line)}


def included(text: str) -> tuple[str, ...]:
    """The files that a list for pip includes, as it names them."""
    found = [re.match(r"(?:-r|--requirement|-c|--constraint)[\s=]*(\S+)", line) for line in _lines(text)]
    return tuple(each[1] for each in found if each)


def pyproject(text: str) -> set[str]:
    """``[project]``, ``[build-system]``, ``[dependency-groups]`` and Poetry's, uv's, Hatch's and PDM's tables."""
    table = tomllib.loads(text)
    project, tool = table.get("project", {}), table.get("tool", {})
    lists: list[Iterable[Any]] = [project.get("dependencies", ()), table.get("build-system", {}).get("requires", ())]
    lists += [*project.get("optional-dependencies", {}).values(), *table.get("dependency-groups", {}).values()]
    lists += [tool.get("uv", {}).get(key, ()) for key in ("dev-dependencies", "constraint-dependencies")]
    lists += [
        tool.get("uv", {}).get("override-dependencies", ()),
        *tool.get("pdm", {}).get("dev-dependencies", {}).values(),
    ]
    for environment in tool.get("hatch", {}).get("envs", {}).values():
        lists += [environment.get(key, ()) for key in ("dependencies", "extra-dependencies")]
    names = {requirement(each) for entries in lists for each in entries if not isinstance(each, dict)}
    sources = tool.get("uv", {}).get("sources", {}).values()
    addresses = {found for source in sources for found in _elsewhere(source)}
    return names | addresses | set(_poetry(tool.get("poetry", {})))


def pyproject_files(text: str) -> tuple[str, ...]:
    """The files that setuptools reads requirements from, as ``[tool.setuptools.dynamic]`` names them."""
    try:
        dynamic = tomllib.loads(text)["tool"]["setuptools"]["dynamic"]
        tables = [dynamic.get("dependencies", {}), *dynamic.get("optional-dependencies", {}).values()]
        named = [table.get("file", ()) for table in tables]
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()
    return tuple(str(each) for files in named for each in ([files] if isinstance(files, str) else files))


def setup_cfg(text: str) -> set[str]:
    """setuptools' ``[options]``."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from error
    values = [parser.get("options", key, fallback="") for key in _KEYWORDS]
    if parser.has_section("options.extras_require"):
        values += [value for _, value in parser.items("options.extras_require")]
    entries = [line.strip() for value in values for line in re.split(r"[\n;](?=\s*[A-Za-z0-9])", value)]
    if any(value.strip().startswith("file:") for value in values):
        raise ValueError("the names are in another file")
    return {requirement(each) for each in entries if each and not _is_marker(each)}


def setup_py(text: str) -> set[str]:
    """The names that a program passes to ``setup()`` as they stand; a program that computes them cannot be read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, MemoryError) as error:
        raise ValueError(str(error)) from error
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg is None and _is_setup(node):
                    raise ValueError("the arguments of setup() are computed")
                if keyword.arg in _KEYWORDS:
                    names |= {requirement(each) for each in _strings(ast.literal_eval(keyword.value))}
    return names


def lock(text: str) -> set[str]:
    """uv.lock, poetry.lock, pylock.toml: the names, and each address that is not of a file of its package."""
    table = tomllib.loads(text)
    packages = table.get("package", table.get("packages", ()))
    names = {str(package["name"]) for package in packages}
    return names | {address for package in packages for address in _foreign(package)}


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        bare = re.sub(r"(^|\s)#.*$", "", line).strip()
        if bare:
            yield bare


def _of_line(line: str) -> Iterator[str]:
    if not line.startswith("-"):
        if re.match(r"\.{0,2}/|\.$|\.\[|[A-Za-z]:\\", line):
            return  # a folder of the checkout
        yield requirement(re.split(r"\s--?[a-z]", line)[0])
        return
    editable = re.match(r"(?:-e|--editable)[\s=]*(.*)", line)
    if editable and "://" in editable[1]:
        yield editable[1].strip()


def _poetry(table: dict[str, Any]) -> Iterator[str]:
    groups = [group.get("dependencies", {}) for group in table.get("group", {}).values()]
    for dependencies in (table.get("dependencies", {}), table.get("dev-dependencies", {}), *groups):
        for name, value in dependencies.items():
            if name.lower() != "python":
                yield name
                for each in value if isinstance(value, list) else [value]:
                    yield from _elsewhere(each)


def _elsewhere(source: Any) -> Iterator[str]:
    for each in source if isinstance(source, list) else [source]:
        if isinstance(each, dict):
            for key in _ELSEWHERE:
                if key in each:
                    yield each[key] if "://" in each[key] else f"{key}://{each[key]}"


def _foreign(package: dict[str, Any]) -> Iterator[str]:
    entries = [package.get(key) for key in ("sdist", "archive", "source", "vcs")]
    entries += [*package.get("wheels", ()), *package.get("files", ())]
    for entry in entries:
        if isinstance(entry, dict) and entry.get("type") != "legacy":
            address = str(entry.get("url") or entry.get("git") or "")
            if address and _plain(_package_of(address)) != _plain(str(package["name"])):
                yield address if "://" in address else f"url://{address}"


def _package_of(address: str) -> str:
    """What a wheel's or a source distribution's file is named after."""
    file = unquote(address.partition("#")[0].rpartition("/")[2])
    return file.partition("-")[0] if file.endswith(".whl") else file.rpartition("-")[0]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (line for line in value.splitlines() if line.strip())
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, (list, tuple, set)):
        for each in value:
            yield from _strings(each)
    elif value is not None:
        raise ValueError("no list of names")


def _is_setup(node: ast.Call) -> bool:
    return (isinstance(node.func, ast.Name) and node.func.id == "setup") or (
        isinstance(node.func, ast.Attribute) and node.func.attr == "setup"
    )


def _is_marker(text: str) -> bool:
    return (
        re.match(r"(python_version|python_full_version|sys_platform|platform_|os_name|implementation_|extra)\b", text)
        is not None
    )

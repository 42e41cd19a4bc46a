"""A name that nobody has heard of is asked about, wherever it is written; a known or an old one is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.environments.lists import known_packages
from domain.environment.names import Wanted, includes, normalised, unknown, wanted

KNOWN = known_packages()
LOCKED = 'url = "https://files.pythonhosted.org/packages/ab/'


def names(path: str, text: str) -> list[str]:
    """What one manifest asks for."""
    return sorted(each.name for each in wanted({path: text.encode()}))


def asks(path: str, after: str, before: str = "", *, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What a person is asked when a manifest changes."""
    old = {path: before.encode()} if before else {}
    return unknown(wanted({path: after.encode()}), trusted=wanted(old), names=allowed, known=KNOWN)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Flask_SQLAlchemy>=3", ["flask-sqlalchemy"]),
        ("requests[socks] ; python_version < '3.12'  # why", ["requests"]),
        ("attrs==23.1 --hash=sha256:00", ["attrs"]),
        ("a-b (>=1)", ["a-b"]),
        ("-e .", []),
        ("./vendor/thing", []),
        ("--index-url https://example.org/simple", []),
        ("-r other.txt", ["everything in other.txt (it cannot be read)"]),
        ("-e git+https://example.org/x#egg=y", ["git+https://example.org/x#egg=y"]),
        ("requests @ https://example.org/evil.whl", ["https://example.org/evil.whl"]),
        ("https://example.org/evil.whl", ["https://example.org/evil.whl"]),
    ],
)
def test_a_line_for_pip(line: str, name: list[str]) -> None:
    assert names("requirements.txt", f"# all\n\n{line}\n") == name


def test_every_table_of_a_pyproject_is_read() -> None:
    text = """
    [build-system]\nrequires = ["hatchling"]
    [project]\nname = "own"\ndependencies = ["a1>1"]\noptional-dependencies = {t = ["b1"]}
    [dependency-groups]\ndev = ["c1", {include-group = "x"}]
    [tool.uv]\ndev-dependencies = ["d1"]\nsources = {a1 = {git = "https://example.org/a"}, b1 = {workspace = true}}
    [tool.poetry.dependencies]\npython = "^3"\ne1 = "^1"\nf1 = {url = "https://example.org/f"}
    [tool.poetry.group.dev.dependencies]\ng1 = "*"
    """
    found = names("pyproject.toml", text)
    assert found == [
        "a1",
        "b1",
        "c1",
        "d1",
        "e1",
        "f1",
        "g1",
        "hatchling",
        "https://example.org/a",
        "https://example.org/f",
    ]


def test_setuptools_own_files_are_read() -> None:
    assert names("setup.cfg", "[options]\ninstall_requires =\n  one>1\n  two; python_version<'4'\n") == ["one", "two"]
    assert names(
        "setup.py", "from setuptools import setup\nsetup(install_requires=['one'], extras_require={'t': ['two']})"
    ) == [
        "one",
        "two",
    ]


def test_a_program_that_computes_its_names_counts_as_everything_in_it_until_it_is_as_before() -> None:
    text = "from setuptools import setup\nsetup(install_requires=open('r').read().split())"
    (question,) = asks("setup.py", text)
    assert question.startswith("everything in setup.py (it cannot be read, state ")
    assert asks("setup.py", text, before=text) == ()
    assert asks("setup.py", text + "\n", before=text) != ()
    assert asks("setup.py", text, allowed=(question,)) == ()


def test_npm_manifests_with_aliases_and_addresses() -> None:
    table = {
        "dependencies": {"left": "^1.2.3", "@s/p": ">=1 <2 || 3.x", "nick": "npm:other@1", "here": "file:../x"},
        "devDependencies": {"away": "github:someone/thing", "far": "https://example.org/x.tgz"},
        "overrides": {"deep": {"down": "1"}},
    }
    expected = ["@s/p", "down", "https://example.org/x.tgz", "left", "other", "url://github:someone/thing"]
    assert names("package.json", json.dumps(table)) == expected


def test_a_lock_that_leads_a_known_name_elsewhere_is_asked_about() -> None:
    good = {"resolved": "https://registry.npmjs.org/lodash/-/lodash-4.17.21.tgz"}
    evil = {"resolved": "https://registry.npmjs.org/lodahs/-/lodahs-4.17.21.tgz"}
    for entry, asked in ((good, ()), (evil, (evil["resolved"],))):
        assert asks("package-lock.json", json.dumps({"packages": {"": {}, "node_modules/lodash": entry}})) == asked
    for file, questions in (("requests-2.0-py3-none-any.whl", 0), ("requests_evil-2.0-py3-none-any.whl", 1)):
        text = f'[[package]]\nname = "requests"\nwheels = [{{{LOCKED}{file}"}}]\n'
        assert len(asks("uv.lock", text)) == questions


def test_modules_of_go() -> None:
    text = "module x\n\ngo 1.21\n\nrequire example.org/one v1.0.0\n"
    text += "require (\n\texample.org/two/v2 v2.1.0 // indirect\n)\n"
    text += "replace example.org/one => example.org/three v1.0.0\n"
    assert names("go.mod", text) == ["example.org/one", "example.org/three", "example.org/two/v2"]


@pytest.mark.parametrize("path", ["pyproject.toml", "package.json", "uv.lock", "setup.cfg", "requirements.txt"])
def test_a_manifest_that_cannot_be_read_is_asked_about_as_a_whole(path: str) -> None:
    (question,) = asks(path, "\0 [[[ no")
    assert question.startswith(f"everything in {path}")


def test_what_is_included_is_found_relative_to_the_list() -> None:
    assert includes("requirements/dev.txt", b"-r base.txt\n-c../all.txt\n") == ("all.txt", "requirements/base.txt")
    dynamic = b'[tool.setuptools.dynamic]\ndependencies = {file = ["deps.in"]}\n'
    assert includes("pyproject.toml", dynamic) == ("deps.in",)
    assert "surely-nobody-has-this" in {
        each.name for each in wanted({"pyproject.toml": dynamic, "deps.in": b"surely-nobody-has-this\n"})
    }


# An import that failed, the package that a person would install for it, and whether that needs a question.
MISSING = [
    ("cv2", "opencv-python", False),
    ("PIL", "pillow", False),
    ("bs4", "beautifulsoup4", False),
    ("OpenSSL", "pyopenssl", False),
    ("yaml", "PyYAML", False),
    ("sklearn", "scikit-learn", False),
    ("dateutil", "python_dateutil", False),
    ("sklearn2", "sklearn2-tools-fast", True),
    ("utils", "utils-internal-common", True),
]


@pytest.mark.parametrize(("module", "package", "question"), MISSING)
def test_the_well_known_package_of_an_import_is_installed_and_a_guessed_one_asked_about(
    module: str, package: str, question: bool
) -> None:
    assert bool(asks("requirements.txt", f"{package}\n")) is question


def test_what_the_base_a_configuration_or_a_person_names_is_not_asked_about() -> None:
    assert asks("requirements.txt", "zz-own-one\nzz-new\n", before="ZZ.own_one==1\n") == ("zz-new",)
    assert asks("requirements.txt", "zz-new\n", allowed=("ZZ_New",)) == ()


def test_one_registrys_known_name_is_not_anothers() -> None:
    assert asks("requirements.txt", "eslint-module-utils\n") == ("eslint-module-utils",)


def test_the_lists_are_spelt_as_they_are_looked_up() -> None:
    assert all(name == normalised(name) for name in KNOWN["pypi"])
    assert all(len(KNOWN[kind]) > 200 for kind in ("pypi", "npm"))


@given(
    st.dictionaries(
        st.sampled_from(["pyproject.toml", "setup.py", "a/package.json", "go.mod", "uv.lock", "r.in"]), st.binary()
    )
)
def test_whatever_is_in_a_manifest_it_is_names_or_a_question(files: dict[str, bytes]) -> None:
    found = wanted(files)
    assert all(each.name.isprintable() for each in found)
    assert unknown(found, trusted=found, names=(), known={}) == ()


@given(st.sets(st.sampled_from(["requests", "zz-a", "zz-b", "zz-c"])), st.sets(st.sampled_from(["zz-a", "zz-b"])))
def test_allowing_everything_that_was_asked_leaves_no_question(asked: set[str], base: set[str]) -> None:
    after = {Wanted("pypi", each) for each in asked}
    before = {Wanted("pypi", each) for each in base}
    first = unknown(after, trusted=before, names=(), known=KNOWN)
    assert unknown(after, trusted=before, names=first, known=KNOWN) == ()
    assert set(first) == asked - base - {"requests"}

"""Real packages with one line changed, what a person writes about it, and what a model answers: wrong, then right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.projects import change, create, edit, plan, task

PYPI = ("pypi.org", "files.pythonhosted.org")
NPM = ("registry.npmjs.org",)


@dataclass(frozen=True, kw_only=True)
class Package:
    """``path`` holds ``right``, which was made ``seeded``; the model first makes it ``wrong``. ``check`` is the test
    file that it adds (path and text), whose test ``new`` notices. ``known`` fail here whatever anybody does."""

    name: str
    path: str
    right: str
    seeded: str
    wrong: str
    spec: str
    test: str
    setup: str
    folder: str
    registries: tuple[str, ...]
    inputs: tuple[str, ...]
    check: tuple[str, str]
    new: str
    known: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=dict)

    def answers(self) -> Iterator[dict[str, Any]]:
        """The plan, an attempt that does not mend it, and one that does."""
        yield plan(task("mend", self.path, self.check[0]))
        yield change("mend", 1, edit(self.path, self.seeded, self.wrong), create(*self.check))
        yield change("mend", 2, edit(self.path, self.seeded, self.right), create(*self.check))

    def section(self) -> str:
        """What follows the head of its section in mendwork.toml."""
        return (
            f'\n[this.setup]\ncommand = ["sh", "-ec", "{self.setup}"]\nfolder = "{self.folder}"\n'
            f"registries = {list(self.registries)}\ninputs = {list(self.inputs)}\n"
            "\n[this.limits]\n" + "".join(f"{key} = {value}\n" for key, value in self.limits.items())
        )


def _by_pip(wanted: str) -> str:
    return f"python3 -m venv .venv && .venv/bin/python -m pip install --quiet {wanted}"


CLICK = Package(
    name="click",
    path="src/click/utils.py",
    right="        if total_length > max_length:  # too long, truncate\n",
    seeded="        if total_length >= max_length:  # too long, truncate\n",
    wrong="        if total_length > max_length + 4:  # too long, truncate\n",
    spec="""# One-line help is cut too early

The summary of a command, which is made from the first paragraph of its long help, is cut although it fits: a text that
is exactly as long as the room that there is loses its last word and gets dots. What fits is to be shown as it is.
""",
    test="python -m pytest",
    setup=_by_pip("-r requirements/tests.txt -e ."),
    folder=".venv",
    registries=PYPI,
    inputs=("pyproject.toml", "requirements/tests.txt"),
    check=(
        "tests/test_short_help.py",
        "import pytest\n\nfrom click.utils import make_default_short_help\n\n\n"
        '@pytest.mark.parametrize("room", [8, 9, 10, 11, 12])\n'
        "def test_what_fits_is_shown_as_it_is(room):\n"
        '    shown = make_default_short_help("Show it all", room)\n'
        '    assert (shown == "Show it all") is (room >= 11)\n'
        "    assert len(shown) <= room\n",
    ),
    new="test_what_fits_is_shown_as_it_is",
)
ATTRS = Package(
    name="attrs",
    path="src/attr/converters.py",
    right='    if val in (False, "false", "f", "no", "n", "off", "0", 0):\n',
    seeded='    if val in (False, "false", "f", "no", "n", "0", 0):\n',
    wrong='    if val in (False, "false", "f", "no", "n", "of", "0", 0):\n',
    spec="""# Switched-off settings are refused

A setting that says "off" in words is refused as no truth value, while "on" is understood. Both are to be understood.
""",
    test="sh -c 'python -m pytest tests/test_[cv]*.py'",  # all of them take eight times as long
    setup=_by_pip("pytest hypothesis cloudpickle -e ."),
    folder=".venv",
    registries=PYPI,
    inputs=("pyproject.toml",),
    check=(
        "tests/test_conversions.py",
        "from attr.converters import to_bool\n\n\n"
        "def test_words_come_in_pairs():\n"
        '    assert [to_bool(word) for word in ("on", "off", "ON", "OFF")] == [True, False, True, False]\n',
    ),
    new="test_words_come_in_pairs",
    known=("test_wrapped_annotation",),
)
MORE_ITERTOOLS = Package(
    name="more-itertools",
    path="more_itertools/more.py",
    right="                if len(chunk) != n:\n",
    seeded="                if len(chunk) > n:\n",
    wrong="                if len(chunk) == n:\n",
    spec="""# Uneven parts pass the strict check

Whoever cuts a sequence into parts of one size and asks for strictness is to hear of a last part that is too short. At
the moment nothing is said.
""",
    test="python -m unittest discover -t . -s tests -p test_m*.py",  # without the recipes, which take as long again
    setup=_by_pip("-e ."),
    folder=".venv",
    registries=PYPI,
    inputs=("pyproject.toml",),
    check=(
        "tests/test_measured.py",
        "from unittest import TestCase\n\nfrom more_itertools import chunked\n\n\n"
        "class Measured(TestCase):\n"
        "    def test_even_parts_pass(self):\n"
        '        self.assertEqual(list(chunked("abcdef", 3, strict=True)), [["a", "b", "c"], ["d", "e", "f"]])\n\n'
        "    def test_a_short_part_is_told(self):\n"
        "        with self.assertRaises(ValueError):\n"
        '            list(chunked("abcde", 3, strict=True))\n',
    ),
    new="test_even_parts_pass",
)
JINJA = Package(
    name="jinja2",
    path="src/jinja2/filters.py",
    right="    if len(s) <= length + leeway:\n        return s\n",
    seeded="    if len(s) <= length:\n        return s\n",
    wrong="    if len(s) < length + leeway:\n        return s\n",
    spec="""# Shortening ignores the tolerance

A text that is only a little longer than the wanted length, within the tolerance, is to stay whole when a template
shortens it. Now it is cut.
""",
    test="python -m pytest tests",
    setup=_by_pip("-r requirements/tests.txt -e ."),
    folder=".venv",
    registries=PYPI,
    inputs=("pyproject.toml", "requirements/tests.txt"),
    check=(
        "tests/test_tolerance.py",
        "import pytest\n\nfrom jinja2 import Environment\n\n\n"
        '@pytest.mark.parametrize(("leeway", "shown"), [(0, "foo..."), (6, "foo bar baz qux")])\n'
        "def test_within_the_tolerance_a_text_stays_whole(leeway, shown):\n"
        "    template = \"{{ text|truncate(9, False, '...', leeway) }}\"\n"
        '    assert Environment().from_string(template).render(text="foo bar baz qux", leeway=leeway) == shown\n',
    ),
    new="test_within_the_tolerance_a_text_stays_whole",
)
MINIMIST = Package(
    name="minimist",
    path="index.js",
    right="\tif ((/^0x[0-9a-f]+$/i).test(x)) { return true; }\n",
    seeded="\tif ((/^0x[0-9]+$/i).test(x)) { return true; }\n",
    wrong="\tif ((/^0x[a-f]+$/i).test(x)) { return true; }\n",
    spec="""# Hexadecimal values stay text

A value such as 0xdeadbeef on the command line is to become a number, whatever digits it has. At the moment one with
letters among its digits stays text.
""",
    test="tape test/*.js",
    setup="npm install --ignore-scripts --no-audit --no-fund",
    folder="node_modules",
    registries=NPM,
    inputs=("package.json",),
    check=(
        "test/hexadecimal.js",
        "'use strict';\n\nvar parse = require('../');\nvar test = require('tape');\n\n"
        "test('hexadecimal digits of every kind', function (t) {\n"
        "\tt.equal(parse(['--x', '0x1f']).x, 31, 'digits and letters');\n"
        "\tt.equal(parse(['--x', '0x10']).x, 16, 'digits alone');\n"
        "\tt.end();\n});\n",
    ),
    new="hexadecimal digits of every kind",
)
PACKAGES = (CLICK, ATTRS, MORE_ITERTOOLS, JINJA, MINIMIST)

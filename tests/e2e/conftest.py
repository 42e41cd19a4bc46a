"""One running Mendwork that the scenarios of this folder share; each starts builds of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.workshop import FILES, Workshop, make_repository

RED_TESTS = FILES["test_calc.py"].replace("add(1, 2), 3", "add(1, 2), 4")
EXTRA = """
[models.broken]
model = "openai/broken"
base_url = "http://127.0.0.1:9/v1"

[roles]
reasoning = ["coder"]
coding = ["coder"]
"""


def project(name: str, *, repository: str, branch: str = "main", test: str = "python3 -m unittest") -> str:
    """A project's section of mendwork.toml."""
    return f'\n[projects.{name}]\nrepository = "{repository}"\nbranch = "{branch}"\ntest = "{test}"\n'


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Projects: calc works, red as well; those after it cannot be built, each for its own reason."""
    at = Workshop(tmp_path_factory.mktemp("shop") / "w")
    make_repository(at.root / "red", {**FILES, "test_calc.py": RED_TESTS})
    make_repository(at.root / "testless", {"calc.py": "x = 1\n"})
    sections = [
        project("red", repository="red") + "approve = []\nreview = false\n",
        project("mute", repository="red", test="sh -c 'python3 -m unittest 2> /dev/null'"),
        project("testless", repository="testless"),
        project("nowhere", repository="does-not-exist"),
        project("branchless", repository="repository", branch="develop"),
        project("untold", repository="repository", test="no-such-runner --all"),
    ]
    with at.running(extra=EXTRA + "".join(sections)):
        yield at

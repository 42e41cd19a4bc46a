"""What docs/delivery.md tells a person to type, typed, with its own configuration; its table is the product's."""

from __future__ import annotations

import re
from pathlib import Path

from domain.risk.policy import WEIGHTS
from tests.e2e import service
from tests.e2e.test_readme import commands, configuration
from tests.e2e.workshop import CHECKOUT, DEV, Workshop, make_repository, wait_for

DOCUMENT = CHECKOUT / "docs" / "delivery.md"


def test_the_table_of_risks_is_the_published_one() -> None:
    rows = re.findall(r"^\| (\w+) \| (0\.\d\d) \|", DOCUMENT.read_text(), re.MULTILINE)
    assert {name: float(weight) for name, weight in rows} == dict(WEIGHTS)


def test_the_commands_of_the_document_do_what_it_says(tmp_path: Path) -> None:
    at = Workshop(tmp_path / "w" / "desk")
    make_repository(at.root.parent / "shop", service.FILES)
    (at.root / "mendwork.toml").write_text(configuration(DOCUMENT.read_text()))
    at.environment |= {"MENDWORK_TEMPORAL__PORT": "0", "MENDWORK_TEMPORAL__UI_PORT": "0"}
    typed = commands(DOCUMENT.read_text())
    assert len(typed) >= 9
    with at.spawned(DEV, log="dev.log"):
        try:
            wait_for(at.is_ready, seconds=90, why="mendwork dev")
            with at.checked():
                for command in typed:
                    ran = at.mendwork(*command.argv[1:])
                    assert ran.code == command.code, (command.argv, ran.out, ran.err)
        finally:
            at.mendwork("target", "stop")
    assert "rolled back" in at.mendwork("release", "list", "--project", "shop").out

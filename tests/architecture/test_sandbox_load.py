"""Every workflow loads in Temporal's sandbox, which refuses what is not deterministic."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from tests.architecture.test_wire_names import workflow_definitions


@pytest.mark.parametrize("definition", list(workflow_definitions()), ids=lambda definition: str(definition.name))
async def test_it_loads(definition: Any) -> None:
    SandboxedWorkflowRunner().prepare_workflow(definition)

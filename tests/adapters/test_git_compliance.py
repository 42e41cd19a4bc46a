"""Git keeps what the workspace ports promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.compliance.forwarding import ForwardingCompliance
from adapters.compliance.merges import MergesCompliance, MergingPorts
from adapters.compliance.workspace import WorkspaceCompliance, WorkspacePorts
from adapters.git import REGISTRY
from adapters.registry import resolve


class TestGit(WorkspaceCompliance):
    @pytest.fixture
    def ports(self, tmp_path: Path) -> WorkspacePorts:
        opened: WorkspacePorts = resolve(REGISTRY, "workspace", "git")(tmp_path / "state")
        return opened


class TestGitMerges(MergesCompliance, ForwardingCompliance):
    @pytest.fixture
    def ports(self, tmp_path: Path) -> MergingPorts:
        opened: MergingPorts = resolve(REGISTRY, "workspace", "git")(tmp_path / "state")
        return opened

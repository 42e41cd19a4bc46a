"""bubblewrap is a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.compliance.delivery.sandbox_collect import CollectCompliance
from adapters.compliance.delivery.sandbox_ways import OutletCompliance
from adapters.compliance.hostile import HostileCompliance
from adapters.compliance.sandbox import PYTHON, SandboxCompliance
from adapters.registry import resolve
from adapters.sandbox import REGISTRY
from adapters.sandbox.toolchain import default_toolchain
from domain.ports.sandbox import Sandbox


@pytest.fixture
def sandbox() -> Sandbox:
    sandbox: Sandbox = resolve(REGISTRY, "sandbox", "bubblewrap")()
    return sandbox


class _Here:
    @pytest.fixture
    def toolchain(self) -> tuple[Path, ...]:
        return default_toolchain((PYTHON,), "")


class TestBubblewrap(_Here, SandboxCompliance):
    pass


class TestBubblewrapUnderAttack(_Here, HostileCompliance):
    pass


class TestBubblewrapWithAnOutlet(_Here, OutletCompliance):
    pass


class TestBubblewrapTakenFrom(_Here, CollectCompliance):
    pass

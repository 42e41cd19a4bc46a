"""Sandboxes by engine."""

REGISTRY = {"bubblewrap": "adapters.sandbox.bubblewrap:Bubblewrap"}

"""Workspaces by name; each entry is imported when it is used."""

REGISTRY = {"git": "adapters.git.adapter:open_git"}

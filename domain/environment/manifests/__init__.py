"""Readers of manifests and lock files: from their text to the names in it."""

"""Commits as objects: written again, merged, brought here and given back."""

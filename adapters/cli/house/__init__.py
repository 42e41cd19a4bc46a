"""Keeping house: what goes, and what lies where."""

"""Snapshots of builds: list them, go on from one, compare what became of it."""

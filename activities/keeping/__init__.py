"""Keeping house: what nothing needs any more goes, and nothing else."""

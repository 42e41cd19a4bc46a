"""Set-up dependencies on disk, by key."""

"""The reference table: which blobs each build, snapshot and release names."""

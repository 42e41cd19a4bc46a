"""``mendwork replay``: a phase of a build once more, in a world of its own."""

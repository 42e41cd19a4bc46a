"""``mendwork doctor``: what is there, what is missing, and the one command that cures it."""

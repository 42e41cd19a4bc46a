"""Temporal beside us: finding, starting and reaching a server, and keeping worker processes alive."""

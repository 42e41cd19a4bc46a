"""Encryption of what Temporal stores, and the server that decrypts it for Temporal's own UI and command line."""

"""A small notes service: JSON over HTTP, stored in SQLite, nothing but the standard library."""

__version__ = "1.4.0"

"""One program of the local target: a release in its cell, a command in the same cell, or a site's proxy.

This folder is copied beside the releases and run there by the system's Python, so that what serves does not depend on
Mendwork's files: the standard library and nothing else.
"""

"""The pieces of the demo. It uses Mendwork as anybody does: by its command line, its files and its branch."""

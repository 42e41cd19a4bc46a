"""Keys of payloads, and the server that decodes them for Temporal's own UI and command line."""

"""The rows of the event log, read back out of histories: every row was first the input of a ``record_events``."""

"""The event log for people and scripts: ``trace``, ``watch``, ``events rebuild``."""

"""``mendwork config``: the effective configuration, and where each value comes from."""

"""``mendwork upgrade``: whether what is under way can go on with this version of the engine."""

"""``mendwork init``: what a repository is, seen in its files, confirmed by a person, written to mendwork.toml."""

"""Single values of `updraft.toml`: units, names and ranges, each checked by itself. Read `checks` first."""

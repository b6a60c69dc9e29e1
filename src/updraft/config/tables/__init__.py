"""The tables of `updraft.toml`, one module each. Read `worker` first; `config.model` has the whole tree."""

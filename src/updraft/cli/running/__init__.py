"""What decides: `plan` and `run`; decisions made again; what machines are told. Read `look` first."""

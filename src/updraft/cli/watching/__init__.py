"""What shows a pool that runs: `status`, `machines`, `explain` and `events`, as tables and as documents."""

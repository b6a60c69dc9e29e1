"""What people submit: traces, a pool's own history, and workloads made from a seed. Read `sources` first."""

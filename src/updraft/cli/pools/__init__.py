"""`updraft pool`: HTCondor's configuration for a pool of a size, and the proof of it. Read `pool` first."""

"""The daemon's own observer, preparer and actor in virtual time, over a simulated pool. Read `engine`."""

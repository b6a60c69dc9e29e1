"""The daemon's own observer and actor in virtual time, over a simulated pool. Read `engine` first."""

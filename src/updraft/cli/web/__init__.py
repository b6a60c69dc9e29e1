"""`updraft web`."""

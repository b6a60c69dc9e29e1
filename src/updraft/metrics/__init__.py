"""Figures for Prometheus, and alarms: a process of its own that reads what the daemon wrote down.

In goes the ledger, read only; out come metrics (`exposition`) and messages to people (`alarms`). The daemon
knows nothing of it, and neither waits for it nor ends with it, so it can tell that the daemon is dead.

Read `families` first: every metric with its labels and its help. `reading` makes a `FiguresRead` of the
ledger, and `samples` the values of it. No label has a value that a user can make up.
"""

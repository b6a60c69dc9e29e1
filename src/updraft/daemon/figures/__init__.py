"""What `updraft metrics` is told of each turn: what there is (`present`), and what has happened (`counting`).

In go the snapshot and the plan of a turn; out come JSON values for the last cycle's document, and counts for
the ledger. Nothing is decided by either.
"""

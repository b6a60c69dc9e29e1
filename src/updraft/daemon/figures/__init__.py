"""What metrics and the page are told of each turn: what there is (`present`), what has happened (`counting`),
and what clouds sell (`offers`).

In go the snapshot and the plan of a turn; out come JSON values for the last cycle's document, and counts for
the ledger. Nothing is decided by them.
"""

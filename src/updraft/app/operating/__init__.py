"""What operators do to a pool that runs: wishes for its machines, decisions of its clouds, what is left over.

In comes what is asked for; out go rows of the ledger, which the daemon obeys, and what the ledger and the
clouds say. Read `known` first.
"""

"""The life of a machine, and every way in which it ends.

In come what the cloud and the pool say of it and what the ledger remembers; out come its phase, and what
becomes of it. Read `lifecycle` first (phases as one table), then `witnesses` (the one road to every end),
`leaving` (rules whatever the queue says) and `scalein` (idle machines).
"""

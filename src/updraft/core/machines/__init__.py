"""The life of a machine, and every way in which it ends.

In come what the cloud and the pool say of it and what the ledger remembers; out come its phase, and what
becomes of it. Read `lifecycle` first (phases as one table, and when a machine last had a claim), then
`leaving` (rules whatever the queue says, and drains under way; `stubborn` where a startd doesn't do as it is
asked), `scalein` (idle machines), `dispositions` (the one place that makes an end) and `witnesses` (who may
object).
"""

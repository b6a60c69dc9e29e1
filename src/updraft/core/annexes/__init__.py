"""Machines asked for by hand, with a lease.

In come the annexes of the ledger and all machines; out come what is still to be bought for each, and how
each stands. Read `progress` first (a machine's own `max_price` is there); what a user's annexes may cost is
in `allowance`. How an annex's machines leave is with all other ends, in `core.machines`.
"""

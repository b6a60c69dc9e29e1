"""The composition root: from a site's settings to working parts.

In comes the settings tree; out come clouds, pool, ledger, planner and daemon, plugged together. No other room
knows all of them. Read `wiring` first, then `serving`, which makes the daemon of it.
"""

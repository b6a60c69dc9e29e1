"""The composition root: from a site's settings to working parts.

In comes the settings tree; out come clouds, pool, ledger, planner and daemon, plugged together. No other room
knows all of them. Read `wiring` first, then `serving`, which makes the daemon of it.

What verbs have done is here too, as far as it starts from the settings: `heads`, `images` and `operating` by
families, the others each in a module. It prints nothing: what is said on the way goes to whoever asked.
"""

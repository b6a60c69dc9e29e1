"""Who gets what where not everyone can have everything: the negotiator's shares, and the site's caps.

In come submitters with their priorities and what they have; out come whose turn it is, and how much each may
still have. Read `submitters` first.
"""

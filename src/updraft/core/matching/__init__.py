"""Would this job group run on a slot of that kind? All pairs of a decision at once, as HTCondor would say.

In come requirements and requests as text, and ads of slots; out comes a table of verdicts. Read `match` first
(one pair), then `bulk` (all of them); only what the tables can't tell is asked of the ClassAd library
(`oracle`).
"""

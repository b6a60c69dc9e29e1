"""Which machines are bought for jobs that found no room.

In come job groups with counts, what is on sale, and what limits allow; out come purchases, and for each group
that gets less the reasons. Read `shopping` first; it draws up a list (`listing`) of what a market would hold
(`market`), greedily (`greedy`) and by a linear program (`program`, `rounding`).
"""

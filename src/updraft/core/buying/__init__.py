"""Which machines are bought for jobs that found no room.

In come job groups with counts, what is on sale, and what limits allow; out come purchases, and for each
group that gets less the reasons. Read `tiers` first: which clouds, by their priority. Then `shopping`,
which draws up a list of the cheapest offers (`listing`: what a price counts as, and the best of what is
found greedily, `greedy`, and by a linear program, `program` and `rounding`, in a `market` of alike offers)
and asks for it, submitters in turns (`orders`). Machines of a class's minimum (`launches`) and of annexes
(`core.annexes.progress`) go by orders of their own.
"""

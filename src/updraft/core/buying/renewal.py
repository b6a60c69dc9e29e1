"""A list made better by giving up a part: the machines that hold too little, and every fourth of the rest.

A greedy takes what fits well first, and has nothing to fill up the last machines with. So the machines whose
jobs are worth less than they cost are given up, with some good ones whose jobs can mix with theirs; what jobs
and room are worth is reckoned again for what was given up, and the greedy holds it anew. The cheaper of the
two lists is kept. Each round gives up another fourth.
"""

import numpy as np

from updraft.core.buying.bound import prices
from updraft.core.buying.patterns import Taste
from updraft.core.buying.rounding import Rest, greedy

_GOOD = 0.95
_PARTS = 4
_STEPS = 20


def renewed(best: Rest, taste: Taste, rounds: int, depth: int, least: float) -> Rest:
    """The best list after some `rounds`.

    Ends early with one that costs no more than `least`, or when every part has been given up in vain.
    """
    market, vain = best.market, 0
    for turn in range(rounds):
        if best.price <= least or vain == _PARTS:
            break
        kept = Rest(market, market.need, market.stock)
        for at, line in enumerate(best.lines):
            good = taste.worth[line.item] @ line.number >= _GOOD * market.price[line.lot]
            if good and (at + turn) % _PARTS:
                kept.settle(line.lot, line.item, line.number, line.count)
        worth, scarce = prices(market, kept.need, _STEPS, taste.scarce)
        other = greedy(kept, Taste(np.where(worth > 0, worth, taste.worth), scarce), depth)
        vain = 0 if other.better_than(best) else vain + 1
        best = best if vain else other
    return best

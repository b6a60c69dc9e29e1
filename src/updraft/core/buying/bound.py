"""What a job of each item is worth, and what room is, if machines and jobs could be cut up.

The least that a demand costs with fractional machines and jobs is a linear program. Its dual has a price for
each quantity of each lot, which together may not exceed the machine's price; a job is worth what its room
costs where that is least; the bound is what all jobs are worth. Here the dual is climbed directly: on each
lot the machine's price is spread over its quantities, and moved, step by step, to those that the jobs which
would go there use most (multiplicative weights, with a temperature that falls). Forty steps come within one
or two per cent, which is what patterns need to be begun with.
"""

import numpy as np

from updraft.core.buying.market import Floats, Lots

_COLD = 0.003
_FLOOR = 1e-5
_ENOUGH = 1e-5
_PATIENCE = 6


def prices(market: Lots, need: Floats, steps: int, begin: Floats | None = None) -> tuple[Floats, Floats]:
    """The worth of a job of each item, and the share of each quantity in each lot's price (as `size`).

    The sum of need × worth is a lower bound of what the demand costs on these lots, whatever the steps.
    """
    size = np.where(market.size > 0, market.size, 1.0)
    some = np.flatnonzero(need > 0)
    needed = need[some]
    money = market.asks[:, some] * (market.price / size)[:, None, :]
    shut = market.copies[some] <= 0
    begins = np.ones((len(market.size), 1))
    begins[2] = 0.3  # disk is seldom what is short
    share = np.where(market.size > 0, begins, 0.0)
    share = (share if begin is None else begin) + _FLOOR * (market.size > 0)
    share = share / share.sum(axis=0)
    best, worth, kept, idle = -1.0, np.zeros(len(some)), share, 0
    for step in range(steps):
        cost = money[0] * share[0]
        for d in range(1, len(money)):
            cost += money[d] * share[d]
        cost[shut] = np.inf
        now = cost.min(axis=1)
        value = float(needed @ now)
        idle = 0 if value > best * (1.0 + _ENOUGH) else idle + 1
        if value > best:
            best, worth, kept = value, now, share
        if idle > _PATIENCE:
            break
        heat = max(_COLD, 0.1 * 0.96**step if begin is None else 0.05 * 0.85**step)
        goes = np.exp(-(cost / np.maximum(now, 1e-300)[:, None] - 1.0) / heat)
        goes *= (needed / goes.sum(axis=1))[:, None]
        spent = np.stack([(goes * each).sum(axis=0) for each in money])
        most = spent.max(axis=0)
        pull = np.where(most > 1e-9 * value, spent / np.maximum(most, 1e-300), 1.0)
        rate = 0.5 / (1.0 + step / 20.0)
        share = share * np.exp(rate * (pull - pull.max(axis=0))) + _FLOOR * (market.size > 0)
        share = share / share.sum(axis=0)
    every = np.zeros(len(need))
    every[some] = worth
    return every, kept

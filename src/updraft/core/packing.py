"""Which machines hold the unmet demand: first what is there (`fill`), then what can be bought (`buy`).

Both go by verdicts only and in whole groups. `turns` is the order in which groups get their turns when not
everyone can have everything.
"""

from updraft.core.filling import Bin, Filling, fill
from updraft.core.fitting import Demand, turns
from updraft.core.shopping import Allowed, Purchase, Shopping, buy

__all__ = ["Allowed", "Bin", "Demand", "Filling", "Purchase", "Shopping", "buy", "fill", "turns"]

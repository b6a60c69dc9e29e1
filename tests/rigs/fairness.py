"""The negotiator's formula for who gets how much, worked out anew."""

from collections.abc import Mapping


def fair(total: int, wants: Mapping[str, int], factors: Mapping[str, float]) -> dict[str, float]:
    """The negotiator's formula: in proportion to one over the priority, and what one doesn't want is shared
    by the others in the same way."""
    got = dict.fromkeys(wants, 0.0)
    open_, left = set(wants), float(total)
    while open_ and left > 1e-9:
        weight = sum(1 / factors[name] for name in open_)
        rate = min(left / weight, min((wants[name] - got[name]) * factors[name] for name in open_))
        for name in open_:
            got[name] += rate / factors[name]
        left -= rate * weight
        open_ = {name for name in open_ if wants[name] - got[name] > 1e-9}
    return got

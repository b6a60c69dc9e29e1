"""What is on sale and who can use it, as arrays: the ground on which a shopping list is drawn up.

Two reductions lose nothing. Job groups that ask for the same and are accepted by the same kinds are one
*item* with the sum of their counts. An offer that another one beats (as cheap or cheaper, at least as large
in every quantity, holding at least as many jobs of every item, and endless) is left out. What remains are
the *lots*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from updraft.core.demand.fitting import ENDLESS, Demand
from updraft.core.matching.match import QUANTUM
from updraft.core.matching.verdicts import table_of
from updraft.core.model import JobGroup, Kind, Offer, Verdicts, counted

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST_LOTS = 128
LOTS_FOR_MANY = 64
MANY_ITEMS = 400
MANY_JOBS = 300_000
_VOTES = 4
_ROUNDS = 4
_PLENTY = 1e15
_NONE = -1.0
_QUANTA = (1.0, float(QUANTUM.memory), float(QUANTUM.disk), 1.0)


@dataclass(frozen=True, slots=True)
class Sale:
    """Waiting groups × offers. Offers are sorted: priced before others, then by price (or size) and key.

    `kind_copies[g, k]` is how many jobs of a group an empty slot of a kind holds, `of_kind[o]` the kind of an
    offer. `size`, `slots` and `whole` (static slots) are by kind; quantities are cpus, memory, disk, GPUs and
    the custom resources in `names`: below zero where a slot doesn't have such a one.
    """

    groups: Sequence[JobGroup]
    offers: Sequence[Offer]
    kinds: Sequence[Kind]
    kind_copies: npt.NDArray[np.int32]
    of_kind: Ints
    price: Floats
    request: Floats
    size: Floats
    slots: Ints
    whole: Flags
    names: tuple[str, ...] = ()

    def serves(self) -> Flags:
        """Which group can go onto which kind."""
        return self.kind_copies > 0


@dataclass(frozen=True, slots=True)
class Lots:
    """The offers worth a look for some demand, and how items go onto them.

    `members[i]` are the groups of item i, `need[i]` how many of its jobs wait; lot l is the offer `offer[l]`
    at `price[l]`, of which there are `stock[l]`. A machine of it is `slots[l]` slots with `size[:, l]`; a job
    of item i starts where at least `least[:, i, l]` is free and takes `asks[:, i, l]` of it or all there is;
    no more than `copies[i, l]` go onto one slot. The first axis are the sale's quantities.
    """

    members: Sequence[Ints]
    need: Floats
    offer: Ints
    price: Floats
    stock: Floats
    slots: Ints
    size: Floats
    asks: Floats
    least: Floats
    copies: Floats


def sale(left: Demand, offers: Sequence[Offer], kinds: Mapping[str, Kind], verdicts: Verdicts) -> Sale:
    """Everything on sale for the groups that wait, in a fixed order whatever the order of the input."""
    groups = sorted((group for group, count in left if count > 0), key=lambda g: g.key)
    known = sorted(
        (offer for offer in offers if offer.kind in kinds),
        key=lambda o: (*o.dearness, o.key, o.generation, o.image),
    )
    names = sorted({offer.kind for offer in known})
    column = {name: at for at, name in enumerate(names)}
    used = [kinds[name] for name in names]
    custom = counted((group.request for group in groups), (kind.resources for kind in used))
    width = 4 + len(custom)
    sizes = [kind.resources.amounts(custom, int(_NONE)) for kind in used]
    asked = [group.request.amounts(custom) for group in groups]
    table = table_of(verdicts, groups, used)
    return Sale(
        groups,
        known,
        used,
        np.maximum(table.copies, 0),
        np.array([column[offer.kind] for offer in known], dtype=np.int64),
        np.array([np.nan if o.price is None else o.price for o in known], dtype=np.float64),
        np.array(asked, dtype=np.float64).reshape(-1, width),
        np.array(sizes, dtype=np.float64).reshape(-1, width),
        np.array([kind.slots for kind in used], dtype=np.int64),
        np.array([not kind.partitionable for kind in used], dtype=np.bool_),
        custom,
    )


def lots(this: Sale, rows: Ints, need: Ints, open_: Ints, price: Floats, stock: Ints) -> Lots:
    """The lots for the groups `rows`, of which `need` jobs wait, among the offers `open_`.

    `price` and `stock` are by offer, as in the sale.
    """
    chosen = _steps(this, open_, stock)
    members, first, total = _items(this, rows, need)
    chosen = chosen[(this.kind_copies[np.ix_(first, this.of_kind[chosen])] > 0).any(axis=0)]
    chosen = _undominated(this, first, chosen, price, stock)
    most = LOTS_FOR_MANY if many(len(first), float(total.sum())) else MOST_LOTS
    if len(chosen) > most:
        chosen = _voted(this, first, total, chosen, price, most)
    return _numbers(this, members, first, total, chosen, price, stock)


def many(items: int, jobs: float) -> bool:
    """Whether a question is so large that less is tried."""
    return items > MANY_ITEMS and jobs > MANY_JOBS


def _steps(this: Sale, open_: Ints, stock: Ints) -> Ints:
    """Of each kind the cheapest offers up to the first of which there is no end."""
    done: set[int] = set()
    found = []
    for at in open_.tolist():
        kind = int(this.of_kind[at])
        if kind in done or stock[at] <= 0:
            continue
        found.append(at)
        if stock[at] >= ENDLESS:
            done.add(kind)
    return np.array(found, dtype=np.int64)


def _items(this: Sale, rows: Ints, need: Ints) -> tuple[list[Ints], Ints, Floats]:
    """Groups alike: the members of each item, the first of them, and how many jobs wait in all."""
    alike: dict[bytes, list[int]] = {}
    for at, row in enumerate(rows.tolist()):
        name = this.request[row].tobytes() + this.kind_copies[row].tobytes()
        alike.setdefault(name, []).append(at)
    members = [rows[each] for each in alike.values()]
    total = np.array([need[each].sum() for each in alike.values()], dtype=np.float64)
    return members, np.array([mine[0] for mine in members], dtype=np.int64), total


def _unlike(this: Sale, first: Ints, chosen: Ints, stock: Ints) -> Ints:
    """Of offers whose kinds are alike to these items the cheapest up to the first endless one; `chosen` is
    sorted by price.
    """
    kind = this.of_kind[chosen]
    columns = np.ascontiguousarray(this.kind_copies[first].T)
    done: set[tuple[bytes, bytes, int, bool]] = set()
    found = []
    for at, which in zip(chosen.tolist(), kind.tolist(), strict=True):
        slots, whole = int(this.slots[which]), bool(this.whole[which])
        name = (columns[which].tobytes(), this.size[which].tobytes(), slots, whole)
        if name in done:
            continue
        found.append(at)
        if stock[at] >= ENDLESS:
            done.add(name)
    return np.array(found, dtype=np.int64)


def _undominated(this: Sale, first: Ints, chosen: Ints, price: Floats, stock: Ints) -> Ints:
    """The offers that no other one beats. A few of the cheapest that might beat it are tried for each."""
    if len(chosen) < 2:
        return chosen
    chosen = _unlike(this, first, chosen[np.lexsort((chosen, price[chosen]))], stock)
    kind = this.of_kind[chosen]
    copies = this.kind_copies[np.ix_(first, kind)]
    size, slots, whole = this.size[kind], this.slots[kind], this.whole[kind]
    count = len(chosen)
    better = np.tri(count, count, -1, dtype=np.bool_) & (stock[chosen] >= ENDLESS)[None, :]
    # What a slot has no name of, it lets jobs have without end.
    size = np.where(size < 0, _PLENTY, size) if this.names else size
    for d in range(size.shape[1]):
        better &= size[:, None, d] <= size[None, :, d]
    better &= (slots[:, None] == slots[None, :]) & (whole[:, None] == whole[None, :])
    dead = np.zeros(count, dtype=np.bool_)
    for _ in range(_ROUNDS):
        rival = better.argmax(axis=1)
        trying = np.flatnonzero(better[np.arange(count), rival] & ~dead)
        if not len(trying):
            break
        beaten = (copies[:, rival[trying]] >= copies[:, trying]).all(axis=0)
        dead[trying[beaten]] = True
        better[trying, rival[trying]] = False
        # Who is beaten needs not be tried as a rival: what beat it beats the same ones.
        better[:, trying[beaten]] = False
    return chosen[~dead]


def _voted(this: Sale, first: Ints, need: Floats, chosen: Ints, price: Floats, most: int) -> Ints:
    """The `most` offers among the best for most of the money; the best one of each item always."""
    kind = this.of_kind[chosen]
    held = (
        this.kind_copies[np.ix_(first, kind)].astype(np.float64) * np.where(this.whole, 1, this.slots)[kind]
    )
    with np.errstate(divide="ignore"):
        each = np.where(held > 0, price[chosen][None, :] / np.minimum(held, need[:, None]), np.inf)
    few = min(_VOTES, len(chosen))
    best = np.argpartition(each, few - 1, axis=1)[:, :few] if few < len(chosen) else np.argsort(each, axis=1)
    cheapest = each.min(axis=1)
    votes = np.zeros(len(chosen))
    for column in range(few):
        mine = best[:, column]
        worth = each[np.arange(len(first)), mine]
        share = np.where(np.isfinite(worth) & (worth > 0), cheapest / np.maximum(worth, 1e-12), 0.0)
        np.add.at(votes, mine, share * need * np.where(np.isfinite(cheapest), cheapest, 0.0))
    always = np.unique(each.argmin(axis=1))
    votes[always] += votes.sum() + 1.0
    ranked = np.argsort(-votes, kind="stable")[: max(most, len(always))]
    return chosen[np.sort(ranked)]


def _numbers(
    this: Sale, members: list[Ints], first: Ints, need: Floats, chosen: Ints, price: Floats, stock: Ints
) -> Lots:
    kind = this.of_kind[chosen]
    whole, slots = this.whole[kind], this.slots[kind].copy()
    size = this.size[kind].T.copy()
    request = this.request[first].T[:, :, None]
    if this.names:
        request = np.where(size[:, None, :] < 0, 0.0, request)
        size = np.maximum(size, 0.0)
    quantum = np.array([*_QUANTA, *(1.0 for _ in this.names)])[:, None, None]
    rounded = np.ceil(request / quantum) * quantum
    total = size[:, None, :]
    # As the startd rounds: see `matching.match.asked`.
    asks = np.where((request <= total) & (rounded > total), total, rounded)
    least = np.broadcast_to(request, asks.shape).copy()
    copies = this.kind_copies[np.ix_(first, kind)].astype(np.float64)
    # Static slots are taken whole: a machine is so many places, and nothing else counts.
    size[:, whole] = _PLENTY
    size[0, whole] = slots[whole]
    asks[:, :, whole] = least[:, :, whole] = 0.0
    asks[0][:, whole] = least[0][:, whole] = 1.0
    copies = np.where(whole & (copies > 0), slots, copies)
    slots[whole] = 1
    most = held(size[:, None, :], asks, least)
    copies = np.minimum(copies, most)
    # Where the requirements want more than the request, a job is known to start with this much left.
    strict = (copies > 0) & (copies < most)
    least = np.where(strict, np.maximum(size[:, None, :] - (copies - 1) * asks, least), least)
    return Lots(
        members,
        need,
        chosen,
        price[chosen],
        stock[chosen].astype(np.float64),
        slots,
        size,
        # As they are looked up: item by item, of each the lots in a row.
        np.ascontiguousarray(asks),
        np.ascontiguousarray(least),
        np.ascontiguousarray(copies),
    )


def held(free: Floats, asks: Floats, least: Floats) -> Floats:
    """How many jobs start in `free`, each taking `asks`, the last one where `least` is left.

    The quantities are the first axis. Exact: whole numbers below 2^52 divide without rounding up to the next
    whole number.
    """
    number = np.full(np.broadcast_shapes(free.shape, asks.shape)[1:], _PLENTY)
    for d in range(len(asks)):
        endless = asks[d] <= 0
        many = np.floor((free[d] - least[d]) / np.where(endless, 1.0, asks[d])) + 1.0
        np.minimum(number, np.where(endless & (many > 0), _PLENTY, many), out=number)
    return np.asarray(np.maximum(number, 0.0))

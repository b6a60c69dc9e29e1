"""Which jobs a few machines may be for, where far fewer may be bought than the jobs want.

To draw up a list for a million jobs is a waste where a hundred machines are all that may be had. Submitters
take turns as they do when the list is granted (see `shares`); at each turn one is given a part of the cores
within reach for its first jobs: by job priority, and the oldest first.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from updraft.core.buying.market import Ints

_SLACK = 4
_PARTS = 8

Turn = Callable[[str, Mapping[str, int]], tuple[int, float]]


def within_reach(
    left: Ints,
    cpus: Ints,
    queues: Mapping[str, Sequence[int]],
    turn: Turn,
    spent: Mapping[str, int],
    largest: int,
    most: int,
) -> Ints:
    """Of the `left` jobs of each group those that `most` machines of `largest` cores may be for.

    They ask for four times the cores of these machines, so that there is something to choose from, or are all
    that wait. A job of a group takes `cpus`; `queues` are each submitter's groups in their order, whose turn
    is by `turn(submitter, cores bought)`; `spent` is what was bought for each before.
    """
    reach = _SLACK * most * largest
    if int((left * cpus).sum()) <= reach:
        return left
    chosen = left * 0
    given = dict(spent)
    at_once = max(largest, reach // (_PARTS * max(1, len(queues))))
    waiting = {name: list(reversed(rows)) for name, rows in queues.items() if rows}
    order = [(turn(name, given), place, name) for place, name in enumerate(waiting)]
    heapify(order)
    while order and reach > 0:
        _, place, name = heappop(order)
        share = max(at_once, given.get(name, 0) // _PARTS)
        got = _first(waiting[name], left, cpus, share, chosen)
        given[name] = given.get(name, 0) + got
        reach -= got
        if waiting[name]:
            heappush(order, (turn(name, given), place, name))
    return chosen


def _first(rows: list[int], left: Ints, cpus: Ints, share: int, chosen: Ints) -> int:
    """Choose jobs of a queue, whose first group is its last entry, for about `share` cores; returns for how
    many. Groups of which all are chosen leave the queue.
    """
    got = 0
    while rows and got < share:
        row = rows[-1]
        each = int(cpus[row])
        number = min(int(left[row] - chosen[row]), -(-(share - got) // each))
        chosen[row] += number
        got += number * each
        if chosen[row] >= left[row]:
            rows.pop()
    return got

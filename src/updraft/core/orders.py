"""Lines of a shopping list on their way to be bought."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from updraft.core.drafting import Line
from updraft.core.market import Ints
from updraft.core.model import JobGroup
from updraft.core.parties import weight


@dataclass(slots=True, eq=False)
class Order:
    """A line on its way: `count` machines are still to be asked for, `got` were granted.

    `rows` and `numbers` are its content by rows of the sale, `cores` what the jobs of one machine ask for, by
    submitter; `submitter` is whose turn it is asked for in.
    """

    offer: int
    content: Mapping[str, int]
    count: int
    submitter: str
    rows: Ints
    numbers: Ints
    cores: Mapping[str, int]
    got: int = 0


def as_order(line: Line, row: Mapping[str, int], groups: Sequence[JobGroup], cpus: Ints) -> Order:
    """A line as it is asked for part by part. `row` finds the groups, a job of which takes `cpus`."""
    rows = [row[key] for key in line.content]
    cores: dict[str, int] = {}
    for at, number in zip(rows, line.content.values(), strict=True):
        name = groups[at].submitter
        cores[name] = cores.get(name, 0) + number * int(cpus[at])
    numbers = np.array(list(line.content.values()), dtype=np.int64)
    lead = groups[row[line.lead]].submitter
    # Whoever fills up a machine with jobs of high priority doesn't make these wait for his turn.
    first = max(cores, key=lambda name: (weight(name), name == lead))
    return Order(line.offer, line.content, line.count, first, np.array(rows), numbers, cores)

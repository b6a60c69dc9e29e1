"""The least that a workload can cost, whatever a policy knows or does."""

from collections import Counter
from collections.abc import Mapping, Sequence

import highspy
import numpy as np

from updraft.core.model import CloudOffer, Offer, Resources
from updraft.errors import UpdraftError
from updraft.sim.workloads.workload import Arrival

_SHAPES = 1000
_DIMENSIONS = ("cpus", "memory", "disk", "gpus")


def clairvoyant(workload: Sequence[Arrival], offers: Sequence[Offer | CloudOffer]) -> float:
    """A lower bound on the cost of running this workload on machines of these offers.

    It is a linear program. For each kind of request g and offer o that holds it, x[g, o] ≥ 0 are the hours
    that jobs of g run on machines of o, y[o] ≥ 0 the hours of such machines that are paid for:

        minimise Σ price[o] y[o]
        subject to Σ_o x[g, o] = hours of work of g, and
                   Σ_g amount[g, d] x[g, o] ≤ amount[o, d] y[o] for cpus, memory, disk and GPUs d.

    Why nothing is cheaper: whatever ran, let x and y be the hours that it took. A job runs its whole time on
    machines that hold it, which gives the equations; at no moment do the jobs on a machine take more of
    anything than it has, and the sum of that over all moments gives the inequalities. So x and y are
    feasible, and what was paid is at least the minimum. Boots, idle tails, whole machines, arrival times,
    limits, what a startd keeps for itself, requests rounded up and runs that came to nothing only add to it.
    (The price of an offer is taken to be constant, and a machine to be paid for by the second.)

    Jobs that no offer with a known price holds are left out. Where there are very many different requests,
    they are rounded down first, which lowers the bound a little. Raises UpdraftError if the solver fails.
    """
    best = _lowest_prices(offers)
    work: Counter[Resources] = Counter()
    for one in workload:
        work[one.request] += one.seconds / 3600  # type: ignore[assignment]
    held = {shape: hours for shape, hours in work.items() if any(sold.holds(shape) for sold in best)}
    shapes = _rounded(held)
    if not shapes:
        return 0.0
    return _solve(sorted(shapes.items()), sorted(best.items()))


def _lowest_prices(offers: Sequence[Offer | CloudOffer]) -> dict[Resources, float]:
    """The lowest price of each size."""
    best: dict[Resources, float] = {}
    for offer in offers:
        if offer.price is not None:
            best[offer.resources] = min(offer.price, best.get(offer.resources, offer.price))
    return best


def _rounded(work: Mapping[Resources, float]) -> Mapping[Resources, float]:
    """At most so many different requests: memory and disk rounded down to ever coarser steps."""
    digits = 4
    while len(work) > _SHAPES and digits > 0:
        fewer: Counter[Resources] = Counter()
        for shape, hours in work.items():
            memory, disk = (_floor(amount, digits) for amount in (shape.memory, shape.disk))
            fewer[Resources(shape.cpus, memory, disk, shape.gpus)] += hours  # type: ignore[assignment]
        work, digits = fewer, digits - 1
    return work


def _floor(amount: int, digits: int) -> int:
    step = int(10 ** max(0, len(str(amount)) - digits))
    return amount // step * step


def _solve(work: Sequence[tuple[Resources, float]], sold: Sequence[tuple[Resources, float]]) -> float:
    """The minimum of the program that the docstring above writes down."""
    machine_row = {(o, d): len(work) + o * len(_DIMENSIONS) + d for o in range(len(sold)) for d in range(4)}
    columns: list[tuple[float, list[tuple[int, float]]]] = []
    for o, (size, price) in enumerate(sold):
        entries = [(machine_row[o, d], -1.0) for d, name in enumerate(_DIMENSIONS) if getattr(size, name)]
        columns.append((price, entries))
        for g, (shape, _) in enumerate(work):
            if size.holds(shape):
                takes = [
                    (machine_row[o, d], getattr(shape, name) / getattr(size, name))
                    for d, name in enumerate(_DIMENSIONS)
                    if getattr(shape, name)
                ]
                columns.append((0.0, [(g, 1.0), *takes]))
    rows = len(work) + len(machine_row)
    lower = np.full(rows, -highspy.kHighsInf)
    upper = np.zeros(rows)
    lower[: len(work)] = upper[: len(work)] = [hours for _, hours in work]
    return _minimum(columns, lower, upper)


def _minimum(
    columns: Sequence[tuple[float, list[tuple[int, float]]]],
    lower: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    upper: "np.ndarray[tuple[int], np.dtype[np.float64]]",
) -> float:
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(columns), len(lower)
    program.col_cost_ = np.array([cost for cost, _ in columns])
    program.col_lower_ = np.zeros(len(columns))
    program.col_upper_ = np.full(len(columns), highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = lower, upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.cumsum([0, *(len(entries) for _, entries in columns)], dtype=np.int32)
    program.a_matrix_.index_ = np.array([row for _, entries in columns for row, _ in entries], dtype=np.int32)
    program.a_matrix_.value_ = np.array([value for _, entries in columns for _, value in entries])
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise UpdraftError("the lower bound of the cost could not be computed: the solver found no optimum")
    return float(solver.getInfo().objective_function_value)

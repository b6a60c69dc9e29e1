"""The figures of load tests as people read them: rows of a table and sentences. Pure."""

from collections.abc import Callable, Sequence

from updraft.load.figures import LATE, MOST_CYCLE, MOST_STATUS, Daemon, Figures, Real

_UNKNOWN = "?"
_NOTE = "extrapolated from the real startds, not measured: "


def _seconds(value: float | None, digits: int = 1) -> str:
    return _UNKNOWN if value is None else f"{value:.{digits}f} s"


def _cycle(one: Figures) -> str:
    if one.cycle is None:
        return _UNKNOWN
    late = ", out of time" if one.cycle.out_of_time else ""
    return f"{one.cycle.seconds:.0f} s ({one.cycle.cpu:.1f} s CPU{late})"


ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("child collectors", lambda one: str(one.children)),
    ("joined", lambda one: f"{one.joined} in {one.seconds_to_join:.0f} s"),
    ("vanished, and replaced", lambda one: str(one.lost_machines)),
    ("ads sent", lambda one: str(one.updates.sent)),
    ("ads taken", lambda one: str(one.updates.taken)),
    ("ads lost", lambda one: str(one.updates.lost)),
    (f"last ads heard over {LATE:g} s late", lambda one: str(one.updates.delayed)),
    ("calls that failed", lambda one: str(one.updates.failed)),
    ("seconds of a join", lambda one: _seconds(one.updates.join_call, 3)),
    ("seconds of an update", lambda one: _seconds(one.updates.call, 3)),
    ("slowest call", lambda one: _seconds(one.updates.slowest, 3)),
    ("load late by at most", lambda one: _seconds(one.updates.behind)),
    ("shown by the top collector", lambda one: str(one.shown)),
    (f"condor_status (≤ {MOST_STATUS:g} s)", lambda one: _seconds(one.status, 2)),
    ("condor_status, longest", lambda one: _seconds(one.status_longest, 2)),
    (f"negotiation cycle (≤ {MOST_CYCLE:g} s)", _cycle),
    ("slots in it", lambda one: str(one.cycle.slots) if one.cycle else _UNKNOWN),
    ("job groups in it", lambda one: f"{one.cycle.considered} of {one.groups}" if one.cycle else _UNKNOWN),
    ("idle jobs in it", lambda one: _UNKNOWN if one.cycle is None else str(one.cycle.idle_jobs)),
    ("busiest child collector", lambda one: _UNKNOWN if one.duty is None else f"{one.duty:.0%}"),
    ("sessions in child collectors", lambda one: str(one.sessions)),
)  # fmt: skip


def rows(runs: Sequence[Figures]) -> list[list[str]]:
    """A row for each figure and for each daemon, a column for each run."""
    made = [[title, *(of(one) for one in runs)] for title, of in ROWS]
    names = sorted({daemon.name for one in runs for daemon in one.daemons})
    made += [[f"{name}: MiB, descriptors", *(_daemon(one.daemons, name) for one in runs)] for name in names]
    extra = sorted({name for one in runs for name in one.extrapolated})
    made += [
        [f"{name} (extrapolated)", *(_number(one.extrapolated.get(name)) for one in runs)] for name in extra
    ]
    return made


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.0f}"


def _daemon(daemons: Sequence[Daemon], name: str) -> str:
    found = next((one for one in daemons if one.name == name), None)
    if found is None:
        return "-"
    several = f" ({found.processes} of them)" if found.processes > 1 else ""
    return f"{found.memory:.0f}, {found.descriptors} of {found.descriptor_limit}{several}"


def sentences(runs: Sequence[Figures], real: Real | None) -> list[str]:
    """What gives out, and what the real startds took."""
    said = []
    for one in runs:
        verdict = "; ".join(one.gives_out) or "carries this load"
        said.append(f"{one.machines} machines: {verdict}")
        said += [f"  an error: {error}" for error in one.updates.errors]
    if real is not None:
        said.append(
            f"real startds: {real.joined} of {real.asked} joined in {real.seconds_to_join:.0f} s, "
            f"{real.running} ran a job {real.seconds_to_run:.0f} s after it was submitted"
        )
        said.append(
            f"  each: startd {_mib(real.startd)}, starter {_mib(real.starter)}, shadow {_mib(real.shadow)}"
        )
        said.append(
            f"  {_NOTE}descriptors of collectors and schedd, and memory of shadows; CCB is not part of it"
        )
    return said


def _mib(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.1f} MiB"

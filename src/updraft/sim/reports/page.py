"""The page of a simulation: one HTML file with its figures and plots, which loads nothing from anywhere."""

from collections.abc import Sequence, Set
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from updraft import __version__
from updraft.core.reasons import spell
from updraft.errors import UsageError
from updraft.sim.conditions import Conditions
from updraft.sim.reports.figures import FIGURES, duration, money, share
from updraft.sim.runs import HOUR, Run, best, machines_of
from updraft.sim.workloads.sources import Workload

if TYPE_CHECKING:
    import jinja2

NEEDED = "a report needs jinja2 and matplotlib, run: pip install jinja2 matplotlib"
MOST_COURSES = 12
LINES_IN_ONE_PLOT = 8


def needs_installed() -> None:
    """Raises UsageError that says what to install where a report can't be made here."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(NEEDED) from error


def place_for(report: str, read: Set[Path]) -> Path:
    """Where the page goes; `read` are files that it can't be. UsageError, before any work, where it can't."""
    needs_installed()
    path = Path(report)
    if not path.parent.is_dir():
        raise UsageError(f"{path} can't be written: there is no directory {path.parent}")
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name the file that the page goes to")
    if path.resolve() in read:
        raise UsageError(f"{path} is read by this call; name another file that the page goes to")
    return path


def page(workload: Workload, conditions: Conditions, runs: Sequence[Run]) -> str:
    """The whole page as HTML."""
    needs_installed()
    from updraft.sim.reports import charts

    leaders = best(runs)
    drawn = list(dict.fromkeys((0, *leaders, *range(len(runs)))))[:LINES_IN_ONE_PLOT]
    shown = [runs[index] for index in sorted(drawn)]
    return (
        environment()
        .from_string(text_of("report.html"))
        .render(
            version=__version__,
            workload=workload,
            facts=_facts(workload, conditions),
            tiles=_tiles(runs[0]),
            names=[run.name for run in runs],
            leaders={runs[index].name for index in leaders},
            rows=[(one.title, one.about, [one.of(run.metrics) for run in runs]) for one in FIGURES],
            costs=charts.svg(charts.costs(runs, leaders), "costs") if len(runs) > 1 else "",
            waits=charts.svg(charts.waits(shown), "waits"),
            hidden=len(runs) - len(shown),
            courses=[
                (run.name, charts.svg(charts.course(run), f"course{number}"), _bought(run))
                for number, run in enumerate(runs[:MOST_COURSES])
            ],
            more=max(0, len(runs) - MOST_COURSES),
        )
    )


def write(text: str, path: Path) -> None:
    """Write a page, all of it or nothing. Raises UsageError where it can't be."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UsageError(f"{path} can't be written: {error.strerror}") from error


def environment() -> "jinja2.Environment":
    """What makes pages of templates: whatever is put in is escaped. The style is every page's own."""
    import jinja2

    from updraft.sim.reports.charts import VARIABLES

    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    made.globals["light"] = " ".join(f"{name}: {colour};" for colour, name in VARIABLES.items())
    made.globals["style"] = text_of("page.css")
    return made


def text_of(name: str) -> str:
    """One of the files that pages are made of."""
    return (files("updraft.sim") / "files" / name).read_text(encoding="utf-8")


def _tiles(run: Run) -> list[tuple[str, str, str]]:
    found = run.metrics
    return [
        ("cost", money(found.cost), f"{found.core_hours_paid:,.0f} core-hours"),
        ("mean wait", duration(found.wait_mean), f"95 of 100 jobs: at most {duration(found.wait_p95)}"),
        ("idle", share(found.idle_share), "of the core-hours that were paid for"),
        ("machines", f"{found.machines:,}", f"{found.per_thousand:.0f} for 1,000 jobs"),
        ("jobs killed", f"{found.killed}", "by taking machines away"),
    ]


def _bought(run: Run) -> str:
    counts = machines_of(run.outcome)
    listed = [f"{count:,} × {name}" for name, count in list(counts.items())[:8]]
    rest = len(counts) - len(listed)
    return ", ".join(listed) + (f" and {rest} other kinds" if rest > 0 else "")


def _facts(workload: Workload, conditions: Conditions) -> list[tuple[str, str]]:
    work = f"{workload.core_seconds / HOUR:,.0f} core-hours"
    facts = [
        ("workload", f"{workload.name}: {len(workload.arrivals):,} jobs, {work}"),
        ("arriving in", duration(workload.span)),
        ("a look every", spell(conditions.cycle)),
    ]
    if workload.sha256:
        facts.append(("SHA-256", workload.sha256))
    facts += [("left out", f"{count:,} jobs that {why}") for why, count in workload.left_out.items()]
    return [*facts, *(("note", note) for note in workload.notes)]

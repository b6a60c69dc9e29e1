"""What `updraft simulate` was asked for, checked: the jobs, the settings to compare, the conditions."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from updraft import config
from updraft.config.values.units import seconds, size
from updraft.core.settings import Policy
from updraft.core.slots.choice import near
from updraft.errors import UsageError
from updraft.sim.conditions import Boots, Conditions
from updraft.sim.sweep import Setting
from updraft.sim.workloads.sources import DAY, Reading, Workload, days_of, first_of, fitted, lines_of
from updraft.sim.world.agenda import START
from updraft.sim.world.stock import Saved, slots_of

SCHEDD = "schedd:"
DEADLINE = 600.0  # a month of history may be long
_UNITS = {"b": "B", "kib": "KiB", "mib": "MiB", "gib": "GiB"}  # each 1024 times the one before


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The call as it was made; `files` are the configurations to compare, None the example."""

    source: str
    files: tuple[Path | None, ...]
    compared: bool
    options: Mapping[str, Any]

    @classmethod
    def of(
        cls, source: str, more: Sequence[str], asked: str | None, options: Mapping[str, Any]
    ) -> "SimulationRequest":
        """The call, its configurations found. Raises UsageError for what contradicts itself."""
        compare = (*options["compare"], *more)
        if more and not options["compare"]:
            raise UsageError(f"one workload at a time; {more[0]} is one too many")
        if compare and (options["file"] or options["example"]):
            raise UsageError("--compare names all configurations; leave --config and --example out")
        if compare:
            files = tuple(config.find(name) for name in compare)
            twice = next((one for one in files if files.count(one) > 1), None)
            if twice is not None:
                raise UsageError(f"--compare: {twice} is there twice")
            return cls(source, files, True, options)
        return cls(source, (_found(options["file"] or asked, example=options["example"]),), False, options)

    # ------------------------------------------------------------------------------------------- the jobs

    def workload(self) -> Workload:
        """The jobs, as many of them as were asked for."""
        found = self._read(self._reading())
        if self.options["days"]:
            found = days_of(found, *_days(self.options["days"]))
        return first_of(found, self.options["limit_jobs"] or len(found.arrivals))

    def fitted(self, jobs: Workload, settings: Sequence[Setting]) -> Workload:
        """Jobs of more cores than any machine of some setting has are split, or left out."""
        for setting in settings:
            jobs = fitted(jobs, slots_of(setting.policy, setting.clouds), split=not self.options["no_split"])
        return jobs

    def _read(self, reading: Reading) -> Workload:
        from updraft.sim.workloads.generate import PREFIX, from_file, generated
        from updraft.sim.workloads.history import read_history
        from updraft.sim.workloads.swf import read_swf

        path = Path(self.source)
        trace = path.suffix != ".toml" and path.is_file() and _is_swf(path)
        if self.options["memory_unit"] and not trace:
            raise UsageError(f"--memory-unit is for traces; {self.source} is none")
        if self.source.startswith(PREFIX):
            return generated(self.source, self.options["seed"])
        if self.source.startswith(SCHEDD):
            return self._from_schedd(self.source, reading)
        if not path.is_file():
            what = "this is a directory" if path.is_dir() else "there is no such file"
            raise UsageError(
                f"{path}: {what}; a workload is a file, gen:NAME (bursts, days, tails or lcg) or schedd:"
            )
        if path.suffix == ".toml":
            return from_file(path, self.options["seed"])
        return (read_swf if trace else read_history)(path, reading)

    def _reading(self) -> Reading:
        found, options = Reading(skip_bad_lines=self.options["skip_bad_lines"]), self.options
        if options["memory"] is not None:
            found = replace(found, memory=_memory(options["memory"]))
        if options["memory_unit"] is not None:
            unit, per_job = _memory_unit(options["memory_unit"])
            found = replace(found, unit=unit, per_job=per_job)
        return found

    def _from_schedd(self, source: str, reading: Reading) -> Workload:
        from updraft.app.wiring import access
        from updraft.condor.support.history import NEEDED, past_jobs
        from updraft.sim.workloads.history import history
        from updraft.sim.workloads.records import json_record

        name, _, query = source.removeprefix(SCHEDD).partition("?")
        given = dict(parse_qsl(query))
        days = given.pop("days", "30")
        if given or not days.replace(".", "", 1).isdigit() or float(days) <= 0:
            raise UsageError(f'"{query}" isn\'t understood; write schedd:{name}?days=30')
        file = self.files[0]
        if file is None:
            raise UsageError("schedd: needs the configuration of a pool; name it with --config PATH")
        rows = past_jobs(access(config.load(file)), name, time.time() - float(days) * DAY, NEEDED, DEADLINE)
        return history(source, (json_record(row) for row in rows), reading)

    # --------------------------------------------------------------------------------------- the settings

    def settings(self) -> list[Setting]:
        """Every setting to simulate, each of its own name: configurations, sweeps of them, rivals."""
        from updraft.sim.sweep import axis, swept

        saved = self._saved()
        made: list[Setting] = []
        for file in self.files:
            base = _base(file, saved)
            some = swept(base, [axis(text, base.policy) for text in self.options["sweep"]])
            prefix = f"{base.name}: " if self.compared and self.options["sweep"] else ""
            made += [replace(one, name=prefix + one.name) for one in some]
        if self.options["rivals"] is not None:
            made += rivals(self.options["rivals"], _base(self.files[0], saved))
        return _told_apart(made)

    def conditions(self, begins: float | None, policy: Policy) -> Conditions:
        """The pace and the faults of the simulated world; `begins` is when the first job arrives.

        Unless a cycle is asked for it is that of this policy, or a second where that is shorter.
        """
        cycle = max(1.0, policy.timings.cycle)
        if self.options["cycle"] is not None:
            cycle = time_of("--cycle", self.options["cycle"])
        if cycle < 1:
            raise UsageError(f"--cycle {self.options['cycle']}: a look takes its time; at least 1s")
        for name in ("failures", "interruptions"):
            if not math.isfinite(self.options[name]):
                raise UsageError(f"--{name} {self.options[name]}: this is no number to simulate with")
        boots = Boots(failures=self.options["failures"])
        if self.options["boot"] is not None:
            boots = replace(boots, median=time_of("--boot", self.options["boot"]))
            if boots.median < 1:
                raise UsageError(f"--boot {self.options['boot']}: a machine takes its time; at least 1s")
        return Conditions(
            cycle=cycle,
            boots=boots,
            interruptions=self.options["interruptions"],
            seed=self.options["seed"],
            begins=START if begins is None else begins,
        )

    def reads(self) -> set[Path]:
        """The files that the call reads: none of them may be written over."""
        named = (self.source, self.options["offers"], *self.files)
        return {Path(one).resolve() for one in named if one is not None}

    def _saved(self) -> Saved:
        from updraft.sim.world.stock import read_offers

        return {} if self.options["offers"] is None else read_offers(Path(self.options["offers"]))


def _found(asked: str | None, *, example: bool) -> Path | None:
    """The configuration that is there; None for the example."""
    if example:
        if asked:
            raise UsageError("--config and --example contradict each other; leave one out")
        return None
    try:
        return config.find(asked)
    except UsageError:
        if asked:
            raise
        return None


def _base(file: Path | None, saved: Saved) -> Setting:
    """The setting that a configuration describes; without one the example's, on saved offers if any."""
    from updraft.sim.conditions import example_clouds, example_policy
    from updraft.sim.world.stock import clouds_of, on_saved

    if file is None:
        policy, clouds = example_policy(), example_clouds()
        return Setting("example", *(on_saved(policy, saved) if saved else (policy, clouds)))
    settings = config.load(file)
    # A simulation keeps no records of what was used: budgets of a day or month are left out.
    policy = replace(settings.policy(), spending=())
    return Setting(file.stem, policy, clouds_of(settings, saved))


def _told_apart(settings: Sequence[Setting]) -> list[Setting]:
    """Each with a name of its own: files of one name in several directories get numbers."""
    seen: dict[str, int] = {}
    made = []
    for one in settings:
        seen[one.name] = seen.get(one.name, 0) + 1
        made.append(one if seen[one.name] == 1 else replace(one, name=f"{one.name} ({seen[one.name]})"))
    return made


def rivals(listed: str, base: Setting) -> list[Setting]:
    """The rivals of these names, on the same clouds and under the same limits. Or UsageError.

    A name of several (elastiq-default, elastiq-ecm: elastiq) is all of them.
    """
    from updraft.sim.rivals import RIVALS

    names: list[str] = []
    for name in RIVALS if listed == "all" else [name.strip() for name in listed.split(",")]:
        found = [name] if name in RIVALS else [one for one in RIVALS if one.startswith(f"{name}-")]
        if not found:
            close = near(name, list(RIVALS))
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(RIVALS)}"
            raise UsageError(f'--rivals: there is no rival "{name}"; {hint}')
        names += found
    chosen = (RIVALS[name] for name in dict.fromkeys(names))
    return [replace(base, name=one.name, decider=one.factory, rival=True, cycle=one.cycle) for one in chosen]


def _is_swf(path: Path) -> bool:
    """A trace begins with a comment or a number; a history never does."""
    first = next((line.strip() for _, line in lines_of(path) if line.strip()), "")
    if not first:
        raise UsageError(f"{path.name} is empty; get it again")
    return first[0] in ";-+.0123456789"


def _days(text: str) -> tuple[float, float]:
    first, colon, last = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return float(first or 0), float(last) if last else math.inf
    except ValueError as error:
        raise UsageError(f"--days {text} is no stretch of time; write it as in --days 0:7") from error


def time_of(option: str, text: str) -> float:
    """The seconds that this option says. Raises UsageError."""
    try:
        return seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def _memory_unit(text: str) -> tuple[int, bool]:
    """The bytes of a unit, and whether it is for a whole job."""
    unit, _, per = text.partition("/")
    if unit.lower() not in _UNITS or per not in ("job", "core"):
        raise UsageError(
            f"--memory-unit {text}: write what memory is told in, and of what: "
            f"{', '.join(_UNITS.values())}, each with /core or /job, as in KiB/core or B/job"
        )
    return 1024 ** list(_UNITS).index(unit.lower()), per == "job"


def _memory(text: str) -> int:
    mebibytes = size("--memory", text)
    if mebibytes < 1:
        raise UsageError(f"--memory {text}: a job needs at least 1MiB")
    return mebibytes

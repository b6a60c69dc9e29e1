"""A job as a person names it."""

import re
from dataclasses import dataclass

JOB = re.compile(r"(?P<cluster>\d{1,9})(\.(?P<proc>\d{1,9}))?(@(?P<schedd>[A-Za-z0-9][A-Za-z0-9._@-]*))?")


@dataclass(frozen=True, slots=True)
class JobName:
    """CLUSTER[.PROC][@SCHEDD]."""

    cluster: int
    proc: int | None = None
    schedd: str = ""

    @property
    def numbers(self) -> str:
        """A constraint on the job's numbers."""
        proc = "" if self.proc is None else f" && ProcId == {self.proc}"
        return f"ClusterId == {self.cluster}{proc}"

    @property
    def constraint(self) -> str:
        """The jobs of this name in one schedd's queue, and not their cluster's own ad."""
        return f"{self.numbers} && ProcId >= 0"

    def may_be_at(self, schedd: str) -> bool:
        """Whether this schedd is meant: by its name, by the first part of it, or because none is named."""
        return self.schedd in ("", schedd, schedd.split(".", 1)[0])


def job_name(text: str) -> JobName | None:
    """The job that this names; None where it can't be a job's name."""
    match = JOB.fullmatch(text)
    if match is None:
        return None
    proc = match["proc"]
    return JobName(int(match["cluster"]), None if proc is None else int(proc), match["schedd"] or "")

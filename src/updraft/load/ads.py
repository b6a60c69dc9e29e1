"""The ads of a simulated machine: those of a real one of HTCondor 25, with its own names and numbers."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

SENT = "LoadSent"
"""The attribute with the time at which an ad was sent, with its fraction of a second."""

LAUNCH = "load"
"""The launch of all machines of a load test: their token is for it, and each of their slots names it."""

KINDS = {"StartD": "UPDATE_STARTD_AD", "Machine": "UPDATE_STARTD_AD", "DaemonMaster": "UPDATE_MASTER_AD"}
"""What one machine advertises each time, and by which command: three ads over two connections."""

_OF_A_SLOT = (
    "Slot",
    "Child",
    "Start",
    "Requirements",
    "WithinResourceLimits",
    "Rank",
    "CurrentRank",
    "State",
)
_OF_A_MASTER = ("Condor", "MyCurrent", "Uid", "FileSystem", "MonitorSelf", "DaemonCore", "Detected")


@dataclass(frozen=True, slots=True)
class Update:
    """One update of one machine: its sequence `number`, when it was `sent`, when the machine `started`."""

    seat: int
    life: int
    number: int
    started: int
    sent: float

    @property
    def machine(self) -> str:
        """The machine's host name, another one for each machine at this seat."""
        return f"load-{self.seat:06d}-{self.life}"

    @property
    def address(self) -> str:
        """Where its startd would listen: an address of the range that is kept for such tests."""
        at = self.seat % (1 << 17)
        return f"<198.{18 + (at >> 16)}.{at >> 8 & 255}.{at & 255}:{9618 + self.life}?sock=startd>"


def made(update: Update) -> dict[str, list[Any]]:
    """The ads of an update, by the command that sends them."""
    by_command: dict[str, list[Any]] = {}
    for kind, command in KINDS.items():
        by_command.setdefault(command, []).append(_ad(kind, update))
    return by_command


def _ad(kind: str, update: Update) -> Any:
    import classad2

    ad = classad2.ClassAd(_template(kind))
    daemon = f"{update.machine}@{update.machine}"  # as a worker's daemons call themselves: instance and host
    for name, value in {
        "MyType": kind,
        "Name": f"slot1@{daemon}" if kind == "Machine" else daemon,
        "Machine": update.machine,
        "MyAddress": update.address,
        "StartdIpAddr": update.address,
        "DaemonStartTime": update.started,
        "DaemonLastReconfigTime": update.started,
        "EnteredCurrentState": update.started,
        "EnteredCurrentActivity": update.started,
        "MyCurrentTime": int(update.sent),
        "UpdateSequenceNumber": update.number,
        "HasStartDaemonAd": True,
        "UpdraftLaunch": LAUNCH,
        "UpdraftInstance": update.machine,
        "UpdraftPool": LAUNCH,
        SENT: update.sent,
    }.items():
        ad[name] = value
    return ad


@cache
def _template(kind: str) -> str:
    lines = (resources.files("updraft.load") / "files" / "slot.ad").read_text().splitlines()
    if kind == "StartD":
        lines = [line for line in lines if not line.startswith(_OF_A_SLOT)]
    elif kind == "DaemonMaster":
        lines = [line for line in lines if line.startswith(_OF_A_MASTER)]
    return "[" + "; ".join(lines) + "]"

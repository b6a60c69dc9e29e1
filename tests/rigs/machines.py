"""A machine for tests: a root in a folder, programs that only take their calls down, one first user."""

import hashlib
import pwd
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from updraft.provision.setup.host import Host

SETTINGS = {
    "TRUST_DOMAIN": "pool.test",
    "UID_DOMAIN": "pool.test",
    "CONDOR_HOST": "head.test",
    "DAEMON_LIST": "MASTER, COLLECTOR, NEGOTIATOR, SCHEDD",
    "NETWORK_INTERFACE": "*",
    "FULL_HOSTNAME": "head.test",
}
NAMES = ("condor_master", "condor_collector", "condor_negotiator", "condor_schedd")
MASTER = 100
DAEMONS = {name[:15] for name in NAMES}  # as the kernel keeps them


@dataclass
class FakeHost(Host):
    """`calls` are what was run; `answers` by the first words; `starts` is what a service does at its start;
    `others` are daemons of somebody else's HTCondor, `strange` masters of root's in this very system; time
    passes only by waiting."""

    calls: list[str] = field(default_factory=list)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    starts: dict[str, Callable[[], None]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    accounts: dict[str, str] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    on: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=lambda: {"condor_master", "systemctl"})
    others: set[str] = field(default_factory=set)
    strange: set[int] = field(default_factory=set)
    comes_up: bool = True
    names: dict[str, set[str]] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    now: float = 0.0
    root: bool = True
    distribution: str = "debian"
    cloud: bool = False

    def run(
        self,
        words: Sequence[str],
        *,
        user: str = "",
        folder: str = "/",
        stdin: str = "",
        timeout: float = 60.0,
    ) -> "subprocess.CompletedProcess[str]":
        self.calls.append(" ".join(words))
        code, out = self.answer(list(words), user, Path(folder))
        return subprocess.CompletedProcess(list(words), code, out, out)

    def answer(self, words: list[str], user: str, folder: Path) -> tuple[int, str]:
        for begin, answer in self.answers.items():
            if " ".join(words).startswith(begin):
                return answer
        if words[0] == "condor_config_val":
            return (0, self.settings[words[-1]]) if words[-1] in self.settings else (1, "")
        if words[0] == "condor_status":
            return 0, "head.test\n"
        if words[0] == "useradd":
            self.accounts[words[-1]] = f"/home/{words[-1]}"
        if words[0] == "userdel":
            self.accounts.pop(words[-1])
        if words[0] == "systemctl":
            return self.control(words[1], words[-1])
        return 0, ""

    def control(self, verb: str, unit: str) -> tuple[int, str]:
        if verb == "is-system-running":
            return 0, "running\n"
        if verb == "is-enabled":
            return (0 if unit in self.on else 1), ""
        if verb == "show":
            return 0, f"{self.noted('', unit) or 0}\n"
        if verb == "is-active":
            return (0 if unit in self.running else 3), ""
        if verb in ("start", "restart"):
            self.starts.get(unit, lambda: None)()
            self.running |= {unit} | (DAEMONS if unit == "condor.service" and self.comes_up else set())
        if verb == "stop":
            self.running -= {unit} | (DAEMONS if unit == "condor.service" else set())
        if verb == "enable":
            self.on.add(unit)
        if verb == "disable":
            self.on.discard(unit)
        return 0, ""

    def has(self, program: str) -> bool:
        return program in self.programs

    def family_of(self, pid: int) -> set[str]:
        return self.running & DAEMONS if pid == MASTER else self.others

    def noted(self, path: str, words: str) -> int | None:
        service = {"condor_master": "condor.service", "updraft": "updraft.service"}.get(words, words)
        if service == "condor.service":
            return MASTER if "condor_master" in self.running else None
        return MASTER + 1 if service in self.running else None

    def masters(self) -> set[int]:
        own = {MASTER} if "condor_master" in self.running else set()
        return own | self.strange

    def signal(self, pid: int, number: int) -> None:
        self.calls.append(f"signal {pid} {number}")
        self.running -= {MASTER: DAEMONS, MASTER + 1: {"updraft.service"}}.get(pid, set())

    def account(self, name: str) -> pwd.struct_passwd | None:
        home = self.accounts.get(name)
        return None if home is None else pwd.struct_passwd((name, "x", 1000, 1000, "", home, "/bin/sh"))

    def is_root(self) -> bool:
        return self.root

    def cloud_machine(self) -> bool:
        return self.cloud

    def family(self) -> str:
        return self.distribution

    def addresses_of(self, name: str) -> set[str]:
        return self.names.get(name, set())

    def is_own(self, address: str) -> bool:
        return address in self.own

    def exists(self, path: str) -> bool:
        return True

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return self.now


def picture(root: Path) -> dict[str, str]:
    """All that is below a root: folders and files with their rights and owners, and hashes."""
    found = {}
    for path in sorted(root.rglob("*")):
        was = path.lstat()
        rights = f"{was.st_mode:o} {was.st_uid}:{was.st_gid}"
        data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = f"{rights} {data}"
    return found

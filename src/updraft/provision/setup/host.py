"""This machine: its programs, addresses, accounts and services. All that isn't a file goes through here."""

import contextlib
import ipaddress
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from updraft.bootstrap.worker.door import DOOR
from updraft.errors import ProblemFound, UsageError

CONDOR = "condor.service"
UPDRAFT = "updraft.service"
_PLAIN = {  # where head-start notes what it has started, and what its command line has in it
    CONDOR: ("/run/updraft-condor.pid", "condor_master"),
    UPDRAFT: ("/run/updraft-head.pid", "updraft"),
    DOOR: ("/run/updraft-door.pid", "updraft/door"),
}
_UP = ("running", "degraded", "starting", "initializing", "maintenance")
_LOOK = 30.0
_OWN_NOTES = (".condor/known_hosts",)  # what HTCondor's tools note at the home of whoever calls them


class Host:
    """The machine as programs see it; tests have another one."""

    def run(
        self,
        words: Sequence[str],
        *,
        user: str = "",
        folder: str = "/",
        stdin: str = "",
        timeout: float = 60.0,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program, as root or as `user`; 127 where it isn't there, 124 where it takes too long."""
        prefix = ["runuser", "-u", user, "--"] if user else []
        try:
            return subprocess.run(
                [*prefix, *words],
                cwd=folder,
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
            )
        except OSError as error:
            return subprocess.CompletedProcess(list(words), 127, "", str(error))
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(list(words), 124, "", f"not done within {timeout:g} s")

    def has(self, program: str) -> bool:
        """Is this program there?"""
        return shutil.which(program) is not None

    def family_of(self, pid: int) -> set[str]:
        """The names of a process and all below it, as the kernel keeps them: 15 letters."""
        known: dict[int, tuple[int, str]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                name, _, rest = _said(stat).partition("(")[2].rpartition(")")
                known[int(stat.parent.name)] = int(rest.split()[1]), name
        found, names, new = set[int](), set[str](), {pid} & set(known)
        while new:
            found |= new
            names |= {known[one][1] for one in new}
            new = {one for one, (parent, _) in known.items() if parent in new} - found
        return names

    def noted(self, path: str, words: str) -> int | None:
        """The process that a pid file names, None where it has ended, or is another by now."""
        try:
            pid = int(Path(path).read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            return None
        return pid if words in command else None

    def masters(self) -> set[int]:
        """Every condor_master of root's that is at home in this very system: no container's, no user's."""
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if _said(process / "comm") != "condor_master\n":
                    continue
                # By its real user: its own directory belongs to whom it acts as just now.
                status = _said(process / "status").split("\n")
                root = any(line.startswith("Uid:\t0\t") for line in status)
                spaces = [one / "ns/mnt" for one in (process, Path("/proc/self"))]
                if root and spaces[0].readlink() == spaces[1].readlink():
                    found.add(int(process.name))
        return found

    def account(self, name: str) -> pwd.struct_passwd | None:
        """The account of this name, None where there is none."""
        try:
            return pwd.getpwnam(name)
        except KeyError:
            return None

    def is_root(self) -> bool:
        """May it change this machine?"""
        return os.geteuid() == 0

    def cloud_machine(self) -> bool:
        """Did a cloud make this machine, so that there is a metadata address to close?"""
        return Path("/var/lib/cloud/data/instance-id").exists()

    def family(self) -> str:
        """The family of the distribution: debian, rhel, or "" for another."""
        with contextlib.suppress(OSError):
            told = dict(
                line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
            )
            like = f"{told.get('ID', '')} {told.get('ID_LIKE', '')}".replace('"', "").split()
            if {"debian", "ubuntu"} & set(like):
                return "debian"
            if {"rhel", "centos", "fedora"} & set(like):
                return "rhel"
        return ""

    def addresses_of(self, name: str) -> set[str]:
        """The addresses of a name as this machine resolves it; none where it doesn't."""
        try:
            return {str(one[4][0]) for one in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
        except OSError:
            return set()

    def is_own(self, address: str) -> bool:
        """Does one of this machine's interfaces have the address?"""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((address, 0))
            except OSError:
                return False
        return True

    def exists(self, path: str) -> bool:
        """Is this file there?"""
        return Path(path).exists()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def clock(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def signal(self, pid: int, number: int) -> None:
        """Signal a process, if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _said(path: Path) -> str:
    """What the kernel says of a process there. Anybody's may have a name that is no text."""
    return path.read_bytes().decode(errors="replace")


def missing(host: Host) -> str:
    """Why this can't become a head yet: what isn't installed; "" where nothing is missing."""
    if host.has("condor_master"):
        if host.has("nft") or not host.cloud_machine():
            return ""
        return (
            "nftables isn't installed on this machine, which has a cloud's metadata address to close; "
            "`updraft head init --install` does that, or the package nftables by hand"
        )
    by_hand = {
        "debian": "apt-get install condor",
        "rhel": "dnf install condor (from HTCondor's repository, which --install adds)",
    }.get(host.family(), "")
    hand = f", or by hand: {by_hand}" if by_hand else ""
    return f"HTCondor isn't installed on this machine; `updraft head init --install` does that{hand}"


def is_address(text: str) -> bool:
    """Is it an IP address, and no name?"""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def check_name(host: Host, address: str) -> None:
    """Raise UsageError where workers couldn't find this machine at `address`, a name or an address."""
    found = {address} if is_address(address) else host.addresses_of(address)
    if not found:
        raise UsageError(
            f"{address} is no name that this machine can resolve: give it an address in the DNS, or in "
            "/etc/hosts here and on the workers"
        )
    if all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found):
        raise UsageError(
            f"{address} is this machine's loopback address, where nobody else finds it: take the name's "
            "line with 127. out of /etc/hosts, or give another --address"
        )
    if not any(host.is_own(one) for one in found):
        raise UsageError(
            f"{address} is {', '.join(sorted(found))}, and no address of this machine: here it has to lead "
            "to one of its own (by a line in /etc/hosts, say), elsewhere to where this machine is found"
        )


Standing = dict[str, tuple[bool, bool]]
"""Of each service: does it run, and does it start with the machine?"""


class Services:
    """HTCondor and updraft as services: systemd's, or started plainly where nothing manages services."""

    def __init__(self, host: Host, start: str) -> None:
        self._host = host
        self._start = start
        told = host.run(["systemctl", "is-system-running"]) if host.has("systemctl") else None
        self.managed = told is not None and told.stdout.strip() in _UP

    def standing(self) -> Standing:
        """How they are now."""
        return {unit: (self.active(unit), self.enabled(unit)) for unit in (CONDOR, UPDRAFT, DOOR)}

    def active(self, unit: str) -> bool:
        """Does it run?"""
        if not self.managed:
            return self.pid(unit) is not None
        return self._host.run(["systemctl", "is-active", "--quiet", unit]).returncode == 0

    def pid(self, unit: str) -> int | None:
        """Its first process, as systemd has it or the pid file; None where it doesn't run."""
        if not self.managed:
            return self._host.noted(*_PLAIN[unit])
        told = self._host.run(["systemctl", "show", "--property=MainPID", "--value", unit]).stdout.strip()
        return int(told) if told.isdigit() and told != "0" else None

    def check_own(self) -> None:
        """Raise UsageError where an HTCondor runs as root here that isn't the service's: two can't be."""
        strange = self._host.masters() - {self.pid(CONDOR)}
        if strange:
            pids = ", ".join(map(str, sorted(strange)))
            raise UsageError(
                f"condor_master runs already (process {pids}), and not as {CONDOR}: end it with "
                "`condor_off -daemon master`, then run this again; nothing was changed"
            )

    def enabled(self, unit: str) -> bool:
        """Does it start with the machine?"""
        return self.managed and self._host.run(["systemctl", "is-enabled", "--quiet", unit]).returncode == 0

    def reload(self) -> None:
        """Have the manager read its units again."""
        if self.managed:
            self._control("daemon-reload")

    def enable(self, unit: str, on: bool = True) -> None:
        """Have it start with the machine, or no longer."""
        if not self.managed:
            return
        if on:
            self._control("enable", unit)
        else:
            self._host.run(["systemctl", "disable", unit])  # one that isn't there is disabled

    def start(self, unit: str, *, again: bool = False) -> None:
        """Start it; `again` ends one that runs first."""
        if self.managed:
            self._control("restart" if again else "start", unit)
            return
        if again:
            self.stop(unit)
        script = self._host.exists(self._start)
        done = self._host.run(["sh", self._start, "start"] if script else ["condor_master"])
        if done.returncode != 0:
            raise ProblemFound(f"HTCondor does not start: {last_line(done.stderr)}")

    def stop(self, unit: str) -> None:
        """End it, if it runs, and wait for that."""
        if self.managed:  # also one that is about to be started once more
            self._host.run(["systemctl", "stop", unit], timeout=300)
        elif (pid := self.pid(unit)) is None:
            return
        else:
            self._host.signal(pid, signal.SIGQUIT if unit == CONDOR else signal.SIGTERM)
        until = self._host.clock() + _LOOK
        while self.active(unit):
            if self._host.clock() > until:
                raise ProblemFound(f"{unit} does not end within {_LOOK:.0f} s")
            self._host.sleep(0.2)

    def _control(self, *words: str) -> None:
        done = self._host.run(["systemctl", *words], timeout=300)
        if done.returncode != 0:
            raise ProblemFound(f"`systemctl {' '.join(words)}` failed: {last_line(done.stderr)}")


def make_account(host: Host, name: str) -> None:
    """Make the first user's account, with a home and no password."""
    done = host.run(["useradd", "--create-home", "--shell", "/bin/bash", name])
    if done.returncode != 0:
        raise UsageError(f"the account {name} can't be made: {last_line(done.stderr)}")


def remove_account(host: Host, name: str) -> str:
    """Remove an account that was made here; why not, where it has become somebody's, else ""."""
    known = host.account(name)
    if known is None:
        return ""
    kept = sorted(_own_files(Path(known.pw_dir)))
    if kept:
        return f"the account {name} stays: there is {kept[0]} at its home"
    done = host.run(["userdel", "--remove", name])
    # userdel ends with 12 where there was no mail file to remove, say.
    return (
        "" if host.account(name) is None else f"the account {name} can't be removed: {last_line(done.stderr)}"
    )


def _own_files(home: Path) -> Iterable[str]:
    """What is at a home that no new account finds there, and nobody but its owner put there."""
    for found in home.rglob("*") if home.is_dir() else ():
        at = found.relative_to(home)
        if str(at) in _OWN_NOTES:
            continue
        given = Path("/etc/skel") / at
        if found.is_dir() and not found.is_symlink():
            if not any(found.iterdir()) and not given.is_dir():
                yield str(at)
        elif not given.is_file() or given.read_bytes() != found.read_bytes():
            yield str(at)


def wait_for(
    host: Host, services: Services, names: Sequence[str], ask: Callable[[], str], patience: float = 60.0
) -> None:
    """Wait until these daemons of the service's run and `ask` finds nothing amiss, else ProblemFound after
    `patience` s."""
    until = host.clock() + patience
    while True:
        master = services.pid(CONDOR)
        running = set() if master is None else host.family_of(master)
        missing = [name for name in names if name[:15] not in running]
        why = f"{', '.join(missing)} did not start" if missing else ask()
        if not why:
            return
        if host.clock() > until:
            raise ProblemFound(f"HTCondor does not come up within {patience:.0f} s: {why}")
        host.sleep(0.3)


def answer(host: Host, words: Sequence[str]) -> str:
    """What is wrong with a program's answer, "" where it has one."""
    done = host.run(words, timeout=15)
    return "" if done.returncode == 0 else f"{words[0]}: {last_line(done.stderr)}"


def last_line(text: str) -> str:
    """The last line that a program said."""
    return (text.strip().splitlines() or ["no message"])[-1]

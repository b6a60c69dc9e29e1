"""A small real pool in namespaces of its own, that vanishes with the process that made it.

The head and each worker are `condor_master`s in the root file system of an image: an overlay on a tmpfs, own
mount, process, host name and network spaces, each with an address on a bridge that lives in a network name
space of the pool's own. Every process is tied to this one by its parent-death signal, and every mount lives
in a private mount name space, so that nothing is left behind even by kill -9.
"""

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import TypeVar

import pytest

from tests.remains import Remains, watched
from tests.waiting import deadline, until
from updraft.clouds.local.images.image import find
from updraft.clouds.local.images.layers import DEFAULT_STORE
from updraft.condor.access import PoolAccess

T = TypeVar("T")
TRUST_DOMAIN = "pool.test"
# Each worker's pools have addresses of their own. A shadow that is looked for among all processes of the host
# could be another pool's otherwise: the rest of their names is the same.
NET = f"10.9.{os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw')}"
COLLECTOR = f"{NET}.1"
USERS = {"alice": 2001, "bob": 2002}
_CLONE_NEWNET = 0x40000000

_START = r"""
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir -p /mnt/up /mnt/work /mnt/root
mount -t overlay overlay -o "lowerdir=$IMAGE,upperdir=/mnt/up,workdir=/mnt/work" /mnt/root
mount --rbind /dev /mnt/root/dev
mount -t proc proc /mnt/root/proc
hostname "$NODE"
printf '127.0.0.1 localhost\n%s\n' "$HOSTS" > /mnt/root/etc/hosts
rm -f /mnt/root/etc/condor/config.d/00-minicondor
printf '%s\n' "$CONFIG" > /mnt/root/etc/condor/config.d/50-test
printf '%s\n' "$PASSWD" >> /mnt/root/etc/passwd
for d in /run/condor /run/lock/condor /var/log/condor /var/lib/condor/spool /var/lib/condor/execute; do
    mkdir -p "/mnt/root$d"; chroot /mnt/root chown condor: "$d"
done
if [ -n "$TOKEN" ]; then
    mkdir -p -m 700 /mnt/root/etc/condor/tokens.d
    (umask 077; printf '%s\n' "$TOKEN" > /mnt/root/etc/condor/tokens.d/worker)
fi
until ip link show eth0 > /dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip addr add "$ADDRESS/24" dev eth0
ip link set eth0 up
cd /
exec chroot /mnt/root /usr/bin/tini -- condor_master -f
"""

_COMMON = f"""
CONDOR_HOST = {COLLECTOR}
UID_DOMAIN = {TRUST_DOMAIN}
TRUST_DOMAIN = {TRUST_DOMAIN}
FILESYSTEM_DOMAIN = $(FULL_HOSTNAME)
RUNBENCHMARKS = 0
UPDATE_INTERVAL = 5
"""

_HEAD = f"""
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_UPDATE_INTERVAL = 5
SCHEDD_INTERVAL = 5
SCHEDD_MIN_INTERVAL = 1
COLLECTOR.ALLOW_ADVERTISE_STARTD = $(ALLOW_ADVERTISE_STARTD) updraft-worker*@{TRUST_DOMAIN} condor@*
COLLECTOR.ALLOW_ADVERTISE_MASTER = $(ALLOW_ADVERTISE_MASTER) updraft-worker*@{TRUST_DOMAIN} condor@*
"""

_WORKER = """
DAEMON_LIST = MASTER STARTD
NUM_CPUS = 4
MEMORY = 4096
MAXJOBRETIREMENTTIME = 3600
STARTD_NOCLAIM_SHUTDOWN = 0
"""


def image(suite: str = "") -> Path:
    """The root file system to boot, or a skip with the reason: UPDRAFT_TEST_IMAGE, or that of a `suite`."""
    if os.geteuid() != 0:
        pytest.skip("a real pool needs root (name spaces and mounts)")
    given = _built(suite) if suite else os.environ.get("UPDRAFT_TEST_IMAGE", "")
    if suite and not given:
        pytest.skip(f"there is no image of {suite}: run `updraft local image --suite {suite}`")
    if not given:
        pytest.skip("UPDRAFT_TEST_IMAGE doesn't name a root file system with HTCondor in it")
    if not (Path(given) / "usr/sbin/condor_master").exists():
        pytest.skip(f"{given} has no HTCondor in it")
    for tool in ("unshare", "nsenter", "setpriv", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"a real pool needs the tool {tool}")
    return Path(given)


def _built(suite: str) -> str:
    found = find(Path(os.environ.get("UPDRAFT_IMAGE_STORE", DEFAULT_STORE)), suite=suite)
    return str(found or "")


def wait_for(what: str, condition: Callable[[], T], deadline: float = 60.0) -> T:
    """Wait until `condition` gives something true, and return that; fails after `deadline` seconds."""
    return until(condition, deadline, what, every=0.2)


def _tied(command: Sequence[str]) -> list[str]:
    return ["setpriv", "--pdeathsig", "KILL", *command]


STORY = (
    ("condor_status", "-any"),
    ("condor_q", "-allusers", "-nobatch"),
    ("condor_history", "-limit", "200"),
    ("ps", "-ww", "-eo", "pid,ppid,stat,etime,args"),
)


class Node:
    """One machine of the pool: a head or a worker."""

    def __init__(self, name: str, address: str, process: "subprocess.Popen[bytes]") -> None:
        self.name = name
        self.address = address
        self.process = process

    @property
    def init(self) -> int:
        """The machine's process 1, as this host counts processes."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        children = path.read_text().split() if path.exists() else []
        return int(children[0]) if children else 0

    def run(
        self, *command: str, text: str = "", user: str = "root", check: bool = True, seconds: float = 60
    ) -> str:
        """Run a command on this machine, and return what it printed."""
        who = () if user == "root" else ("setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups")
        done = subprocess.run(
            [*self.enter(), *who, *command],
            input=text,
            capture_output=True,
            text=True,
            timeout=deadline(seconds),
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"{command} on {self.name}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout + ("" if check else done.stderr)

    def enter(self) -> tuple[str, ...]:
        """The command prefix that enters this machine, its root directory included."""
        pid = str(self.init)
        return (
            "nsenter",
            "-t",
            pid,
            "-m",
            "-u",
            "-n",
            "-p",
            "-i",
            "--root",
            "--wd",
            "--",
            "env",
            "-i",
            *_ENV,
        )

    def kill(self) -> None:
        """Sudden death: all of the machine's processes end at once."""
        self.process.kill()
        self.process.wait()


_ENV = ("PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8")


@contextlib.contextmanager
def _forked_here() -> Iterator[None]:
    """What `multiprocessing` forks is in the network where its server began: meanwhile it has another one."""
    names = ("ensure_running", "connect_to_new_process", "get_inherited_fds", "set_forkserver_preload")
    before = {name: getattr(forkserver, name) for name in names}
    server = forkserver.ForkServer()
    for name in names:
        setattr(forkserver, name, getattr(server, name))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(forkserver, name, function)
        alive = server._forkserver_alive_fd  # type: ignore[attr-defined]  # closed, it ends with its last child
        if alive is not None:
            os.close(alive)


class LivePool:
    """A head and its workers. Made by the fixture; ended by `close`, or with this process."""

    def __init__(self, root: Path, work: Path) -> None:
        self.root = root
        self.work = work
        self.nodes: dict[str, Node] = {}
        self._net = subprocess.Popen(_tied(["unshare", "-n", "sleep", "infinity"]))
        own = Path("/proc/self/ns/net").stat().st_ino
        wait_for(
            "a network name space", lambda: Path(f"/proc/{self._net.pid}/ns/net").stat().st_ino != own, 10
        )
        wait_for("sleep", lambda: Path(f"/proc/{self._net.pid}/comm").read_text().strip() == "sleep", 10)
        self._ip("link", "set", "lo", "up")
        # An address of its own, or it has that of one of its ports, and another one when that port goes.
        self._ip("link", "add", "br0", "address", "02:00:0a:09:00:fe", "type", "bridge")
        self._ip("addr", "add", f"{NET}.254/24", "dev", "br0")
        self._ip("link", "set", "br0", "up")

    def _ip(self, *words: str) -> None:
        subprocess.run(
            ["nsenter", "-t", str(self._net.pid), "-n", "ip", *words], check=True, timeout=deadline(20)
        )

    def start(self, name: str, number: int, config: str, token: str = "") -> Node:
        """Boot one machine with address `NET`.`number`."""
        address = f"{NET}.{number}"
        hosts = "\n".join(
            f"{NET}.{n} {host}.{TRUST_DOMAIN} {host}" for host, n in self._numbers(name, number)
        )
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "IMAGE": str(self.root),
            "NODE": name,
            "ADDRESS": address,
            "HOSTS": hosts,
            "CONFIG": f"{_COMMON}\nNETWORK_INTERFACE = {address}\n{config}",
            "PASSWD": "\n".join(f"{u}:x:{n}:65534::/tmp:/bin/sh" for u, n in USERS.items()),
            "TOKEN": token,
        }
        spaces = [
            "unshare",
            "-m",
            "-p",
            "-u",
            "-i",
            "-n",
            "--fork",
            "--kill-child=KILL",
            "bash",
            "-c",
            _START,
        ]
        with (self.work / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                _tied(spaces),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        node = Node(name, address, process)
        self.nodes[name] = node
        wait_for(f"process 1 of {name}", lambda: node.init, 10)
        veth = f"v{number}"
        self._ip("link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", str(node.init))
        self._ip("link", "set", veth, "master", "br0", "up")
        return node

    def _numbers(self, name: str, number: int) -> Iterator[tuple[str, int]]:
        for node in self.nodes.values():
            if node.name != name:
                yield node.name, int(node.address.rsplit(".", 1)[1])
        yield name, number

    def head(self, config: str = "") -> Node:
        """Boot the head, and wait until its schedd is in its collector, which knows itself as well."""
        node = self.start("head", 1, _HEAD + config)
        knows_itself = re.compile("StatsLifetime = [1-9]").search
        wait_for("the head's collector", lambda: knows_itself(self._status("-collector", "-l")), 60)
        wait_for("the head's schedd", lambda: "MyAddress" in self._status("-schedd", "-l"), 60)
        return node

    def head_key(self, name: str) -> None:
        """Make a signing key of its own on the head."""
        path = f"/etc/condor/passwords.d/{name}"
        self.nodes["head"].run("sh", "-c", f"umask 077; head -c 64 /dev/urandom > {path}")

    def _status(self, *words: str) -> str:
        try:
            return self.nodes["head"].run("condor_status", *words, check=False)
        except AssertionError:
            return ""

    def status(self, *words: str) -> str:
        """What `condor_status` on the head prints."""
        return self.nodes["head"].run("condor_status", *words)

    def worker(self, name: str, number: int, config: str = "", token: str = "", wait: bool = True) -> Node:
        """Boot a worker, and wait until its slot is in the collector."""
        token = token or self.nodes["head"].run(
            *("condor_token_create", "-identity", f"updraft-worker@{TRUST_DOMAIN}"),
            *("-authz", "ADVERTISE_STARTD", "-authz", "ADVERTISE_MASTER", "-lifetime", "3600"),
        )
        instance = f'UpdraftInstance = "i-{name}"\nSTARTD_ATTRS = $(STARTD_ATTRS) UpdraftInstance\n'
        node = self.start(name, number, _WORKER + instance + config, token.strip())
        if wait:
            wait_for(f"{name}'s slot", lambda: name in self._status("-af", "Machine"), 60)
        return node

    def submit(self, text: str, user: str = "alice") -> str:
        """Submit a job description on the head; the cluster's number."""
        out = self.nodes["head"].run("condor_submit", "-terse", text=text, user=user)
        return out.split(".")[0].strip()

    def access(self) -> PoolAccess:
        """How updraft reaches this pool, called "test", with a token that may do everything."""
        return PoolAccess(
            "test",
            collector=COLLECTOR,
            token_dir=self.token_dir(),
            trust_domain=TRUST_DOMAIN,
            tools=self.nodes["head"].enter(),
        )

    def token_dir(self) -> Path:
        """A directory with a token that may do everything in this pool."""
        folder = self.work / "tokens"
        folder.mkdir(mode=0o700, exist_ok=True)
        token = self.nodes["head"].run("condor_token_create", "-identity", f"condor@{TRUST_DOMAIN}")
        path = folder / "head"
        path.write_text(token)
        path.chmod(0o600)
        return folder

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """This thread, and what it starts, is in the pool's network meanwhile."""
        libc = ctypes.CDLL(None, use_errno=True)
        own_path, pool_path = Path("/proc/thread-self/ns/net"), Path(f"/proc/{self._net.pid}/ns/net")
        with own_path.open() as own, pool_path.open() as pool:
            if libc.setns(pool.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                with _forked_here():
                    yield
            finally:
                libc.setns(own.fileno(), _CLONE_NEWNET)

    def tell(self, remains: Remains) -> None:
        """What the machines that are still there wrote, and what the head's tools print."""
        for node in self.nodes.values():
            remains.file(f"{node.name}/console", self.work / f"{node.name}.log")
            if node.init:
                remains.folder(f"{node.name}/condor", Path(f"/proc/{node.init}/root/var/log/condor"))
        for tool, *words in STORY:
            try:
                said = self.nodes["head"].run(tool, *words, check=False)
            except (AssertionError, KeyError, OSError, subprocess.SubprocessError) as error:
                said = f"cannot be read: {error}"
            remains.text(f"head/{tool}", said)

    def close(self) -> None:
        """End every machine, then the network."""
        for node in self.nodes.values():
            node.kill()
        self._net.kill()
        self._net.wait()


@contextlib.contextmanager
def live_pool(head_config: str = "", suite: str = "") -> Iterator[LivePool]:
    """A pool with a head and no workers yet, from the image of `suite`; it is gone afterwards."""
    root = image(suite)
    with tempfile.TemporaryDirectory(prefix="updraft-pool-") as folder:
        pool = LivePool(root, Path(folder))
        try:
            with watched(pool.tell):
                pool.head(head_config)
                yield pool
        finally:
            pool.close()

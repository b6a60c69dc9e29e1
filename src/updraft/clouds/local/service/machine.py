"""One machine of the local cloud: its disk, its namespaces and its console.

Everything here runs inside the cloud's namespaces, and goes with them.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from updraft.clouds.local.config import Flavor
from updraft.clouds.local.service import network

CONSOLE_LIMIT = 64 * 1024
# The first word of a machine's own init (files/boot); what the host runs before it says nothing.
_FIRST_WORD = b"machine: "
_BOOTED = "machine: cloud-init is done"
_HARDWARE = """\
# Written by the cloud, as the machine's hardware: namespaces don't hide how large the host is, so HTCondor is
# told what this machine's flavor has.
NUM_CPUS = {cpus}
MEMORY = {memory}
# There is no way out of this cloud, to Box, Google Drive or OneDrive either. Their plugins are Python, and
# HTCondor asks every plugin what it can do when it starts: that was a quarter of a boot's work.
FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin, $(LIBEXEC)/data_plugin
"""


class Console:
    """The end of what a machine has said, at most 64 KiB."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._data = b""

    def write(self, data: bytes) -> None:
        """Append."""
        with self._lock:
            self._data = (self._data + data)[-CONSOLE_LIMIT:]

    def read(self) -> str:
        """All that is kept, what isn't text replaced."""
        with self._lock:
            return self._data.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What a machine is made of: where (`folder`), of which layers, with which size and address."""

    id: str
    folder: Path
    layers: tuple[str, ...]
    flavor: Flavor
    name: str
    address: str
    prefix: int
    gateway: str


class Process:
    """A running machine. `pid` is its first process as the cloud sees it, None until it has started.

    `booted` is set once cloud-init is done on it, or the machine has ended.
    """

    def __init__(self, blueprint: Blueprint, console: Console) -> None:
        self._blueprint = blueprint
        self._console = console
        self._process: subprocess.Popen[bytes] | None = None
        self.pid: int | None = None
        self._in_its_root = False
        self._again = False
        self.booted = threading.Event()

    @property
    def inside(self) -> int | None:
        """`pid` once the machine is in its own root: before, its namespaces show the host's."""
        return self.pid if self._in_its_root else None

    def start(self, entered: Callable[[], None], ended: Callable[[], None]) -> None:
        """Make the disk, the namespaces and the cable, and let the machine boot.

        `entered` is called each time that its own system starts, `ended` once, after its last process.
        Raises OSError or CalledProcessError where it fails, with nothing left.
        """
        try:
            self._make_disk()
            self._boot()
        except BaseException:
            self.kill_and_clean()
            raise
        threading.Thread(target=self._follow, args=(entered, ended), name="console", daemon=True).start()

    def _boot(self) -> None:
        made = self._blueprint
        root = made.folder / "root"
        firmware = str(resources.files("updraft.clouds.local") / "files" / "firmware")
        command = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--fork", "--kill-child=KILL"]
        command += ["sh", firmware, str(root), made.name, f"{made.address}/{made.prefix}", made.gateway]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        )
        self._process = process
        assert process.stdin is not None  # noqa: S101  # a pipe
        assert process.stdout is not None  # noqa: S101  # a pipe
        first = process.stdout.readline().split()
        if len(first) != 2 or first[0] != b"pid":
            raise OSError(f"the machine did not start: {first!r}")
        self.pid = int(first[1])
        network.plug(made.id, made.address, self.pid)
        process.stdin.write(b"go\n")
        process.stdin.close()

    def kill_and_clean(self) -> None:
        """Undo a start that failed half-way."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._clean()

    def ask_to_stop(self) -> None:
        """Press the power button: the machine's init stops what runs and ends."""
        self._again = False
        self._signal("TERM")

    def kill(self) -> None:
        """Pull the plug: every process of the machine ends at once."""
        self._again = False
        self._signal("KILL")

    def freeze(self) -> None:
        """Stop every process of the machine, its init too, as a system that hangs."""
        if not self._runs():
            return
        try:
            space = Path(f"/proc/{self.pid}/ns/pid").readlink()
        except OSError:  # it has just ended
            return
        if space == Path("/proc/self/ns/pid").readlink():
            return  # it ended just now, and its number was given away again
        for _ in range(3):  # what was made meanwhile
            for one in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError, ValueError):
                    if (one / "ns/pid").readlink() == space:
                        os.kill(int(one.name), signal.SIGSTOP)

    def reboot(self, grace: float) -> None:
        """Start the machine anew on its disk: its init is asked to end, and killed after `grace` seconds."""
        self._again, before = True, self._process
        self._signal("TERM")
        if before is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                before.wait(grace)
            if before.poll() is None:
                self._signal("KILL")

    def wait(self, seconds: float) -> bool:
        """True once the machine has ended, False if it hasn't within `seconds`."""
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _runs(self) -> bool:
        # The process id can't be another's then: unshare, its parent, reaps it and then ends itself.
        return self.pid is not None and self._process is not None and self._process.poll() is None

    def _signal(self, name: str) -> None:
        if self._runs():
            subprocess.run(["kill", "-s", name, str(self.pid)], check=False, capture_output=True)

    def _follow(self, entered: Callable[[], None], ended: Callable[[], None]) -> None:
        self._listen(entered)
        while self._again:
            self._again = False
            try:
                network.unplug(self._blueprint.id)
                self._boot()
            except (OSError, subprocess.CalledProcessError) as error:
                self._console.write(f"cloud: this machine could not be started again: {error}\n".encode())
                break
            self._listen(entered)
        self._clean()
        ended()

    def _listen(self, entered: Callable[[], None]) -> None:
        """Take down what the machine says, until its end."""
        process = self._process
        assert process is not None  # noqa: S101  # set by start
        assert process.stdout is not None  # noqa: S101  # a pipe
        while data := process.stdout.read(4096):
            self._console.write(data)
            if not self._in_its_root and _FIRST_WORD in data:
                self._in_its_root = True
                entered()
            if not self.booted.is_set() and _BOOTED in self._console.read():
                self.booted.set()
        process.wait()
        self.booted.set()
        self._in_its_root = False

    def _make_disk(self) -> None:
        """An overlay over the image; its upper layer is in memory, as large as the flavor's disk."""
        made = self._blueprint
        for folder in (made.folder, made.folder / "disk", made.folder / "root"):
            folder.mkdir()
        size = f"size={made.flavor.disk}k,mode=755"
        _mount("tmpfs", "disk", made.folder / "disk", size)
        upper, work = made.folder / "disk/upper", made.folder / "disk/work"
        for folder in (upper, work):
            folder.mkdir()
        lower = ":".join(reversed(made.layers))
        root = made.folder / "root"
        _mount("overlay", "root", root, f"lowerdir={lower},upperdir={upper},workdir={work}")
        (root / "etc/hostname").write_text(made.name + "\n")
        condor = root / "etc/condor/config.d"
        if condor.is_dir():
            text = _HARDWARE.format(cpus=made.flavor.cpus, memory=made.flavor.memory)
            (condor / "01-hardware").write_text(text)

    def _clean(self) -> None:
        network.unplug(self._blueprint.id)
        for name in ("root", "disk"):
            folder = self._blueprint.folder / name
            subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)
            _remove(folder)
        _remove(self._blueprint.folder)


def _remove(folder: Path) -> None:
    # Should a mount be still on it, it goes with the cloud.
    with contextlib.suppress(OSError):
        folder.rmdir()


def _mount(kind: str, source: str, target: Path, options: str) -> None:
    command = ["mount", "-t", kind, "-o", options, source, str(target)]
    subprocess.run(command, check=True, capture_output=True)

"""Starting, finding and stopping a local cloud from the host, and entering its machines."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from updraft.clouds.local import config as cloud_config
from updraft.clouds.local.client import Client
from updraft.clouds.local.config import LocalCloudConfig
from updraft.clouds.local.faults import Fault
from updraft.clouds.local.service import inside
from updraft.clouds.local.settings import ENDPOINT_VARIABLE, STATE
from updraft.errors import CloudUnavailable, ProblemFound, UsageError

_START_DEADLINE = 20.0
_BOOT_DEADLINE = 10.0
_LOG = "cloud.log"
_OURS = (inside.STATE_FILE, cloud_config.SOCKET, inside.ADMIN_TOKEN, cloud_config.CONTROLLER_TOKEN)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# In a machine, as the user asked for: at home, with the environment of a log-in.
_AS_USER = (
    'HOME=$(getent passwd "$(id -u)" | cut -d: -f6); USER=$(id -un); export HOME USER; cd "$HOME"; exec "$@"'
)


def usual_state() -> Path:
    """Where the cloud is that nobody names: that of the environment's endpoint, else the usual place."""
    kind, _, path = os.environ.get(ENDPOINT_VARIABLE, "").partition(":")
    return Path(path).parent if kind == "unix" and path.endswith(f"/{cloud_config.SOCKET}") else STATE


@dataclass(frozen=True, slots=True)
class LocalCloud:
    """A running local cloud: `pid` is its process 1 as the host sees it, `started` that process's start."""

    state_dir: Path
    pid: int
    started: str
    launcher: "subprocess.Popen[bytes] | None" = field(default=None, compare=False, repr=False)

    @property
    def config(self) -> LocalCloudConfig:
        """What this cloud was started with."""
        return cloud_config.load(self.state_dir / inside.CONFIG_FILE)

    @property
    def endpoint(self) -> str:
        """The API's address on the host, as a driver's setting."""
        return f"unix:{self.state_dir / cloud_config.SOCKET}"

    @property
    def credential_file(self) -> Path:
        """The file with the credential of a user of this cloud."""
        return self.state_dir / cloud_config.CONTROLLER_TOKEN

    @property
    def events(self) -> Path:
        """The file in which the cloud writes down what it does and what it is asked."""
        return self.state_dir / inside.EVENTS

    def client(self, timeout: float = 30.0, *, spared: bool = False) -> Client:
        """A client that may do everything, also what only tests ask for; `spared` is as in `Client`."""
        token = (self.state_dir / inside.ADMIN_TOKEN).read_text().strip()
        return Client(self.endpoint, token, timeout=timeout, spared=spared)

    def alive(self) -> bool:
        """True while the cloud's process 1 runs."""
        return _start_of(self.pid) == self.started

    def set_faults(self, *faults: Fault) -> None:
        """Replace the cloud's faults by these; none takes all back."""
        self.client().set_faults(faults)

    def stop(self, deadline: float = 20.0) -> None:
        """End the cloud with everything in it. One that has ended is success."""
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
        until = time.monotonic() + deadline
        while self.alive():
            if time.monotonic() > until:
                raise ProblemFound(
                    f"The local cloud (process {self.pid}) does not end; look at what holds it."
                )
            time.sleep(0.02)
        if self.launcher is not None:
            if self.launcher.stdin is not None:
                self.launcher.stdin.close()
            self.launcher.wait(deadline)
        for name in _OURS:
            (self.state_dir / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (self.state_dir / inside.MACHINES).rmdir()  # the machines' disks went with the cloud's mounts


def start(config: LocalCloudConfig, state_dir: Path, *, tie_to_parent: bool = False) -> LocalCloud:
    """Start a cloud with its state (socket, credentials, log) in `state_dir`, and wait until it answers.

    It outlives the caller unless `tie_to_parent`: then it ends with the caller, however that ends. Raises
    UsageError where it can't be started here, CloudUnavailable with the log's end where it doesn't come up.
    """
    if os.geteuid() != 0:
        raise UsageError(
            "The local cloud makes namespaces and mounts: only root can start it; run this with sudo."
        )
    running = find(state_dir)
    if running is not None:
        raise UsageError(f"A local cloud already runs in {state_dir} (process {running.pid}); stop it first.")
    state_dir = state_dir.resolve()
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in (inside.STATE_FILE, cloud_config.SOCKET, inside.EVENTS):
        (state_dir / name).unlink(missing_ok=True)
    config.save(state_dir / inside.CONFIG_FILE)
    for name in (inside.ADMIN_TOKEN, cloud_config.CONTROLLER_TOKEN):
        _write_secret(state_dir / name, secrets.token_urlsafe(32))
    launcher = _spawn(state_dir, tie_to_parent)
    try:
        return _await_answer(state_dir, launcher)
    except BaseException:
        launcher.kill()
        launcher.wait()
        raise


def tidy(state_dir: Path) -> None:
    """Remove what an ended cloud left in its folder, and the folder if nothing else is in it."""
    for name in (*_OURS, inside.CONFIG_FILE, _LOG, inside.EVENTS):
        (state_dir / name).unlink(missing_ok=True)
    for folder in (state_dir / inside.MACHINES, state_dir):
        with contextlib.suppress(OSError):  # not there, or not ours alone
            folder.rmdir()


def find(state_dir: Path) -> LocalCloud | None:
    """The cloud that runs in `state_dir`, None where none does."""
    try:
        about = json.loads((state_dir / inside.STATE_FILE).read_text())
    except (OSError, ValueError):
        return None
    cloud = LocalCloud(state_dir.resolve(), about["pid"], about["started"])
    return cloud if cloud.alive() else None


def run_in(
    cloud: LocalCloud,
    machine: str,
    argv: Sequence[str],
    *,
    user: str | None = None,
    stdin: str | None = None,
    timeout: float | None = 60.0,
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a machine, as root or as `user`, and return what came of it.

    Raises ProblemFound where the machine doesn't run, subprocess.TimeoutExpired after `timeout` seconds.
    """
    command = enter_command(cloud, machine, argv, user=user)
    quiet = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, **quiet)


def enter_command(
    cloud: LocalCloud, machine: str, argv: Sequence[str], *, user: str | None = None
) -> list[str]:
    """The host's command that runs `argv` in a machine."""
    pid = _inside(cloud.client(), machine)
    command = [*("nsenter", "--target", str(cloud.pid), "--mount", "--pid", "--net", "--")]
    command += ["nsenter", "--target", str(pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--"]
    command += [
        "env",
        "-i",
        f"PATH={_PATH}",
        "LANG=C.UTF-8",
        "HOME=/root",
        f"TERM={os.environ.get('TERM', 'dumb')}",
    ]
    return [*command, *as_user(user), *argv]


def as_user(user: str | None) -> list[str]:
    """What a command in a machine begins with where it is run by `user`; None is root."""
    root = user is None or user == "root"
    return [] if root else ["runuser", "-u", user or "", "--", "sh", "-c", _AS_USER, "sh"]


def _inside(client: Client, machine: str) -> int:
    """The machine's first process, once it is in its own root: before, it would show the host's."""
    until = time.monotonic() + _BOOT_DEADLINE
    while True:
        found = next(iter(client.machines(ids=[machine])), None)
        if found is not None and found["pid"] is not None:
            return int(found["pid"])
        if found is None or found["state"] in ("stopping", "terminated") or time.monotonic() > until:
            raise ProblemFound(f"Machine {machine} does not run; `updraft local status` shows those that do.")
        time.sleep(0.05)


def _spawn(state_dir: Path, tied: bool) -> "subprocess.Popen[bytes]":
    command = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child=KILL"]
    command += [sys.executable, "-m", inside.__name__, str(state_dir), *(["tied"] if tied else [])]
    with (state_dir / _LOG).open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(os.environ),
            start_new_session=True,
        )


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """What the cloud needs to find itself; nothing else of the caller's, credentials least."""
    kept = {name: env[name] for name in ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG") if name in env}
    return {**kept, "PYTHONUNBUFFERED": "1"}


def _await_answer(state_dir: Path, launcher: "subprocess.Popen[bytes]") -> LocalCloud:
    until = time.monotonic() + _START_DEADLINE
    while time.monotonic() < until and launcher.poll() is None:
        cloud = find(state_dir)
        if cloud is not None and (state_dir / cloud_config.SOCKET).exists():
            try:
                cloud.client().quota()
            except CloudUnavailable:
                pass  # bound, and not yet listening
            else:
                return LocalCloud(cloud.state_dir, cloud.pid, cloud.started, launcher)
        time.sleep(0.02)
    log = (state_dir / _LOG).read_text(errors="replace").strip().splitlines() or ["nothing"]
    raise CloudUnavailable(f"The local cloud did not come up; {state_dir / 'cloud.log'} ends with: {log[-1]}")


def _write_secret(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text + "\n")


def _start_of(pid: int) -> str | None:
    """When this process started, in the kernel's ticks; None where it has ended (a zombie has)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]

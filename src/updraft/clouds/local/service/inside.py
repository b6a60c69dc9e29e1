"""The cloud's own process: started in new namespaces by `process.start`, it is process 1 there.

Process 1 only waits; the cloud is its child. When process 1 ends, however it ends, the kernel ends every
process of the namespace, and with them go the mounts, the network and the machines.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

from updraft.clouds.local import config as cloud_config
from updraft.clouds.local.service import network
from updraft.clouds.local.service.cloud import Cloud
from updraft.clouds.local.service.events import EventLog
from updraft.clouds.local.service.metadata import MetadataServer
from updraft.clouds.local.service.server import Tokens, servers

CONFIG_FILE = "config.json"
STATE_FILE = "cloud.json"
ADMIN_TOKEN = "admin.token"  # noqa: S105  # the name of a file
MACHINES = "machines"
EVENTS = "events.jsonl"


def main() -> int:
    """Arguments: the state folder, and `tied` where the end of our input is the end of the cloud."""
    state, tied = Path(sys.argv[1]), "tied" in sys.argv[2:]
    # The host's /proc is still there: the link and the file speak of us as the host sees us.
    pid = int(Path("/proc/self").readlink().name)
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    config = cloud_config.load(state / CONFIG_FILE)
    common = _prepare(state, config)
    (state / STATE_FILE).write_text(json.dumps({"pid": pid, "started": started}))
    child = os.fork()
    if child == 0:
        _serve(state, config, common, tied)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        ended, status = os.wait()
        if ended == child:
            return os.waitstatus_to_exitcode(status)


def _prepare(state: Path, config: cloud_config.LocalCloudConfig) -> Path:
    """Mounts and network of the cloud; returns the layer that all its machines have in common."""
    os.chdir("/")
    machines = state / MACHINES
    machines.mkdir(exist_ok=True)
    for arguments in (
        ["-t", "proc", "proc", "/proc"],
        ["-t", "tmpfs", "-o", "mode=700", "machines", str(machines)],
    ):
        subprocess.run(["mount", *arguments], check=True)
    network.set_up(config.network)
    common = machines / "common"
    (common / "etc").mkdir(parents=True)
    (common / "etc/hosts").write_text(cloud_config.hosts_file(config))
    (common / "etc/resolv.conf").write_text("# There is no name server here: see /etc/hosts.\n")
    for folder in (common, common / "etc"):
        folder.chmod(0o755)
    return common


def _serve(state: Path, config: cloud_config.LocalCloudConfig, common: Path, tied: bool) -> None:
    """Serve until the end of the process; never returns."""
    tokens = Tokens(
        (state / ADMIN_TOKEN).read_text().strip(), (state / cloud_config.CONTROLLER_TOKEN).read_text().strip()
    )
    cloud = Cloud(config, state / MACHINES, common, EventLog(state / EVENTS))
    metadata = MetadataServer(cloud, tokens.controller, secrets.token_bytes(32))
    bridge, unix = servers(cloud, tokens, state / cloud_config.SOCKET)
    for server in (metadata, bridge):
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 60}, daemon=True).start()
    if tied:
        threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        unix.serve_forever(poll_interval=60)
    finally:
        os._exit(1)


def _end_with_input() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())

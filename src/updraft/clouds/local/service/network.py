"""The cloud's network: a bridge in its own namespace, and a cable to each machine.

Everything here runs inside the cloud's namespaces. Nothing has to be taken down: cables go with their
machine's namespace, and the bridge with the cloud's.
"""

import subprocess

from updraft.clouds.local.config import METADATA_ADDRESS

BRIDGE = "cloud0"


def set_up(network: str) -> None:
    """Make the bridge with its own address and the metadata address; there is no uplink."""
    # A bridge that isn't told its hardware address takes that of some port, and another one when that port
    # goes: machines would talk to the old one until their neighbour tables forget it, half a minute later.
    own = mac_of(network.partition("/")[0])
    _ip(
        "link set lo up",
        f"link add {BRIDGE} address {own} type bridge stp_state 0 forward_delay 0",
        f"address add {network} dev {BRIDGE}",
        f"address add {METADATA_ADDRESS}/32 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    )


def mac_of(address: str) -> str:
    """The hardware address of the machine at this address."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def plug(machine_id: str, address: str, pid: int) -> None:
    """Connect the network namespace of process `pid` to the bridge; the machine's end is called eth0."""
    ours = "v" + machine_id[-12:]
    _ip(
        f"link add {ours} type veth peer name eth0 address {mac_of(address)} netns {pid}",
        f"link set {ours} master {BRIDGE} up",
    )


def unplug(machine_id: str) -> None:
    """Take a machine's cable away, if it is still there: what holds its namespace keeps no address."""
    subprocess.run(["ip", "link", "del", "v" + machine_id[-12:]], check=False, capture_output=True)


def _ip(*lines: str) -> None:
    subprocess.run(
        ["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True, capture_output=True
    )

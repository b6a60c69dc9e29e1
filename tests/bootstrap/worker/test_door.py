"""What closes the metadata address: what it lets through, on the kernel itself, and what puts it back."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.rigs.reading import shipped

F = TypeVar("F", bound=Callable[..., Any])
SHIPPED = Path(str(files("updraft.bootstrap").joinpath("files")))
# A machine (this namespace) and its cloud (the other end of the cable), which has all three addresses.
SITE = """set -e
mount -t tmpfs none /run
ip link set lo up
unshare --net sleep 120 </dev/null >/dev/null 2>&1 &
cloud=$!
trap 'kill $cloud' EXIT
until [ "$(readlink /proc/$cloud/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add eth0 type veth peer name peer0
ip link set peer0 netns $cloud
there() { nsenter --target $cloud --net "$@"; }
there ip link set lo up
there ip addr add 169.254.169.254/32 dev peer0
there ip addr add 10.9.9.1/24 dev peer0
for address in fd00:ec2::254/128 fd00::1/64 fe80::a9fe:a9fe/64; do
    there ip addr add $address dev peer0 nodad
done
there ip link set peer0 up
ip addr add 10.9.9.2/24 dev eth0
ip addr add fd00::2/64 dev eth0 nodad
ip link set eth0 up
ip route add default via 10.9.9.1
ip -6 route add default via fd00::1
"""
PROBE = """
import json, os, socket, sys
addresses = ("169.254.169.254", "10.9.9.1", "fd00:ec2::254", "fe80::a9fe:a9fe%eth0", "fd00::1")
targets = {one: socket.getaddrinfo(one, 80, type=socket.SOCK_STREAM)[0] for one in addresses}
if sys.argv[1] != "0":  # as another user Python may not find its own modules any more
    os.setresgid(1000, 1000, 1000)
    os.setresuid(1000, 1000, 1000)
found = {}
for address, target in targets.items():
    for device in ("", "eth0"):
        with socket.socket(target[0]) as one:
            one.settimeout(1.5)
            if device:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            try:
                one.connect(target[4])
                how = "open"
            except ConnectionRefusedError:
                how = "open"  # somebody has answered
            except OSError:
                how = "closed"
        found[(address + " by " + device) if device else address] = how
print(json.dumps(found))
"""
METADATA = ("169.254.169.254", "fd00:ec2::254", "fe80::a9fe:a9fe%eth0")
OTHERS = ("10.9.9.1", "fd00::1")

WITHOUT = os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nft")


def real(test: F) -> F:
    """For tests of the kernel itself."""
    skip = pytest.mark.skipif(WITHOUT, reason="needs root, iproute2 and nftables")
    return pytest.mark.integration(skip(test))


def on_a_machine(script: str, tmp_path: Path) -> list[str]:
    """Run a script on such a machine; the lines that it prints."""
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "script").write_text(SITE + script)
    tmp_path.chmod(0o755)
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", str(tmp_path / "script")],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def ways(*addresses: str, how: str) -> dict[str, str]:
    return {way: how for one in addresses for way in (one, f"{one} by eth0")}


@real
@pytest.mark.parametrize("without", ["", "the routing rules"])
def test_all_three_addresses_are_closed_by_route_and_by_device_and_nothing_else_is(
    tmp_path: Path, without: str
) -> None:
    probe = f"{sys.executable} -I -S {tmp_path}/probe.py"
    flush = "for f in -4 -6; do for n in 60 61 62 60 61 62; do ip $f rule del pref $n || :; done; done"
    close = f"sh {SHIPPED}/close-metadata.sh\n{flush if without else ''}"
    closed, opened = METADATA, OTHERS
    before, user, root = on_a_machine(f"{probe} 1000\n{close}\n{probe} 1000\n{probe} 0\n", tmp_path)
    everything = ways(*closed, *opened, how="open")
    assert json.loads(before) == everything, "the probe does see what is there"
    assert json.loads(user) == ways(*closed, how="closed") | ways(*opened, how="open")
    assert json.loads(root) == everything


ASKS = """
import socket
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
    source, target = (socket.getaddrinfo(f"fe80::{n}%peer0", 9)[0][4] for n in ("a9fe:a9fe", "2"))
    one.bind((*source[:1], 0, *source[2:]))
    one.sendto(b"x", target)
"""


@real
def test_the_metadata_service_still_finds_its_neighbour(tmp_path: Path) -> None:
    """The kernel's own answer to where this machine is: without it root would lose the address, too."""
    (tmp_path / "asks.py").write_text(ASKS)
    said = on_a_machine(
        f"""ip addr add fe80::2/64 dev eth0 nodad
sh {SHIPPED}/close-metadata.sh
there ip neigh flush dev peer0
there {sys.executable} -I {tmp_path}/asks.py
state() {{ there ip neigh show to fe80::2 dev peer0; }}
n=400; until state | grep -q -E 'REACHABLE|FAILED'; do n=$((n - 1)); [ $n -gt 0 ]; sleep 0.05; done
state
""",
        tmp_path,
    )
    assert said[-1].split()[-1] == "REACHABLE", said


# A connection whose far end goes silent: what the kernel sends of it after the program has closed it is
# nobody's. Counted before our chain and after it.
ORPHAN = """
import json, socket, subprocess, sys, time
there = ["nsenter", "--target", sys.argv[1], "--net", "nft"]
listening = (
    "import socket, time; s = socket.create_server(('169.254.169.254', 80)); "
    "print(1, flush=True); time.sleep(60)"
)
service = subprocess.Popen([*there[:-1], sys.executable, "-I", "-c", listening], stdout=subprocess.PIPE)
service.stdout.readline()
one = socket.create_connection(("169.254.169.254", 80), timeout=10)
silent = "add table ip t; add chain ip t i { type filter hook input priority 0; policy drop; }"
subprocess.run([*there, silent], check=True)
one.sendall(b"x")
one.close()
subprocess.run(["nft", "reset counters"], check=True, stdout=subprocess.DEVNULL)
def counted():
    told = subprocess.run(["nft", "-j", "list counters"], check=True, capture_output=True).stdout
    found = [one["counter"] for one in json.loads(told)["nftables"] if "counter" in one]
    return {one["name"]: one["packets"] for one in found}
until = time.monotonic() + 20
while not counted()["before"] and time.monotonic() < until:
    time.sleep(0.05)
service.kill()
seen = counted()
print(seen["before"] > 0, seen["after"])
"""


@real
def test_packets_that_are_nobodys_any_more_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "orphan.py").write_text(ORPHAN)
    said = on_a_machine(
        f"""sh {SHIPPED}/close-metadata.sh
nft add table ip count
for name in before after; do nft add counter ip count $name; done
nft add chain ip count before '{{ type filter hook output priority -50; }}'
nft add chain ip count after '{{ type filter hook output priority 50; }}'
for name in before after; do
    nft add rule ip count $name ip daddr 169.254.169.254 counter name $name
done
{sys.executable} -I {tmp_path}/orphan.py $cloud
""",
        tmp_path,
    )
    assert said == ["True 0"]


@real
def test_a_second_call_changes_nothing_and_other_tables_stay(tmp_path: Path) -> None:
    handles = "nft -a list table inet updraft | sha256sum"
    first, second, mine, third = on_a_machine(
        f"""nft add table ip mine
nft add chain ip mine forward '{{ type filter hook forward priority 0; policy drop; }}'
sh {SHIPPED}/close-metadata.sh
{handles}
sh {SHIPPED}/close-metadata.sh
{handles}
nft list table ip mine | grep -c 'hook forward'
nft flush chain inet updraft output
sh {SHIPPED}/close-metadata.sh
nft list table inet updraft | grep -c 'skuid 0 accept'
""",
        tmp_path,
    )
    assert first == second
    assert (mine, third) == ("1", "2")


@real
@pytest.mark.parametrize(
    ("nft", "why"),
    [
        ("echo 'Error: no inet here' >&2; exit 1", "nftables: Error: no inet here"),
        ("", "nftables is not installed (nft is not there)"),
    ],
)
def test_what_cannot_be_closed_says_why(tmp_path: Path, nft: str, why: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ip", "sh", "cat", "grep", "mkdir", "head"):
        (programs / name).symlink_to(str(shutil.which(name)))
    if nft:
        (programs / "nft").write_text(f"#!/bin/sh\n{nft}\n")
        (programs / "nft").chmod(0o755)
    said = on_a_machine(
        f"PATH={programs} sh {SHIPPED}/close-metadata.sh && echo closed || echo failed\n", tmp_path
    )
    assert said == [why, "failed"]


@real
@pytest.mark.parametrize("flush", ["nft flush ruleset", "ip rule del pref 60"])
def test_the_keeper_puts_back_what_is_taken_away(tmp_path: Path, flush: str) -> None:
    keeper = (SHIPPED / "door.py").read_text()
    assert "/usr/local/lib/updraft/close-metadata" in keeper
    door = tmp_path / "door"
    door.write_text(keeper.replace("/usr/local/lib/updraft/close-metadata", f"{SHIPPED}/close-metadata.sh"))
    said = on_a_machine(
        f"""doors() {{ nft list table inet updraft 2>/dev/null; ip rule show; }}
until_it_is() {{ n=600; until [ "$(doors)" = "$1" ]; do n=$((n - 1)); [ $n -gt 0 ]; sleep 0.05; done; }}
sh {SHIPPED}/close-metadata.sh
made=$(doors)
nft delete table inet updraft
{sys.executable} -I {door} &
keeper=$!
trap 'kill $cloud $keeper' EXIT
until_it_is "$made"
before=$(date +%s%N)
{flush}
until_it_is "$made"
echo $((($(date +%s%N) - before) / 1000000))
""",
        tmp_path,
    )
    print(f"back after {said[-1]} ms")  # noqa: T201
    assert int(said[-1]) < 20_000, "told by the kernel: it would have looked after a minute only"


# --------------------------------------------------------------------------------------- without a kernel


def test_it_leaves_word_as_long_as_it_is_open_and_says_each_change_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    door = shipped("door")
    monkeypatch.setattr(door, "OPEN", tmp_path / "run" / "open")
    answers = iter(["no nft", "no nft", "", ""])
    seen: list[tuple[str, float]] = []

    def wait(_told: object, seconds: float) -> None:
        left = door.OPEN.read_text() if door.OPEN.exists() else ""
        seen.append((left, seconds))
        if len(seen) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(door, "close", lambda: next(answers))
    monkeypatch.setattr(door, "listeners", lambda: [object()] * len(door.TOLD))
    monkeypatch.setattr(door, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        door.main()
    open_, closed = ("no nft\n", door.RETRY), ("", door.PATIENCE)
    assert seen == [open_, open_, closed, closed]
    assert capsys.readouterr().out.splitlines() == [
        "updraft-door: the metadata address is open: no nft",
        "updraft-door: the metadata address is closed again",
    ]


def test_why_it_is_open_is_what_the_script_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door = shipped("door")
    for command, why in (
        (["sh", "-c", "echo so;  echo it is; false"], "so it is"),
        (["false"], "no reason was given"),
        (["true"], ""),
    ):
        monkeypatch.setattr(door, "CLOSE", command)
        assert door.close() == why
    monkeypatch.setattr(door, "CLOSE", [str(tmp_path / "none")])
    assert "No such file" in door.close()


def test_where_the_kernel_tells_nothing_it_looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    door = shipped("door")
    monkeypatch.setattr(door, "TOLD", ((9999, 1),))
    assert door.listeners() == []
    begun = time.monotonic()
    door.wait([], 0.1)
    assert time.monotonic() - begun >= 0.1

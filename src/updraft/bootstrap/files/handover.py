#!/usr/bin/python3 -I
"""Asks the controller for this machine's own token, in the place of the one that came with the user-data.

Needs nothing but Python 3.6, HTCondor's tools and openssl. The token comes sealed to a key that is made here,
for this one question, and that nobody else ever has. Ends with 1, and why on the standard output.
"""

import base64
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Callable  # noqa: UP035 (as Python 3.6 has it)

CONFIG = "/etc/updraft/handover.json"
CONSOLE = "/dev/console"
ASK_EVERY = 5.0  # seconds: the ad may be lost with the collector that had it
LOOK_EVERY = 0.7
LOOK_SELDOM = 5.0


def run(words: "list[str]", given: bytes = b"") -> bytes:
    """What a tool prints. It talks to the pool's own collector, also where there are children of it."""
    env = dict(os.environ, _CONDOR_COLLECTOR_HOST="$(CONDOR_HOST)")
    try:
        done = subprocess.run(  # noqa: UP022 (as Python 3.6 has it)
            words, input=given, timeout=20, check=False, env=env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )  # fmt: skip
    except FileNotFoundError:
        raise OSError(words[0] + " is not there") from None
    except subprocess.TimeoutExpired:
        raise OSError(words[0] + " did not end within 20 s") from None
    if done.returncode:
        said = (done.stderr + done.stdout).decode(errors="replace").split()
        raise OSError(words[0] + ": " + " ".join(said)[-200:])
    return done.stdout


def make_key(folder: Path) -> bytes:
    """Make a key for this one question; its certificate (DER), which is nobody's and only carries the key."""
    run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
         "30", "-subj", "/CN=updraft", "-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    )  # fmt: skip
    return run(["openssl", "x509", "-in", str(folder / "cert"), "-outform", "DER"])


def opened(folder: Path, sealed: str) -> str:
    """The token that was sealed to the key. OSError for what can't be opened or is no token."""
    words = ["openssl", "cms", "-decrypt", "-inform", "DER", "-inkey", str(folder / "key")]
    words += ["-recip", str(folder / "cert")]
    token = run(words, base64.b64decode(sealed)).decode("ascii", "replace").strip()
    if token.count(".") != 2 or len(token.split()) != 1:
        raise OSError("what came is no token")
    return token


class Door:
    """Says on HTCondor's port, as long as HTCondor doesn't run, which key is here: by that the controller
    knows that who asks is at the address that the cloud shows."""

    def __init__(self, port: int, fingerprint: str) -> None:
        self._line = ("updraft-handover " + fingerprint + "\n").encode()
        self._socket = listening(port)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                there = self._socket.accept()[0]
            except OSError:
                return
            with there, contextlib.suppress(OSError):
                there.settimeout(3)
                there.sendall(self._line)
                # Who closes first keeps the port for a minute: it shall not be us.
                there.recv(1)

    def close(self) -> None:
        """Leave the port to HTCondor."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


def listening(port: int) -> socket.socket:
    """A socket that listens there, for both kinds of address where there are both."""
    for family, every in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):  # noqa: S104
        try:
            found = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            found.bind((every, port))
            found.listen(16)
            return found
        except OSError:
            found.close()
    raise OSError(f"port {port} can't be listened on")


def question(told: "dict[str, str]", instance: str, fingerprint: str, cert: bytes) -> bytes:
    """The ad that asks."""
    said = {
        "MyType": "DaemonMaster",
        "Name": "updraft-handover/" + fingerprint,
        "MyAddress": "<127.0.0.1:1>",
        "UpdraftInstance": instance,
        "UpdraftLaunch": told["launch"],
        "UpdraftPool": told["pool"],
        "UpdraftKey": base64.b64encode(cert).decode(),
    }
    lines = [f"{name} = {json.dumps(text)}" for name, text in said.items()]
    return "\n".join([*lines, "ClassAdLifetime = 30", ""]).encode()


def withdrawn(fingerprint: str) -> bytes:
    """The ad that takes the question back: the collector would keep it for minutes."""
    name = f'Name = "updraft-handover/{fingerprint}"'
    asked = [
        'MyType = "Query"',
        'TargetType = "DaemonMaster"',
        name,
        "Requirements = " + name.replace("=", "=="),
    ]
    return "\n".join([*asked, ""]).encode()


def answer(fingerprint: str, instance: str) -> "tuple[list[str], str, str]":
    """What is sealed for us (our token, and the broker's), why we get nothing, what is waited for; each empty
    where that isn't said. An answer for another machine is none: somebody has asked for it with our key."""
    ours = f'Name == "updraft-handover/{fingerprint}" && UpdraftInstance == {json.dumps(instance)}'
    asked = ["condor_status", "-generic", "-constraint", ours]
    names = ["Updraft" + name for name in ("Sealed", "SealedBroker", "Refused", "Waits")]
    said = run([*asked, "-json", "-attributes", ",".join(names)]).decode()
    [found] = json.loads(said) if said.strip() else [{}]
    own, broker, refused, waits = (str(found.get(name, "")) for name in names)
    return [one for one in (own, broker) if one], refused, waits


def exchange(folder: Path, told: "dict[str, str]", instance: str) -> "list[str]":
    """The machine's own tokens, the broker's second. OSError, with the reason, where it gets none."""
    cert = make_key(folder)
    fingerprint = hashlib.sha256(cert).hexdigest()
    asked = question(told, instance, fingerprint, cert)
    door = Door(int(told["port"]), fingerprint) if told["port"] else None
    if door is None:
        show("updraft-handover: " + fingerprint)
    try:
        mine = partial(answer, fingerprint, instance)
        return wait_for(folder, mine, asked, float(told["patience"]), float(told["silence"]))
    finally:
        if door is not None:
            door.close()
        with contextlib.suppress(OSError):
            run(["condor_advertise", "INVALIDATE_MASTER_ADS", "-"], withdrawn(fingerprint))


def show(line: str) -> None:
    """Print it on the console, where the controller reads it by the cloud's own word."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
    with contextlib.suppress(OSError):
        # Not truncated, since it is a device; never made, where there is none.
        handle = os.open(CONSOLE, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        with os.fdopen(handle, "w") as console:
            console.write("\n" + line + "\n")


def wait_for(
    folder: Path,
    answered: "Callable[[], tuple[list[str], str, str]]",
    asked: bytes,
    patience: float,
    silence: float,
) -> "list[str]":
    """Ask until there is an answer. Time in which the controller says nothing counts apart: it may be
    started anew, and then it gives us as long as ever."""
    begun = last = time.monotonic()
    asked_at, pause, heard, why = None, LOOK_EVERY, 0.0, "the controller says nothing"
    while heard < patience and last - begun - heard < patience + silence:
        waits = ""
        try:
            if asked_at is None or time.monotonic() - asked_at >= ASK_EVERY:
                run(["condor_advertise", "UPDATE_MASTER_AD", "-"], asked)
                asked_at = time.monotonic()
            sealed, refused, waits = answered()
        except (OSError, ValueError) as error:
            why = str(error)
        else:
            if sealed:
                return [opened(folder, one) for one in sealed]
            if refused:
                raise OSError(refused)
            why = waits or why
        time.sleep(pause)
        pause, now = min(LOOK_SELDOM, pause * 1.05), time.monotonic()
        heard, last = heard + (now - last if waits else 0.0), now
    raise OSError(f"no answer within {last - begun:.0f} s: {why}")


def already(done: Path, instance: str) -> bool:
    """Has this machine its own token? What a disk says that was copied from another machine doesn't count."""
    return done.exists() and done.read_text().strip() == instance


def main(config: str) -> int:
    """Put the machine's own token in the place of the other."""
    told = json.loads(Path(config).read_text())
    os.umask(0o077)
    try:
        instance = Path(told["instance"]).read_text().strip()
        if already(Path(told["done"]), instance):
            return 0
        with tempfile.TemporaryDirectory(prefix="updraft-", dir=told["room"]) as folder:
            tokens = exchange(Path(folder), told, instance)
        if told["broker"] and len(tokens) < 2:
            raise OSError("the controller gave no token for the broker")
        for path, token in zip((told["token"], told["broker"]), tokens):  # noqa: B905 (as Python 3.6 has it)
            file = Path(path)
            new = file.with_name(".new")
            new.write_text(token + "\n")
            new.replace(file)
        Path(told["done"]).parent.mkdir(parents=True, exist_ok=True)
        Path(told["done"]).write_text(instance)
    except OSError as error:
        sys.stdout.write(str(error) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else CONFIG))

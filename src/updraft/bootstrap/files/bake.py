#!/usr/bin/python3 -I
"""Makes this machine fit to be an image: waits until it was drained, cleans it, and looks for secrets.

Its last line on the console (updraft-image: READY, or updraft-image: FAILED: why) is what its maker waits
for. Needs nothing but Python 3.6. What is found is named, and never printed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

CONFIG = "/etc/updraft/bake.json"
MOST = 8  # findings that are named


def found(root: Path, patterns: "list[str]") -> "list[Path]":
    """Every path below `root` that fits one of these patterns, the links themselves."""
    return sorted({path for one in patterns for path in root.glob(one.lstrip("/"))})


def is_file(path: Path) -> bool:
    """Whether it is a plain file, no link to one."""
    return path.is_file() and not path.is_symlink()


def clean(root: Path, told: "dict[str, list[str]]") -> None:
    """Remove what belongs to this one machine or to a pool, and empty what must stay as a file."""
    for path in found(root, told["removed"]):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(str(path), ignore_errors=True)
            continue
        try:
            path.unlink()
        except OSError as error:  # the scan says so where it matters
            print(error)  # noqa: T201 (the journal reads it)
    for path in found(root, told["emptied"]):
        if is_file(path):
            path.write_bytes(b"")


def scan(root: Path, told: dict) -> "list[tuple[str, str]]":  # type: ignore[type-arg]
    """What the machine still has that an image must not carry: (path, what it is)."""
    unfit = [
        (path, what)
        for what, patterns in sorted(told["files"].items())
        for path in found(root, patterns)
        if is_file(path) and path.stat().st_size
    ]
    texts = {what: re.compile(text.encode()) for what, text in told["texts"].items()}
    for place in told["places"]:
        for folder, inner, names in os.walk(str(root / place.lstrip("/"))):
            over = [str(root / one.lstrip("/")) for one in told["passed_over"]]
            inner[:] = [one for one in inner if str(Path(folder) / one) not in over]
            for path in (Path(folder) / name for name in names):
                unfit.extend((path, what) for what in inside(path, texts, told["largest"]))
    return [("/" + str(path.relative_to(root)), what) for path, what in unfit]


def inside(path: Path, texts: "dict[str, re.Pattern[bytes]]", largest: int) -> "list[str]":
    """Which of these texts a plain file holds; a file too large for a credential isn't read."""
    try:
        if not is_file(path) or path.stat().st_size > largest:
            return []
        data = path.read_bytes()
    except OSError:
        return []
    return [what for what, text in sorted(texts.items()) if text.search(data)]


def say(text: str) -> None:
    """One line on the console, and on the standard output for the journal."""
    line = "updraft-image: " + text
    print(line, flush=True)  # noqa: T201 (the journal reads it)
    try:
        with Path("/dev/console").open("a") as console:
            console.write(line + "\n")
    except OSError:
        return


def runs(name: str) -> bool:
    """Whether a process of this name is there."""
    return subprocess.call(["pgrep", "-x", name], stdout=subprocess.DEVNULL) == 0


def wait(gone_after: float) -> None:
    """Until HTCondor's startd has come, and has been gone for longer than a restart takes."""
    while not runs("condor_startd"):
        time.sleep(1)
    gone = 0.0
    while gone < gone_after:
        time.sleep(1)
        gone = 0.0 if runs("condor_startd") else gone + 1


def main(config: str) -> None:
    """Wait, stop what writes, clean, look."""
    told = json.loads(Path(config).read_text())
    if told["gone_after"] is not None:  # a seed image's machine never had a startd
        wait(told["gone_after"])
    for command in told["stop"]:
        subprocess.call(command)
    clean(Path("/"), told)
    unfit = scan(Path("/"), told)
    os.sync()
    if unfit:
        named = "; ".join("{} ({})".format(*one) for one in unfit[:MOST])
        more = f", and {len(unfit) - MOST} more" if len(unfit) > MOST else ""
        say("FAILED: it holds what an image must not carry: " + named + more)
    else:
        say("READY")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else CONFIG)

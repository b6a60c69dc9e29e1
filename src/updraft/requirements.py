"""What updraft needs, the clouds' SDKs included: the lock, with each version and its hashes.

It travels in the package, so that whatever installs updraft installs what it was tested with.
"""

import re
import sys
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path

NAME = "run.lock"


def locked(without: Collection[str] = ()) -> str:
    """The lock as pip reads it, less the distributions named in `without`."""
    text = (files("updraft") / NAME).read_text(encoding="utf-8")
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.partition("==")[0] not in without)


def install_command() -> str:
    """What a person types to have all of it beside this updraft."""
    path = Path(__file__).with_name(NAME)
    return f"{sys.executable} -m pip install --require-hashes --no-deps -r {path}"

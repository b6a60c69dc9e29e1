"""The defaults that docs/explanation/scale.md states are those of the image's HTCondor."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.rigs.pools.livepool import image

PAGE = Path(__file__).parents[2] / "docs/explanation/scale.md"
_ROW = re.compile(r"^\|.*\| `(?P<name>[A-Z_]+)` \| `(?P<value>[^`]*)` \|$", re.MULTILINE)
# A host name that can't be resolved is a minute's wait, in which HTCondor tries again.
_RESOLVABLE = 'hostname localhost && exec chroot "$0" condor_config_val -dump'
_ALONE = {"CONDOR_CONFIG": "/dev/null", "_CONDOR_NO_DNS": "true", "_CONDOR_DEFAULT_DOMAIN_NAME": "pool.test"}


def stated() -> dict[str, str]:
    return {row["name"]: row["value"] for row in _ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def test_the_page_states_a_default_in_every_row_of_its_tables() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    headings = [line for line in rows if line.startswith("| what the wiki says")]
    assert len(stated()) == len(rows) - len(headings) > 0


@pytest.mark.integration
def test_the_defaults_are_as_the_page_says() -> None:
    dump = subprocess.run(
        ["unshare", "--net", "--uts", "sh", "-c", _RESOLVABLE, str(image())],
        env={"PATH": os.environ["PATH"], **_ALONE},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    pairs = (line.partition("=") for line in dump.splitlines() if not line.startswith("#"))
    real = {name.strip(): value.strip() for name, _, value in pairs}
    assert {name: real.get(name) for name in stated()} == stated()

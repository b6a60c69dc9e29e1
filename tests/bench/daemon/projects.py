"""200 machines over two real OpenStack projects with unequal quotas, under one controller.

`python -m tests.bench.daemon.projects FOLDER` prints what it measured as JSON. The projects are OS_CLOUD's,
for an eighth of the machines, and UPDRAFT_TEST_OS_SECOND's; UPDRAFT_TEST_OS_ADMIN names a cloud that may set
quotas.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.rows import SkippedError
from updraft.app import serving

SMALL, LARGE, BEYOND = 25, 175, 20
PATIENCE = 1500.0
NEEDED = ("OS_CLOUD", "UPDRAFT_TEST_OS_SECOND", "UPDRAFT_TEST_OS_ADMIN")


def in_a_process(folder: Path) -> dict[str, Any]:
    """What came of it. Raises SkippedError where no projects are named, RuntimeError where it failed."""
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        raise SkippedError(f"it takes two OpenStack projects: set {', '.join(missing)}")
    folder.mkdir()
    command = [sys.executable, "-m", __name__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3 * PATIENCE)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-1000:])
    return dict(json.loads(done.stdout))


def measured(folder: Path) -> dict[str, Any]:
    """More jobs than both quotas have room for, until that is used up, and until all is gone again."""
    from tests.rigs.clouds import osprojects

    settings = osprojects.settings_given()
    small, large, admin = (os.environ[name] for name in NEEDED)
    projects = [
        osprojects.Project(small, SMALL, settings),
        osprojects.Project(large, LARGE, settings),
    ]
    with ExitStack() as stack:
        stack.enter_context(osprojects.quotas(admin, projects))
        trial = osprojects.Trial(projects, folder, stack)
        return osprojects.up_and_down(trial, SMALL + LARGE + BEYOND, PATIENCE)


if __name__ == "__main__":
    serving.start_log("json")
    print(json.dumps(measured(Path(sys.argv[1]))))

"""The demonstration jobs of `examples/` on a real pool, with a stand-in for the shared-software repository.

Debian has no package of CernVM-FS, and the demonstration needs no other network. So the second and third job
run on machines of a class that asks for the repository as a site's class does, and whose mount helper is a
stand-in: it copies the repository's files from a small server on the head and mounts them read-only. What is
real is all around it: the settings, the boot, the check, what the machines say of themselves, the matching,
the jobs.
"""

import io
import json
import tarfile
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from updraft.demo.pool import USER, RealPool, Say
from updraft.errors import ProblemFound, UsageError

REPOSITORY = "software.example.org"
JOBS = ("demo-1", "demo-2", "demo-3")
STAND_IN = ("demo-2", "demo-3")
LONGEST = 600.0
SKIPPED = (
    "demo-2 and demo-3 ran against a stand-in: their machines copied the repository's files from the head "
    "and mounted them read-only. Skipped, because Debian has no packages of it: CernVM-FS itself, that is "
    "its server, its signatures and its client."
)

_PORT = 8000
_CLASS = """
[classes.software]
image = {image}
flavors = ["small"]
idle_limit = "15s"
boot_deadline = "3m"
lifetime = "12h"
head_gone_after = "5m"
cvmfs = [{{ name = "{repository}", server = "http://{head}:{port}/cvmfs/@fqrn@", key = "stand-in.pub" }}]
layers = ["stand-in.yaml"]
"""
# Nothing checks it: a stand-in has no signatures.
_KEY = "-----BEGIN PUBLIC KEY-----\nc3RhbmQtaW4=\n-----END PUBLIC KEY-----\n"
_HELPER = """\
#!/bin/sh
# Stands in for the mount helper of CernVM-FS: a copy of the files, read-only. No signatures, no updates.
set -e
. /etc/cvmfs/config.d/"$1".local
from=$(echo "$CVMFS_SERVER_URL" | sed "s/@fqrn@/$1/")
mount -t tmpfs -o size=1m,mode=755 stand-in "$2"
python3 -I -c 'import io, sys, tarfile, urllib.request as web
data = web.urlopen(sys.argv[1], timeout=30).read()
tarfile.open(fileobj=io.BytesIO(data)).extractall(sys.argv[2], filter="data")' "$from/files.tar" "$2"
mount -o remount,ro "$2"
"""
_FILES = {"/sbin/mount.cvmfs": _HELPER, "/usr/bin/cvmfs2": "#!/bin/sh\nexit 1\n"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one job: was it as expected, its output, and what is wrong (empty where nothing is)."""

    job: str
    output: str
    wrong: str


def run(pool: RealPool, folder: Path, say: Say) -> list[Outcome]:
    """Run the three jobs of `folder` as the first user, with condor_submit, and return what they printed.

    Raises UsageError where the folder lacks one, ProblemFound where the jobs don't end.
    """
    texts = _texts(folder)
    say("Setting up the stand-in for the shared-software server on the head.")
    serve(pool, folder / "repository")
    for name, text in texts.items():
        _put(pool, name, text, mode=(folder / name).stat().st_mode & 0o777, user=USER)
    clusters = {job: _submit(pool, job) for job in JOBS}
    say(f"Submitted {', '.join(JOBS)}; machines are launched for them.")
    _await(pool, clusters)
    return [_outcome(pool, job, cluster, texts) for job, cluster in clusters.items()]


def serve(pool: RealPool, repository: Path) -> None:
    """Put the repository's files behind HTTP on the head, and give the pool the class that mounts them."""
    address = next(m["address"] for m in pool.cloud.client().machines() if m["id"] == pool.head)
    root = f"/srv/software/cvmfs/{REPOSITORY}"
    _must(pool, f"mkdir -p {root} && base64 -d >{root}/files.tar", b64encode(packed(repository)).decode())
    _must(
        pool,
        f"setsid python3 -m http.server {_PORT} --bind {address} --directory /srv/software "
        "</dev/null >/dev/null 2>&1 &",
    )
    _must(pool, "cat >/etc/updraft/stand-in.pub", _KEY)
    _must(pool, "cat >/etc/updraft/stand-in.yaml", stand_in_layer())
    image = json.dumps(pool.image.name)
    text = _CLASS.format(image=image, repository=REPOSITORY, head=address, port=_PORT)
    _must(pool, "cat >>/etc/updraft/updraft.toml && updraft config check && systemctl reload updraft", text)


def stand_in_layer() -> str:
    """The layer of user-data with the stand-ins for CernVM-FS's programs."""
    files = [
        {"path": path, "permissions": "0755", "owner": "root:root", "content": text}
        for path, text in _FILES.items()
    ]
    return "#cloud-config\n" + json.dumps({"write_files": files}) + "\n"


def packed(folder: Path) -> bytes:
    """The files of a folder as a tar archive, owned by root."""

    def of_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        return info

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name, filter=of_root)
    return buffer.getvalue()


def judge(job: str, printed: str, errors: str, expected: str) -> str:
    """What is wrong with what a job printed; empty where nothing is. `expected` is demo-1's whole output."""
    if errors.strip():
        return f"it wrote to its error file: {errors.strip()[-200:]}"
    if job == "demo-1":
        return "" if printed == expected else "its digits are not those of pi"
    word = {"demo-2": "Hello!", "demo-3": "Goodbye!"}[job]
    return "" if word in printed and f"/cvmfs/{REPOSITORY}" not in errors else f"it did not say {word}"


def _texts(folder: Path) -> Mapping[str, str]:
    wanted = [f"{job}.job" for job in JOBS] + ["demo-1.py", "from-repository.sh", "demo-1.expected"]
    missing = [name for name in wanted if not (folder / name).is_file()]
    if missing or not (folder / "repository").is_dir():
        raise UsageError(f"{folder} lacks {', '.join(missing or ['repository'])}; name the folder `examples`")
    return {name: (folder / name).read_text(encoding="utf-8") for name in wanted}


def _put(pool: RealPool, name: str, text: str, mode: int, user: str) -> None:
    done = pool.on_head("sh", "-c", f"cat >{name} && chmod {mode:o} {name}", user=user, stdin=text)
    done.check_returncode()


def _submit(pool: RealPool, job: str) -> int:
    done = pool.on_head("condor_submit", "-terse", f"{job}.job", user=USER)
    if done.returncode != 0:
        raise ProblemFound(f"condor_submit {job}.job failed: {done.stderr.strip()}")
    return int(done.stdout.split(".")[0])


def _await(
    pool: RealPool,
    clusters: Mapping[str, int],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until all have left the queue. A job that is put on hold never does."""
    begun = clock()
    ours = " || ".join(f"ClusterId == {cluster}" for cluster in clusters.values())
    while left := pool.queue(ours):
        held = [str(job.get("HoldReason")) for job in left if job["JobStatus"] == 5]
        if held:
            raise ProblemFound(f"a job was put on hold: {held[0]}")
        if clock() - begun > LONGEST:
            raise ProblemFound(f"the jobs didn't end within {LONGEST:.0f} s; `updraft explain` says why")
        sleep(1.0)


def _outcome(pool: RealPool, job: str, cluster: int, texts: Mapping[str, str]) -> Outcome:
    printed, errors = (pool.on_head("cat", f"/home/{USER}/{job}.{end}").stdout for end in ("out", "err"))
    rows = [
        row for row in pool.history(("ClusterId", "JobStatus", "ExitCode")) if row["ClusterId"] == cluster
    ]
    if [(row["JobStatus"], row.get("ExitCode")) for row in rows] != [(4, 0)]:
        return Outcome(job, printed, f"it did not end well: {errors.strip()[-300:]}")
    return Outcome(job, printed, judge(job, printed, errors, texts["demo-1.expected"]))


def _must(pool: RealPool, script: str, stdin: str = "") -> None:
    done = pool.on_head("sh", "-c", script, stdin=stdin)
    if done.returncode != 0:
        raise ProblemFound(f"the head could not be prepared: {(done.stderr or done.stdout).strip()[-300:]}")

"""What a head would take from an HTCondor that is at work on this machine already."""

import re
from collections.abc import Iterator

from updraft.bootstrap.head.userdata import HeadSpec
from updraft.errors import UsageError
from updraft.provision.setup.book import Book
from updraft.provision.setup.files import CONF, daemons
from updraft.provision.setup.host import CONDOR, Host, Services, last_line
from updraft.provision.setup.tree import Tree

_ALWAYS = {"MASTER", "SHARED_PORT"}
_JOB = re.compile(r"[1-9]\d*\.\d+")


def check_undisturbed(host: Host, tree: Tree, services: Services, spec: HeadSpec, book: Book) -> None:
    """Raise UsageError where becoming this head would end daemons that run here, or touch jobs in a queue.

    What can't be asked counts as if it were so. A machine that is such a head already may be changed while it
    has jobs, as long as they keep their users.
    """
    if services.active(CONDOR):
        found = [*_dropped(host, spec), *_queue(host, spec, CONF in book.files)]
    else:
        found = [*_resting_queue(host, tree, spec)]
    if found:
        raise UsageError(
            f"HTCondor has work on this machine: {'; '.join(found)}. Take another machine, or let its jobs "
            "end first, or say --disturb; nothing was changed"
        )


def _dropped(host: Host, spec: HeadSpec) -> Iterator[str]:
    known, why = _setting(host, "DAEMON_LIST")
    if why:
        yield f"which daemons it runs can't be told ({why})"
    needed = {name.removeprefix("condor_").upper() for name in daemons(spec.roles)}
    gone = sorted(set(known.upper().replace(",", " ").split()) - needed - _ALWAYS)
    if gone:
        jobs = ", with the jobs that run there" if "STARTD" in gone else ""
        yield f"its {', '.join(gone)} would end{jobs}"


def _queue(host: Host, spec: HeadSpec, ours: bool) -> Iterator[str]:
    if "SCHEDD" not in _setting(host, "DAEMON_LIST")[0].upper():
        return
    done = host.run(["condor_q", "-allusers", "-af", "ClusterId"], timeout=60)
    if done.returncode != 0:
        yield f"its queue can't be asked ({last_line(done.stderr)})"
        return
    count = len(done.stdout.split())
    if renamed := _renamed(host, spec, count):
        yield renamed
    elif count and not ours:
        yield f"its queue has {_jobs(count)}, and it would be restarted"


def _resting_queue(host: Host, tree: Tree, spec: HeadSpec) -> Iterator[str]:
    """The same of a queue on the disk whose HTCondor doesn't run."""
    spool, _ = _setting(host, "SPOOL")
    file = tree.at(f"{spool}/job_queue.log")
    if not spool or not file.exists():
        return
    jobs = set()
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                code, _, key = line.partition(" ")
                job = key.split(" ")[0].strip()
                # 101 and 102: it is there, is gone. Other keys are those of clusters, users and the queue.
                if code == "101" and _JOB.fullmatch(job):
                    jobs.add(job)
                elif code == "102":
                    jobs.discard(job)
    except OSError as error:
        yield f"its queue {file} can't be read ({error.strerror})"
    if renamed := _renamed(host, spec, len(jobs)):
        yield renamed


def _renamed(host: Host, spec: HeadSpec, count: int) -> str:
    """How jobs would lose their users, "" where there are none, or they keep them."""
    domain, why = _setting(host, "UID_DOMAIN")
    if not count or (not why and domain.lower() == spec.uid_domain.lower()):
        return ""
    return (
        f"its queue has {_jobs(count)} of users of {domain or 'an unknown UID_DOMAIN'}, not {spec.uid_domain}"
    )


def _jobs(count: int) -> str:
    return f"{count} job{'s' if count > 1 else ''}"


def _setting(host: Host, name: str) -> tuple[str, str]:
    """A setting as it is in force, and why it can't be told."""
    done = host.run(["condor_config_val", name])
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", last_line(done.stderr))

"""What a head would take from an HTCondor that is at work on this machine already."""

from collections.abc import Iterator

from updraft.bootstrap.head import HeadSpec
from updraft.errors import UsageError
from updraft.setup.book import Book
from updraft.setup.files import CONF, daemons
from updraft.setup.host import CONDOR, Host, Services, last_line

_ALWAYS = {"MASTER", "SHARED_PORT"}


def check_undisturbed(host: Host, services: Services, spec: HeadSpec, book: Book) -> None:
    """Raise UsageError where becoming this head would end daemons that run here, or touch jobs in a queue.

    What can't be asked counts as if it were so. A machine that is such a head already may be changed while it
    has jobs, as long as they keep their users.
    """
    if not services.active(CONDOR):
        return
    found = [*_dropped(host, spec), *_queue(host, spec, CONF in book.files)]
    if found:
        raise UsageError(
            f"HTCondor is at work on this machine: {'; '.join(found)}. Take another machine, or let its jobs "
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
    if not count:
        return
    jobs = f"{count} job{'s' if count > 1 else ''}"
    domain, why = _setting(host, "UID_DOMAIN")
    if why or domain.lower() != spec.uid_domain.lower():
        yield f"its queue has {jobs} of users of {domain or 'an unknown UID_DOMAIN'}, not {spec.uid_domain}"
    elif not ours:
        yield f"its queue has {jobs}, and it would be restarted"


def _setting(host: Host, name: str) -> tuple[str, str]:
    """A setting as it is in force, and why it can't be told."""
    done = host.run(["condor_config_val", name])
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", last_line(done.stderr))

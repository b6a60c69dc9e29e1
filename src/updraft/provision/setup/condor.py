"""HTCondor's packages, installed by the same recipes as a machine's first boot uses."""

from dataclasses import replace

from updraft.bootstrap.head.roles import CENTRAL_MANAGER
from updraft.bootstrap.head.userdata import HeadSpec, paced
from updraft.bootstrap.sizing import PoolSize, settings
from updraft.bootstrap.sizing.roles import MATCH_LIMITS
from updraft.errors import ProblemFound
from updraft.provision.setup.applying import apply
from updraft.provision.setup.files import installers
from updraft.provision.setup.host import Host
from updraft.provision.setup.tree import Tree, compare

_DEADLINE = 1800.0
_SCRIPT = "/usr/local/lib/updraft/install"
_WHY = "/run/updraft/why"


def install_condor(host: Host, tree: Tree, spec: HeadSpec) -> None:
    """Install HTCondor; the scripts are gone again afterwards. Raises ProblemFound where it fails."""
    book = tree.book()
    back = apply(tree, book, compare(tree, book, installers(spec)), book.facts)
    try:
        done = host.run(["sh", _SCRIPT], timeout=_DEADLINE)
        why = (tree.read(_WHY) or b"").decode(errors="replace").strip()
    finally:
        back()
    if done.returncode != 0:
        raise ProblemFound(
            f"HTCondor can't be installed: {why or done.stderr.strip()[-200:] or 'no message'}"
        )


_OWN = ("DAEMON_LIST", "JOB_DEFAULT_LEASE_DURATION", "SCHEDD_INTERVAL", MATCH_LIMITS)  # written in any case


def sized(spec: HeadSpec, machines: int) -> HeadSpec:
    """The same head tuned for so many machines. Raises BootstrapError for what is no size."""
    tuned = paced(replace(spec, machines=machines))
    if CENTRAL_MANAGER in spec.roles:
        return tuned
    more = {
        one.name: str(one.value) for one in settings(PoolSize(machines), "submit") if one.name not in _OWN
    }
    return replace(tuned, settings={**more, **spec.settings})

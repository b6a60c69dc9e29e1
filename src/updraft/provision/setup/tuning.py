"""The size of the pool, as settings of its head: what `updraft pool config` shows with its reasons."""

from dataclasses import replace

from updraft.bootstrap.head.roles import CENTRAL_MANAGER
from updraft.bootstrap.head.userdata import HeadSpec, paced
from updraft.bootstrap.sizing import PoolSize, settings
from updraft.bootstrap.sizing.roles import MATCH_LIMITS

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

"""Whose token a machine has shown, and what it may therefore say of itself at the collector.

The collector writes into each ad as whom its sender has authenticated, and asks COLLECTOR_REQUIREMENTS of it
before it takes the ad: so a machine can't speak in the name of another launch, or hide that it is of its own.
"""

from collections.abc import Mapping

WORKER_USER = "worker-"
"""A worker's token is for `worker-<launch key>@<trust domain>`."""

REQUIREMENTS = "COLLECTOR.COLLECTOR_REQUIREMENTS"
_ITS_DAEMONS = ("DaemonMaster", "StartD")  # their ads have no attributes of ours, and get no jobs


def identity_rule(trust_domain: str) -> Mapping[str, str]:
    """The setting of the collector that holds slots with a worker's token to the launch of that token.

    What the site requires so far, it requires still. Ads that come without a worker's token are none of its
    business: such as those that a child collector hands on to its parent.
    """
    launch = f'strcat("{WORKER_USER}", TARGET.UpdraftLaunch, "@{trust_domain}")'
    free = [f'substr(TARGET.AuthenticatedIdentity, 0, {len(WORKER_USER)}) =!= "{WORKER_USER}"']
    free += [f'TARGET.MyType =?= "{kind}"' for kind in _ITS_DAEMONS]
    known = "isString(TARGET.UpdraftInstance) && isString(TARGET.UpdraftPool)"
    right = f"TARGET.AuthenticatedIdentity =?= {launch} && {known}"
    so_far = f"$({REQUIREMENTS}:$(COLLECTOR_REQUIREMENTS:True))"
    return {REQUIREMENTS: f"({so_far}) && ({' || '.join([*free, f'({right})'])})"}

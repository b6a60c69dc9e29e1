"""Whose token a machine has shown, and what it may therefore say of itself at the collector.

The collector writes into each ad as whom its sender has authenticated, and asks COLLECTOR_REQUIREMENTS of it
before it takes the ad: so a machine can't speak in the name of another launch, or hide that it is of its own.
"""

from collections.abc import Mapping

WORKER_USER = "worker-"
"""A worker's token is for `worker-<launch key>@<trust domain>`."""

REQUIREMENTS = "COLLECTOR.COLLECTOR_REQUIREMENTS"
OF_MACHINE = "+"
"""A machine's own token is for `worker-<launch key>+<instance id>@<trust domain>`."""

ENDED = "/var/lib/updraft-tokens/ended.conf"
"""Where the controller writes whose tokens are over: outside /etc, which its service may not write."""

ENDED_SETTING = "UPDRAFT_ENDED_TOKENS"
"""The setting by which the controller knows that this head reads that file."""

OWN_SETTING = "UPDRAFT_OWN_TOKENS"
"""The setting by which the controller knows that this head lets machines in with tokens of their own."""

_NAMED = 'member(TARGET.UpdraftInstance, split(TARGET.Name, "@"))'
_ITS_DAEMONS = ("DaemonMaster", "StartD")  # their ads have no attributes of ours, and get no jobs


def identity_rule(trust_domain: str) -> Mapping[str, str]:
    """The setting of the collector that holds slots with a worker's token to the launch of that token, and
    to its machine, where the token is that machine's own: the slot's very name has the instance id in it.

    What the site requires so far, it requires still. Ads that come without a worker's token are none of its
    business: such as those that a child collector hands on to its parent.
    """
    whose = f'"{WORKER_USER}", TARGET.UpdraftLaunch'
    launch = f'strcat({whose}, "@{trust_domain}")'
    free = [f'substr(TARGET.AuthenticatedIdentity, 0, {len(WORKER_USER)}) =!= "{WORKER_USER}"']
    free += [f'TARGET.MyType =?= "{kind}"' for kind in _ITS_DAEMONS]
    known = "isString(TARGET.UpdraftInstance) && isString(TARGET.UpdraftPool)"
    own = f'strcat({whose}, "{OF_MACHINE}", TARGET.UpdraftInstance, "@{trust_domain}")'
    named = f"{_NAMED} =?= true"
    shown = "TARGET.AuthenticatedIdentity =?="
    right = f"({shown} {launch} || {shown} {own} && {named}) && {known}"
    so_far = f"$({REQUIREMENTS}:$(COLLECTOR_REQUIREMENTS:True))"
    return {REQUIREMENTS: f"({so_far}) && ({' || '.join([*free, f'({right})'])})"}


def is_ruled(requirements: str) -> bool:
    """Whether a collector with these COLLECTOR_REQUIREMENTS has the rule of `identity_rule`, of its present
    form: an older one knows no tokens of single machines."""
    return _NAMED in requirements and f'strcat("{WORKER_USER}"' in requirements


def ended_lines() -> str:
    """What has the collector refuse tokens that the controller finds to be over."""
    return f"{ENDED_SETTING} = {ENDED}\ninclude ifexist : {ENDED}\n"

"""Whose token a machine has shown, and what it may therefore say of itself at the collector.

The collector writes into each ad as whom its sender has authenticated, and asks COLLECTOR_REQUIREMENTS of it
before it takes the ad: so a machine can't speak in the name of another launch, or hide that it is of its own.
"""

from collections.abc import Mapping, Sequence

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

HANDOVER = "updraft-handover/"
"""What the name of an ad begins with by which a machine that boots asks for its own token."""

_DAEMONS = ("DaemonMaster", "StartD")  # their ads have no attributes of ours, and get no jobs
# What a collector works out of each ad, for itself, by `identity_rule`, or where the controller asks for ads:
# nothing but printable texts, numbers and truth values, since what refers to others may take it for ever.
_READ = (
    *("MyType", "TargetType", "Name", "Machine", "SlotID", "MyAddress", "StartdIpAddr", "MasterIpAddr"),
    *("ClassAdLifetime", "UpdateSequenceNumber", "DaemonStartTime", "Offline", "Absent", "State", "Activity"),
    *("CondorVersion", "DynamicSlot", "UpdraftPool", "UpdraftLaunch", "UpdraftInstance", "UpdraftKey"),
    *("LastHeardFrom", "LastForwarded", "ShouldForward", "JobUniverse"),
)
# No text has a backslash: with it would come what can't be printed.
_PLAIN = '\\"[] !#-[^-~]*\\"|-?[0-9]+([.][0-9]+)?|true|false'
# `unparse` gives the text of an attribute of the ad that it stands in, and evaluates nothing.
_WITHIN = "evalInEachContext({}, {{TARGET}})[0] =?= true"


def identity_rule(trust_domain: str) -> Mapping[str, str]:
    """The setting of the collector that holds what has shown a worker's token to the launch of that token,
    and to its machine, where the token is that machine's own: a slot's very name has the instance id in it.

    Which table an ad goes to is the command's word, which the rule doesn't see: so it takes ads of the types
    that workers send, and their names fit no other table. What the site requires so far, it requires still.
    Ads that come without a worker's token are none of its business: such as those that a child collector
    hands on to its parent.
    """
    free = f'substr(TARGET.AuthenticatedIdentity, 0, {len(WORKER_USER)}) =!= "{WORKER_USER}"'
    here = f'split(AuthenticatedIdentity, "@")[1] =?= "{trust_domain}"'
    # ifThenElse works out the one that is chosen: nothing is read before all is known to be plain.
    within = f"ifThenElse({_plain(_READ)}, {here} && {_FRESH} && ({_daemon()} || {_slot()}), false)"
    so_far = f"$({REQUIREMENTS}:$(COLLECTOR_REQUIREMENTS:True))"
    return {REQUIREMENTS: f"({so_far}) && ({free} || {_WITHIN.format(within)})"}


# Launch and machine of the identity that was shown; `_MACHINE` is undefined for the token of a whole launch.
_PARTS = f'split(split(AuthenticatedIdentity, "@")[0], "{OF_MACHINE}")'
_LAUNCH = f"substr({_PARTS}[0], {len(WORKER_USER)})"
_MACHINE = f"{_PARTS}[1]"
_OWN = f"size({_PARTS}) == 2"

# A collector keeps an ad for as long as that says, counted from when it says that it was heard.
_LASTS = "(ClassAdLifetime =?= undefined || ClassAdLifetime <= 3600)"
_FRESH = f"{_LASTS} && (LastHeardFrom =?= undefined || LastHeardFrom <= time())"

# `split` takes away spaces and empty parts, so the form comes first. A daemon is no submitter of the token's
# own name: everybody may advertise such a one, as a user's idle jobs.
_SLOT_NAME = "^[A-Za-z_]+[0-9]+(_[0-9]+)?@[^@ ]+@[^@ ]+$"
_DAEMON_NAME = f"^(?!([^@]*[.])?{WORKER_USER})[^@ ]+@[^@ ]+$"
_QUESTION = f"^{HANDOVER}[0-9A-Za-z-]+$"


def _slot() -> str:
    launch = f"UpdraftLaunch =?= {_LAUNCH}"
    machine = f"(!({_OWN}) || UpdraftInstance =?= {_MACHINE})"
    of = f'MyType =?= "Machine" && isString(UpdraftPool) && {launch} && {machine}'
    return f"({of} && {_named(_SLOT_NAME, 1, 'UpdraftInstance')})"


def _daemon() -> str:
    """Of a launch's token nobody knows which machine's daemon it is; the head and the site's own machines
    have none of these names."""
    kind = " || ".join(f'MyType =?= "{kind}"' for kind in _DAEMONS)
    free = f'regexp("{_QUESTION}|{_DAEMON_NAME}", Name)'
    named = f"ifThenElse({_OWN}, {_named(_DAEMON_NAME, 0, _MACHINE)}, {free})"
    return f"(({kind}) && State =?= undefined && {named})"


def _named(form: str, part: int, machine: str) -> str:
    return f'regexp("{form}", Name) && split(Name, "@")[{part}] =?= {machine}'


def _plain(names: Sequence[str]) -> str:
    """The condition that the ad says nothing else under these names."""
    said = ', " ", '.join(f"unparse({name})" for name in names)
    return f'regexp("^(({_PLAIN})? )*$", strcat({said}, " ")) =?= true'


def is_ruled(requirements: str) -> bool:
    """Whether a collector with these COLLECTOR_REQUIREMENTS has the rule of `identity_rule`, of its present
    form: by an older one machines could speak for others, or keep the collector busy for good."""
    return all(part in requirements for part in (_plain(_READ), _FRESH, _slot(), _daemon()))


def ended_lines() -> str:
    """What has the collector refuse tokens that the controller finds to be over."""
    return f"{ENDED_SETTING} = {ENDED}\ninclude ifexist : {ENDED}\n"

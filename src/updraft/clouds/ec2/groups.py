"""The security groups that workers are launched in: are they there, and may workers reach the pool?"""

from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from updraft.clouds.base import Finding
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.errors import code_of, is_unknown_call, kind_of
from updraft.clouds.ec2.settings import Settings
from updraft.errors import AuthFailed

WHAT = "security groups"
POOL_PORT = 9618  # HTCondor's shared port, to which workers connect
_ENTERING = f"the head must let workers in at TCP {POOL_PORT}"


def about_groups(settings: Settings, connection: Connection) -> Finding:
    """One line about all of them; what can't be looked at for want of a right is said, and no fault."""
    wanted = settings.security_groups
    if not wanted:
        whose = "those of the launch template" if settings.launch_template else "the cloud's default one"
        return Finding(WHAT, "ok", f"{whose}; {_ENTERING}")
    with connection.translate("looking at the security groups"):
        try:
            found = list(connection.pages("describe_security_groups", "SecurityGroups"))
        except ClientError as error:
            if kind_of(error) is not AuthFailed and not is_unknown_call(error):
                raise
            return Finding(WHAT, "ok", f"not looked at: the cloud answers {code_of(error)}; {_ENTERING}")
    return _judge(wanted, found)


def _judge(wanted: Iterable[str], found: Iterable[Mapping[str, Any]]) -> Finding:
    known = {str(group.get(key)): group for group in found for key in ("GroupId", "GroupName")}
    missing = [name for name in wanted if name not in known]
    if missing:
        remedy = "make it, or name another in security_groups: a launch with it is refused"
        return Finding(WHAT, "problem", f"the cloud has no {', '.join(missing)}", remedy)
    groups = [known[name] for name in wanted]
    # EC2-compatible clouds may leave the rules for what goes out away: then nothing is known of them.
    told = all("IpPermissionsEgress" in group for group in groups)
    if told and not any(_lets(rule, POOL_PORT) for group in groups for rule in group["IpPermissionsEgress"]):
        return Finding(
            WHAT,
            "warning",
            f"{', '.join(wanted)}: nothing lets workers out to TCP {POOL_PORT}, where the pool is",
            f"add a rule for outgoing TCP {POOL_PORT} to the head, or workers can't join",
        )
    return Finding(WHAT, "ok", f"{', '.join(wanted)}: there; {_ENTERING}")


def _lets(rule: Mapping[str, Any], port: int) -> bool:
    """Whether a rule is for this TCP port, to whomever."""
    protocol = str(rule.get("IpProtocol", ""))
    if protocol == "-1":
        return True
    first, last = int(rule.get("FromPort", -1)), int(rule.get("ToPort", -1))
    return protocol in ("tcp", "6") and (first == -1 or first <= port <= last)

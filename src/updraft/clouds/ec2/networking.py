"""Security groups of EC2: those of the network in which the settings launch machines."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.editing import write_tags
from updraft.clouds.ec2.errors import code_of, is_unknown_call
from updraft.clouds.ec2.reading import tags_of
from updraft.clouds.ec2.settings import Settings
from updraft.clouds.networking import ANY, BOTH, EVERYWHERE, Group, Rule
from updraft.errors import CloudUnavailable

_PROTOCOLS = {"-1": ANY, "6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6"}
_ALL_PORTS = (0, 65535)
# How the other end is told: the key of the list, that of the entry, and what stands before it in a rule.
_SOURCES = (
    ("IpRanges", "CidrIp", ""),
    ("Ipv6Ranges", "CidrIpv6", ""),
    ("UserIdGroupPairs", "GroupId", "group:"),
    ("PrefixListIds", "PrefixListId", "list:"),
)
_NOT_THERE = ("InvalidGroup.NotFound", "InvalidGroupId.Malformed", "InvalidSecurityGroupID.NotFound")


class EC2Networking:
    """Keeps the contract of `updraft.clouds.networking.Networking` for one account and region."""

    def __init__(self, cloud: str, connection: Connection, settings: Settings) -> None:
        self._cloud = cloud
        self._connection = connection
        self._settings = settings

    def show(self, wanted: str) -> Group | None:
        """By id, or by name in the network of the settings' subnets, else in the account's usual one."""
        by_id = wanted.startswith("sg-")
        with self._connection.translate(f"looking for the security group {wanted}"):
            filters = [{"Name": "group-id" if by_id else "group-name", "Values": [wanted]}]
            found = list(
                self._connection.pages("describe_security_groups", "SecurityGroups", Filters=filters)
            )
            here = found if by_id or len(found) < 2 else self._of_network(found)
        # An endpoint may leave filters aside.
        key = "GroupId" if by_id else "GroupName"
        return next((_group(raw) for raw in here if raw.get(key) == wanted), None)

    def make(self, name: str, tags: Mapping[str, str]) -> Group:
        """In the network of the settings; its description says who made it."""
        labels = [{"Key": key, "Value": text} for key, text in tags.items()]
        given: dict[str, Any] = {"GroupName": name, "Description": "made by updraft"}
        with self._connection.translate(f"making the security group {name}"):
            where = self._network()
            given |= {"VpcId": where} if where else {}
            specified = [{"ResourceType": "security-group", "Tags": labels}]
            answer = self._connection.ask("create_security_group", **given, TagSpecifications=specified)
        made = str(answer["GroupId"])
        if not self._connection.amazon:  # an endpoint may leave aside what it doesn't know
            write_tags(self._connection, [made], tags)
        found = self.show(made)
        if found is None:
            raise CloudUnavailable(
                f"cloud {self._cloud}: the security group {made} was made and isn't shown yet"
            )
        return found

    def allow(self, group: str, rules: Iterable[Rule]) -> None:
        """One call for what comes in, one for what goes out."""
        calls = {"in": "authorize_security_group_ingress", "out": "authorize_security_group_egress"}
        self._change("opening", group, rules, calls, "InvalidPermission.Duplicate")

    def revoke(self, group: str, rules: Iterable[Rule]) -> None:
        """One call for what comes in, one for what goes out."""
        calls = {"in": "revoke_security_group_ingress", "out": "revoke_security_group_egress"}
        self._change("closing", group, rules, calls, "InvalidPermission.NotFound")

    def remove(self, group: str) -> None:
        """Refused by EC2 while a machine or a rule names it."""
        with self._connection.translate(f"removing the security group {group}"):
            _unless(_NOT_THERE, lambda: self._connection.ask("delete_security_group", GroupId=group))

    def ipv6(self) -> bool:
        """Whether a subnet of the machines gives them such addresses: no launch asks for one."""
        with self._connection.translate("looking at the machines' subnets"):
            return any(one.get("AssignIpv6AddressOnCreation") for one in self._subnets())

    def address(self, machine: str) -> str:
        """The public address, where it has one; else its own."""
        with self._connection.translate(f"looking at {machine}"):
            answer = self._connection.ask("describe_instances", InstanceIds=[machine])
        found = [one for some in answer.get("Reservations", ()) for one in some.get("Instances", ())]
        one = found[0] if found else {}
        return str(one.get("PublicIpAddress") or one.get("PrivateIpAddress") or "")

    # ------------------------------------------------------------------------------------------- inside

    def _change(
        self, doing: str, group: str, rules: Iterable[Rule], calls: Mapping[str, str], fine: str
    ) -> None:
        chosen = list(rules)
        for direction, call in calls.items():
            some: list[dict[str, Any]] = []
            # What differs only in its family is one here, and may be named once.
            for asked in (_permission(one) for one in chosen if one.direction == direction):
                some += [asked] if asked not in some else []
            if some:
                with self._connection.translate(f"{doing} the security group {group}"):
                    self._permit(call, group, some, fine)

    def _permit(self, call: str, group: str, some: list[dict[str, Any]], fine: str) -> None:
        """One call for all; where one of them stands already, or is gone, each by itself."""
        try:
            self._connection.ask(call, GroupId=group, IpPermissions=some)
        except ClientError as error:
            if code_of(error) != fine:
                raise
            for one in some if len(some) > 1 else ():
                self._permit(call, group, [one], fine)

    def _network(self) -> str:
        """The VPC of the settings' subnets, else the account's default one; "" where there are none."""
        try:
            if self._settings.subnets:
                first = next(iter(self._settings.subnets.values()))
                found = self._connection.ask("describe_subnets", SubnetIds=[first]).get("Subnets", ())
            else:
                usual = [{"Name": "isDefault", "Values": ["true"]}]
                found = self._connection.ask("describe_vpcs", Filters=usual).get("Vpcs", ())
        except ClientError as error:
            if is_unknown_call(error):
                return ""
            raise
        return str(found[0].get("VpcId") or "") if found else ""

    def _subnets(self) -> list[Mapping[str, Any]]:
        """Those of the settings, else the usual ones; none where the endpoint knows no such call."""
        wanted: dict[str, Any] = {"Filters": [{"Name": "default-for-az", "Values": ["true"]}]}
        if self._settings.subnets:
            wanted = {"SubnetIds": sorted(set(self._settings.subnets.values()))}
        try:
            return list(self._connection.ask("describe_subnets", **wanted).get("Subnets", ()))
        except ClientError as error:
            if is_unknown_call(error):
                return []
            raise

    def _of_network(self, found: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        network = self._network()
        return [raw for raw in found if raw.get("VpcId", "") == network]


def _unless(codes: Iterable[str], call: Callable[[], object]) -> None:
    try:
        call()
    except ClientError as error:
        if code_of(error) not in codes:
            raise


def _group(raw: Mapping[str, Any]) -> Group:
    coming = [rule for one in raw.get("IpPermissions", ()) for rule in _rules("in", one)]
    # Clouds that only look like EC2 may tell nothing of what goes out: then nothing holds it back.
    told = "IpPermissionsEgress" in raw
    leaving = [rule for one in raw.get("IpPermissionsEgress", ()) for rule in _rules("out", one)]
    rules = [*coming, *(leaving if told else [Rule("out", ANY, None, EVERYWHERE[0])])]
    return Group(str(raw["GroupId"]), str(raw.get("GroupName", "")), frozenset(rules), tags_of(raw))


def _rules(direction: Any, raw: Mapping[str, Any]) -> Iterator[Rule]:
    told = str(raw.get("IpProtocol", "-1"))
    protocol = _PROTOCOLS.get(told, told)
    for listed, key, before in _SOURCES:
        for one in raw.get(listed) or ():
            source = before + str(one.get(key, ""))
            # A list's entries have their own family; a group's machines are let in by all that they have.
            yield Rule(direction, protocol, _ports(protocol, raw), source, BOTH if key == "GroupId" else 4)


def _ports(protocol: str, raw: Mapping[str, Any]) -> tuple[int, int] | None:
    first, last = int(raw.get("FromPort", -1)), int(raw.get("ToPort", -1))
    return None if protocol == ANY or first < 0 or (first, last) == _ALL_PORTS else (first, last)


def _permission(rule: Rule) -> dict[str, Any]:
    number = "-1" if rule.protocol == ANY else rule.protocol
    found: dict[str, Any] = {"IpProtocol": number}
    if rule.protocol != ANY:
        every = (-1, -1) if rule.protocol.startswith("icmp") else _ALL_PORTS
        found["FromPort"], found["ToPort"] = rule.ports or every
    kind = next((one for one in _SOURCES if one[2] and rule.source.startswith(one[2])), None)
    listed, key, before = kind or _SOURCES[1 if ":" in rule.source else 0]
    return found | {listed: [{key: rule.source.removeprefix(before)}]}

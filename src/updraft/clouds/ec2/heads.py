"""A head on EC2: its own security group and role, a public address, and a life beyond its shutdown."""

from collections.abc import Mapping

from updraft.clouds.heads import HeadPlace, PlainHeads, refuse

# What is for workers alone. A launch template may hold any of it.
_WORKERS = ("security_groups", "instance_profile", "launch_template", "launch_template_version")


class EC2Heads(PlainHeads):
    """See `updraft.clouds.heads.HeadTraits`."""

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """`role` is the instance profile; without one the head has none, whatever the workers have."""
        refuse(place, ("floating",))
        found = {key: value for key, value in own.items() if key not in _WORKERS}
        found |= {"security_groups": [place.group]} if place.group else {}
        found |= {"instance_profile": place.role} if place.role else {}
        found |= {"key_name": place.key_name} if place.key_name else {}
        return {**found, "public_address": not place.private, "on_shutdown": "stop"}

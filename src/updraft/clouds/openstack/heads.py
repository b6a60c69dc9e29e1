"""A head on OpenStack: its own security group, and a floating address where one is asked for."""

from collections.abc import Mapping

from updraft.clouds.heads import HeadPlace, PlainHeads, refuse


class OpenStackHeads(PlainHeads):
    """See `updraft.clouds.heads.HeadTraits`."""

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """Without a server group: that is for workers."""
        refuse(place, ("role",))
        found = {key: value for key, value in own.items() if key not in ("security_groups", "server_group")}
        found |= {"security_groups": [place.group]} if place.group else {}
        found |= {"key_name": place.key_name} if place.key_name else {}
        if place.private:
            found.pop("floating_network", None)
        elif place.floating:
            found["floating_network"] = place.floating
        return found

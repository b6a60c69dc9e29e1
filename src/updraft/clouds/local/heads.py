"""A head on the local cloud: its role is a setting, and one enters it from the host."""

from collections.abc import Mapping

from updraft.clouds.heads import HeadPlace, refuse


class LocalHeads:
    """See `updraft.clouds.heads.HeadTraits`."""

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """`role` "controller" lets the head use the cloud."""
        refuse(place, ("key_name", "private", "floating"))
        return {**own, "role": place.role}

    def login(self, machine: str, address: str, user: str) -> str:
        """Nobody logs in to these machines by SSH."""
        return f"updraft local shell --user {user} {machine}"

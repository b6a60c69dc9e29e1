"""Whose tokens nobody needs any more: launches of which no machine is there, and none can come.

Such a token would be good until its own end, days later, for whoever has read it meanwhile.
"""

from collections.abc import Mapping

from updraft.core.model import CloudView, Known, LaunchRecord, LaunchState, LedgerView

BY_HAND = "by-hand-"
"""How the key of a launch begins that was made by hand: its token may start further machines at any time."""

_CLOSED = (LaunchState.ACCEPTED, LaunchState.REFUSED, LaunchState.SETTLED)


def unneeded(view: LedgerView, clouds: Mapping[str, CloudView]) -> frozenset[str]:
    """The launches whose machines have all ended, of those that the ledger's view has.

    Unknown is not gone: a launch without an answer, a cloud that is silent or shows a machine of the launch,
    and a machine that was let go (it works on, as somebody else's) each keep the token.
    """
    needed = {one.launch_key for one in view.machines if one.ended_at is None or one.let_go is not None}
    needed |= {one.key for one in view.launches if one.state not in _CLOSED}
    ended = {one.launch_key: one.cloud for one in view.machines if one.ended_at is not None}
    ended |= {one.key: one.cloud for one in view.launches if _came_to_nothing(one)}
    shown = {
        one.launch_key
        for cloud in clouds.values()
        if isinstance(cloud.machines, Known)
        for one in cloud.machines.value
        if one.alive
    }
    silent = {name for name, cloud in clouds.items() if not isinstance(cloud.machines, Known)}
    return frozenset(
        launch
        for launch, cloud in ended.items()
        if launch
        and launch not in needed | shown
        and cloud in clouds
        and cloud not in silent
        and not launch.startswith(BY_HAND)
    )


def _came_to_nothing(launch: LaunchRecord) -> bool:
    return launch.state in (LaunchState.REFUSED, LaunchState.SETTLED) and not launch.ids

"""How `head terminate` goes about it: the head, and with it the groups that nobody else is behind."""

from updraft.app import wiring
from updraft.app.clouds import network_of
from updraft.app.heads.places import heads_of
from updraft.clouds.heads import HeadPlace
from updraft.config.model import Settings
from updraft.core.model import CloudState
from updraft.core.reasons import listed
from updraft.errors import UsageError
from updraft.provision.heads.machines import Patience
from updraft.provision.heads.network import Say

GONE_WITHIN = 300.0


class Ending:
    """One head that is to go; `head` is None where only the groups are left.

    Raises UsageError where there is neither, or, with `groups`, while somebody else is behind them.
    """

    def __init__(
        self, settings: Settings, cloud: str, name: str, floating: str, patience: Patience, *, groups: bool
    ) -> None:
        self._settings, self._cloud = settings, cloud
        self._heads = heads_of(settings, cloud, HeadPlace(floating=floating), patience)
        self.head = self._heads.named(name)
        if self.head is None and not groups:
            raise UsageError(f"cloud {cloud} has no head {name}; `updraft head list` shows them")
        if groups:
            _check_unused(settings, cloud, "" if self.head is None else self.head.id)

    def end(self) -> bool:
        """End it; False where the cloud takes its time."""
        return self.head is None or self._heads.end(self.head.id, GONE_WITHIN)

    def remove_groups(self, say: Say) -> None:
        """Remove the groups that updraft made there. Raises CloudError where one is in use."""
        network = network_of(self._settings, self._cloud)
        if not isinstance(network, str):
            network.remove(say)


def _check_unused(settings: Settings, cloud: str, leaving: str) -> None:
    """Raise UsageError while anybody but the head `leaving` is behind the groups that would be removed."""
    there: list[str] = []
    for name in _sharing(settings, cloud):
        others = [one for one in heads_of(settings, name, HeadPlace()).all() if one.id != leaving]
        workers = wiring.make_cloud(settings, name, settings.clouds[name]).machines.machines()
        there += [f"head {one.worker_class} ({one.id})" for one in others]
        there += [f"worker {one.id}" for one in workers if one.state is not CloudState.TERMINATED]
    if there:
        raise UsageError(
            f"the security groups are in use by {listed(there, 3)}: end them first (workers by "
            "`updraft destroy --wait`, on the head), or leave --groups away; nothing was ended"
        )


def _sharing(settings: Settings, cloud: str) -> list[str]:
    """This cloud, and those of the file that have the same groups: two names for one project."""
    driver = settings.clouds[cloud].driver
    ids: dict[str, set[str]] = {}
    for name, one in settings.clouds.items():
        network = network_of(settings, name) if one.driver == driver else ""
        ids[name] = set() if isinstance(network, str) else {group.id for group in network.ours()}
    return [name for name in ids if name == cloud or ids[name] & ids[cloud]]

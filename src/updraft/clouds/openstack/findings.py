"""What `updraft check` is told of a project: is there what machines are launched with, and who may see it?"""

from collections.abc import Callable, Iterable, Iterator

from updraft.clouds.base import Finding
from updraft.clouds.openstack.client import COMPUTE, WANTED, Connection, items
from updraft.clouds.openstack.selling.offers import Offers
from updraft.clouds.openstack.selling.places import Places
from updraft.clouds.openstack.settings import Settings
from updraft.errors import BadRequest

POOL_PORT = 9618  # HTCondor's shared port, to which workers connect
_SHELLS_OWN = Finding(
    "credentials of the service",
    "warning",
    "these come from the environment of this shell, which a service doesn't have",
    "put them into /etc/openstack/clouds.yaml (mode 0600), best as an application credential; "
    "`updraft run` in this shell works without",
)


def findings(settings: Settings, connection: Connection, places: Places, offers: Offers) -> Iterator[Finding]:
    """Each thing that was looked at. Raises CloudError."""
    with connection.translate("looking at the project"):
        yield _version(connection)
        yield _named("networks", "networks", lambda: places.names(places.networks()))
        yield _groups(settings, places)
        if settings.server_group is not None:
            yield _named("server group", "server_group", lambda: (places.server_group(),))
        if settings.floating_network is not None:
            yield _named("floating addresses", "floating_network", lambda: (places.floating_network(),))
        yield from _gpus(offers)
        if connection.source == "environment":
            yield _SHELLS_OWN


def key_pairs(connection: Connection) -> tuple[str, ...]:
    """The names of the user's key pairs, in order; errors are the SDK's."""
    found = items(connection.get(COMPUTE, "/os-keypairs"), "keypairs")
    return tuple(sorted(str(one["keypair"]["name"]) for one in found))


def _version(connection: Connection) -> Finding:
    major, minor = connection.microversion
    if (major, minor) >= WANTED:
        return Finding("endpoint", "ok", f"compute version {major}.{minor}")
    return Finding(
        "endpoint",
        "warning",
        f"compute version {major}.{minor}: below {WANTED[0]}.{WANTED[1]} (2018) a part of the cloud that is "
        "silent is left out of listings, as if its machines were gone, and below 2.61 GPUs aren't told",
        "say in gpus which flavors have GPUs",
    )


def _named(what: str, setting: str, ids: Callable[[], Iterable[str]]) -> Finding:
    try:
        return Finding(what, "ok", ", ".join(ids()))
    except BadRequest as error:
        return Finding(what, "problem", str(error), f"correct {setting}: a launch with it is refused")


def _groups(settings: Settings, places: Places) -> Finding:
    entering = f"the head must let workers in at TCP {POOL_PORT}"
    found = _named("security groups", "security_groups", places.security_groups)
    if found.state != "ok":
        return found
    which = ", ".join(settings.security_groups) or "the project's default one"
    return Finding(found.what, "ok", f"{which}; {entering}")


def _gpus(offers: Offers) -> Iterator[Finding]:
    guessed = [
        f"{name} ({', '.join(flavor.aliases)})" for name, flavor in offers.flavors().items() if flavor.aliases
    ]
    if guessed:
        yield Finding(
            "GPUs",
            "ok",
            f"taken for GPUs by their PCI alias: {', '.join(guessed)}; where they aren't, say so in gpus",
        )

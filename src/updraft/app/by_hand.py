"""The user-data of one worker that is started by hand: what a launch would send, with a token or without."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from updraft.act.launching import note_token
from updraft.app import wiring
from updraft.bootstrap import Layer
from updraft.bootstrap.worker.userdata import worker_layers
from updraft.condor.pool import HTCondorPool
from updraft.config.model import Settings
from updraft.core.machines.unneeded import BY_HAND
from updraft.core.model import Launch, Offer, Reason, Resources
from updraft.errors import PoolError, UsageError
from updraft.ledger import Ledger

NO_TOKEN = "HERE-GOES-THE-TOKEN"  # noqa: S105  # what stands where a token would
# What stands where only the head could say it, and there is no HTCondor here to ask. No such name exists.
STAND_INS = {
    "COLLECTOR_HOST": "the-head.invalid",
    "FULL_HOSTNAME": "the-head.invalid",
    "IPV4_ADDRESS": "192.0.2.1",
    "IPV6_ADDRESS": "2001:db8::1",
    "TRUST_DOMAIN": "the-trust-domain.invalid",
    "UID_DOMAIN": "the-uid-domain.invalid",
    "CONDOR_VERSION": "25.x",
}


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What a worker of this class is told; `lifetime` is its token's, in seconds.

    `unknown` are the settings of HTCondor's that could not be asked for: STAND_INS stand there.
    """

    worker_class: str
    layers: Sequence[Layer]
    cernvm: bool
    lifetime: float
    unknown: Sequence[str] = ()


def worker_told(
    settings: Settings, asked: str | None, choices: tuple[str, str, str, str], *, made: bool
) -> WorkerFacts:
    """The user-data of a worker of the class, or of the only one; `choices` are cloud, zone, flavor, market.

    With `made` a token is made for it, and noted in the ledger; else NO_TOKEN stands there. Raises UsageError
    for choices that the class doesn't have.
    """
    launch = _launch(settings, asked, choices)
    if made and not launch.offer.flavor:
        raise UsageError("say which flavor it will have with --flavor: that is how updraft knows its price")
    unknown: list[str] = []
    ask = wiring.asker(settings)
    spec = wiring.worker_spec(settings, ask if made else _or_stand_in(ask, unknown), launch, NO_TOKEN)
    spec = replace(spec, reach=replace(spec.reach, token=NO_TOKEN))
    lifetime = wiring.token_life(spec)
    if made:
        with HTCondorPool(wiring.access(settings)) as pool:
            spec = replace(spec, token=pool.mint_token(launch.key, lifetime))
            _note(settings, launch, spec.token)
            spec = wiring.with_broker_token(spec, pool)
    return WorkerFacts(launch.offer.worker_class, worker_layers(spec), spec.cernvm, lifetime, unknown)


def _or_stand_in(ask: Callable[[str], str], unknown: list[str]) -> Callable[[str], str]:
    """Asks as `ask` does; what HTCondor doesn't say is stood in for, and its name put to `unknown`."""

    def asked(name: str) -> str:
        try:
            return ask(name)
        except PoolError:
            if name not in STAND_INS:
                raise
            unknown.extend([name] if name not in unknown else [])
            return STAND_INS[name]

    return asked


def _note(settings: Settings, launch: Launch, token: str) -> None:
    """In the ledger, where there is one: `updraft tokens` knows this token too, then."""
    if settings.pool.ledger.exists():
        with Ledger(settings.pool.ledger) as ledger:
            note_token(ledger, launch.key, launch.offer.worker_class, token)


def _launch(settings: Settings, asked: str | None, choices: tuple[str, str, str, str]) -> Launch:
    """The launch of one machine of this class, by hand; what was not chosen is the class's first."""
    name = _class_named(asked, tuple(settings.classes))
    found = settings.classes[name]
    if found.owner_only:
        raise UsageError(f"class {name} has owner_only: each machine is made for one user, and none by hand")
    clouds = settings.clouds_of(found)
    cloud, zone, flavor, market = choices
    if cloud and cloud not in clouds:
        raise UsageError(f"class {name} is not for a cloud {cloud}; it is for {', '.join(clouds)}")
    cloud = cloud or clouds[0]
    plain = [one for one in found.flavors if not set(one) & set("*?[!")]
    offer = Offer(
        worker_class=name,
        cloud=cloud,
        zone=zone,
        flavor=flavor or (plain[0] if plain else ""),
        market=market or found.markets[0],
        image=settings.images_of(found)[cloud],
        generation=settings.generation(name),
        resources=Resources(),
        kind="",
    )
    return Launch(f"{BY_HAND}{secrets.token_hex(5)}", offer, 1, Reason("by-hand", "asked for by hand"))


def _class_named(asked: str | None, names: tuple[str, ...]) -> str:
    if asked is None and len(names) == 1:
        return names[0]
    if asked not in names:
        what = f"there is no class {asked}" if asked else "there is more than one class"
        raise UsageError(f"{what}; say one of {', '.join(names)}")
    return asked

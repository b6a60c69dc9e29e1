"""What no single value can show: contradictions between settings, and secrets where none belong."""

from collections.abc import Iterator, Mapping

from updraft.config.faults import Fault
from updraft.config.lines import KeyPath
from updraft.config.model import Settings
from updraft.config.tables.worker import WorkerClass
from updraft.config.values.units import spell

SECRET_WORDS = ("secret", "password", "passwd", "token", "private_key", "access_key")
TOKEN_START = "eyJ"  # noqa: S105 (how every token of HTCondor begins, no secret)
REFERENCES = ("_file", "_path", "_dir", "_env")


def secrets(tables: Mapping[str, object]) -> Iterator[Fault]:
    """Keys that hold a credential instead of saying where it is. What they hold is never repeated."""
    pool = tables.get("pool")
    if isinstance(pool, dict) and str(pool.get("token", "")).startswith(TOKEN_START):
        yield ("pool", "token"), "this is a token itself; put it into a file (mode 0600) and write its path"
    clouds = tables.get("clouds")
    if isinstance(clouds, dict):
        yield from _secrets(clouds, ("clouds",))


def _secrets(table: Mapping[str, object], above: KeyPath) -> Iterator[Fault]:
    for key, value in table.items():
        where = (*above, key)
        if isinstance(value, dict):
            yield from _secrets(value, where)
        elif len(where) > 2 and _is_secret(key.lower()):
            yield (
                where,
                "a credential may not stand here; leave it in the cloud's standard place (clouds.yaml, "
                "~/.aws/credentials) and name the profile",
            )


def _is_secret(key: str) -> bool:
    return any(word in key for word in SECRET_WORDS) and not key.endswith(REFERENCES)


def contradictions(settings: Settings) -> Iterator[Fault]:
    """Settings that are possible one by one, and not together."""
    for name in settings.usage.clouds:
        if name not in settings.clouds:
            known = ", ".join(settings.clouds)
            yield (
                ("usage", "clouds", name),
                f"there is no [clouds.{name}]; the clouds of this file are {known}",
            )
    if settings.pool.trust_groups is False:
        for name in settings.groups:
            yield (
                ("groups", name),
                "a budget of an accounting group holds only where groups are trusted, and trust_groups in "
                "[pool] is false: a job writes what group it likes; give users budgets in [users.NAME]",
            )
    for name, worker in settings.classes.items():
        where = ("classes", name)
        yield from _clouds(settings, worker, where)
        yield from _numbers(settings, worker, where)


def _clouds(settings: Settings, worker: WorkerClass, where: KeyPath) -> Iterator[Fault]:
    known = ", ".join(settings.clouds)
    for cloud in worker.clouds or ():
        if cloud not in settings.clouds:
            yield (*where, "clouds"), f"there is no [clouds.{cloud}]; the clouds of this file are {known}"
    if isinstance(worker.image, str):
        return
    for cloud in settings.clouds_of(worker):
        if cloud in settings.clouds and cloud not in worker.image:
            yield (*where, "image"), f'says no image for the cloud "{cloud}"; add one, or take it from clouds'
    for cloud in worker.image:
        if cloud not in settings.clouds:
            yield (
                (*where, "image", cloud),
                f"there is no [clouds.{cloud}]; the clouds of this file are {known}",
            )


def _numbers(settings: Settings, worker: WorkerClass, where: KeyPath) -> Iterator[Fault]:
    ceilings = [("max", worker.max), ("limits.machines", settings.limits.machines)]
    for ceiling, most in ceilings:
        if most is not None and worker.min > most:
            yield (
                (*where, "min"),
                f"{worker.min} is more than {ceiling} ({most}); lower the one or raise the other",
            )
    lease = settings.pool.job_lease
    if worker.head_gone_after < lease:
        yield (
            (*where, "head_gone_after"),
            f"{spell(worker.head_gone_after)} is shorter than the job lease ({spell(lease)}): jobs that only "
            f'lost sight of the head would be killed; write "{spell(lease)}" or more',
        )
    if worker.lifetime <= worker.idle_limit:
        yield (
            (*where, "lifetime"),
            f"{spell(worker.lifetime)} is not longer than idle_limit ({spell(worker.idle_limit)}); "
            "no machine could ever be idle so long",
        )

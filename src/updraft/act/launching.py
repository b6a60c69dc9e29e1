"""Launching: the intent, the token, the user-data, the call, and what came of it."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from updraft.act.lanes import UnderWay
from updraft.clouds.base import (
    TAG_CLASS,
    TAG_GENERATION,
    TAG_IDENTITY,
    TAG_LAUNCH,
    TAG_LEASE,
    TAG_POOL,
    TAG_VARIANT,
    LaunchRequest,
    Machines,
)
from updraft.condor.base import Pool
from updraft.condor.tokens.workers import boot_life, claims, life
from updraft.core.buying.launches import intended
from updraft.core.model import Instance, Launch, LaunchRecord, LaunchState, MachineRecord, Reason
from updraft.core.settings import Policy
from updraft.core.slots.variants import refusal
from updraft.errors import BadRequest, CloudError, CloudUnavailable, UpdraftError
from updraft.ledger import Ledger
from updraft.ledger.tokens import Issued, note

UserData = Callable[[Launch, str], bytes]
"""From a launch and the token of its machines to their user-data; raises BootstrapError."""


LAUNCH = "launch "  # how the name of a launch's task begins; its key follows


def going_on(tasks: Iterable[UnderWay]) -> frozenset[str]:
    """The keys of the launches whose calls go on."""
    return frozenset(task.name.removeprefix(LAUNCH) for task in tasks if task.name.startswith(LAUNCH))


def pool_tags(policy: Policy) -> dict[str, str]:
    """The tags by which a machine is known to be this pool's, and not that of another of its name."""
    identity = {TAG_IDENTITY: policy.identity} if policy.identity else {}
    return {TAG_POOL: policy.pool, **identity}


class Launcher:
    """Makes one launch happen, once. `step` is called between any two things that last."""

    def __init__(
        self,
        *,
        policy: Policy,
        pool: Pool,
        user_data: UserData,
        ledger: Ledger,
        clock: Callable[[], float],
        step: Callable[[str], None],
    ) -> None:
        self._policy = policy
        self._pool = pool
        self._user_data = user_data
        self._ledger = ledger
        self._clock = clock
        self._step = step

    def launch(self, action: Launch, machines: Machines) -> None:
        """Write the intent, ask the cloud, write the outcome. A failure is an outcome."""
        intent = intent_of(action, self._clock())
        self._step("launch: before the intent")
        self._ledger.intend(intent)
        self._step("launch: intended")
        try:
            request = self._request(action)
        except Exception as error:  # the cloud was not asked: certainly nothing was made
            self._failed(action, LaunchState.REFUSED, why(error, "not-prepared"))
            return
        self._step("launch: prepared")
        try:
            made = machines.launch(request)
        except CloudUnavailable as error:
            self._failed(action, LaunchState.UNKNOWN, why(error))
        except CloudError as error:
            self._failed(action, LaunchState.REFUSED, why(error))
        except Exception as error:  # whatever it was, it came after the request may have gone out
            self._failed(action, LaunchState.UNKNOWN, why(error, "unexpected"))
        else:
            self._step("launch: asked")
            self._made(action, intent, made)

    def _request(self, action: Launch) -> LaunchRequest:
        offer = action.offer
        worker = self._policy.classes[offer.worker_class]
        refused = refusal(offer.variant, worker, offer.image)
        if refused is not None:
            raise BadRequest(refused.text)
        lifetime = life(
            lifetime=worker.lifetime,
            drain_deadline=worker.drain_deadline,
            boot_deadline=worker.boot_deadline,
        )
        token = self._pool.mint_boot_token(action.key, boot_life(worker.boot_deadline), lifetime)
        note_token(self._ledger, action.key, offer.worker_class, token, lifetime)
        own = {} if action.annex is None else action.annex.tags
        tags = {
            **own,
            **pool_tags(self._policy),
            TAG_CLASS: offer.worker_class,
            TAG_LAUNCH: action.key,
            TAG_GENERATION: offer.generation,
        }
        if offer.variant:
            tags[TAG_VARIANT] = offer.variant.text
        if action.annex is not None:
            tags[TAG_LEASE] = str(int(action.annex.until))
        made = offer.variant
        return LaunchRequest(
            key=action.key,
            count=action.count,
            image=offer.image,
            flavor=offer.flavor,
            zone=offer.zone,
            market=offer.market,
            user_data=self._user_data(action, token),
            tags=tags,
            network=made.network,
            security_groups=tuple(made.groups.split(",")) if made.groups else (),
        )

    def _made(self, action: Launch, intent: LaunchRecord, instances: Iterable[Instance]) -> None:
        made = tuple(instances)
        ids = tuple(instance.id for instance in made)
        with self._ledger.together():
            self._ledger.outcome(action.key, LaunchState.ACCEPTED, ids)
            # Its boot is counted from here: the call may have taken minutes.
            asked = replace(intent, asked_at=self._clock())
            self._ledger.add(record_of(asked, instance.id, instance.zone) for instance in made)
            detail = {"cloud": action.offer.cloud, "offer": action.offer.key, "ids": list(ids)}
            self._ledger.event(
                self._clock(), "launch", action.key, action.reason, {**detail, "asked": action.count}
            )
        self._step("launch: recorded")

    def _failed(self, action: Launch, state: LaunchState, reason: Reason) -> None:
        self._step("launch: failed")
        with self._ledger.together():
            failed_at = self._clock() if state is LaunchState.UNKNOWN else None
            self._ledger.outcome(action.key, state, error=reason, failed_at=failed_at)
            detail = {"cloud": action.offer.cloud, "offer": action.offer.key, "asked": action.count}
            self._ledger.event(self._clock(), f"launch-{state}", action.key, reason, detail)


def note_token(
    ledger: Ledger, launch: str, worker_class: str, token: str, lifetime: float | None = None
) -> None:
    """Write down that a token was made for a launch: whose it is and how long it is good, never itself.

    With `lifetime` (seconds), so long are the tokens good that its machines get for it.
    """
    seen = claims(token)
    if seen is not None and seen.expires is not None:
        until = seen.expires if lifetime is None else seen.issued + lifetime
        note(ledger, Issued(launch, worker_class, seen.identity, seen.id, seen.key, seen.issued, until))


def intent_of(action: Launch, now: float) -> LaunchRecord:
    """What is written down of a launch before the cloud is asked, at the time `now`."""
    return intended(action.key, action.offer, action.count, now)


def record_of(intent: LaunchRecord, machine: str, zone: str = "") -> MachineRecord:
    """What is written down of a machine that the launch has made; `zone` where the cloud told another."""
    return MachineRecord(
        id=machine,
        cloud=intent.cloud,
        launch_key=intent.key,
        worker_class=intent.worker_class,
        flavor=intent.flavor,
        generation=intent.generation,
        requested_at=intent.asked_at,
        resources=intent.resources,
        zone=zone or intent.zone,
        market=intent.market,
        image=intent.image,
        price=intent.price,
        variant=intent.variant,
    )


def why(error: Exception, code: str = "") -> Reason:
    """The reason for which something failed; `code` where the error itself has none."""
    text = " ".join(str(error).split())[:500]
    if isinstance(error, CloudError):
        return Reason(error.code, text or error.code)
    if isinstance(error, UpdraftError):
        return Reason(code or getattr(error, "code", "failed"), text or type(error).__name__)
    return Reason(code or "unexpected", f"{type(error).__name__}: {text}")

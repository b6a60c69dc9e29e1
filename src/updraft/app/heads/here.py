"""How `head init` goes about it: what this machine is to be, by what is asked for and the configuration."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from updraft import config
from updraft.app.call import Call
from updraft.app.heads.spec import check_for_head
from updraft.bootstrap import HeadSpec, Install
from updraft.bootstrap.condor_config import split_address
from updraft.bootstrap.head.roles import CENTRAL_MANAGER, ROLES, SUBMIT
from updraft.bootstrap.worker.install import series
from updraft.bootstrap.worker.reach import METADATA, Reach, reach_settings
from updraft.config.model import Settings
from updraft.errors import ProblemFound, UsageError
from updraft.provision.setup import host as hosts
from updraft.provision.setup import steps
from updraft.provision.setup import tree as trees
from updraft.provision.setup.atwork import check_undisturbed
from updraft.provision.setup.condor import install_condor, sized
from updraft.provision.setup.files import SAMPLES, START, TOKEN, Place, checked_token, token_command
from updraft.provision.setup.host import Host, Services, check_name, is_address, missing
from updraft.provision.setup.selftest import Ran, run_one
from updraft.provision.setup.service import check_roots_own, unit_text
from updraft.provision.setup.steps import Intent, Say
from updraft.provision.setup.tree import Tree

TEST_DEADLINE = 900.0
REMEMBERED = ("roles", "address", "public", "domain", "user", "machines", "manager", "anonymous_read")
Waiting = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True)
class Here:
    """This machine, and what is to become of it; `workers` says whether jobs run on workers."""

    host: Host
    tree: Tree
    intent: Intent
    workers: bool

    @cached_property
    def services(self) -> Services:
        """The services of this machine."""
        return hosts.Services(self.host, START)

    def refuse_conflicts(self) -> None:
        """Raise UsageError where a file is in the way."""
        steps.refuse_conflicts(self.intent.changes)

    def nothing_to_do(self) -> bool:
        """Is this machine that head already, at work and for good?"""
        return steps.nothing_to_do(self.services, self.intent)

    def carry_out(self, say: Say, *, disturb: bool) -> None:
        """Make it so. Raises UsageError where HTCondor is at work here, unless it may be disturbed."""
        if self.intent.condor_changed and not disturb:
            check_undisturbed(self.host, self.tree, self.services, self.intent.spec, self.intent.book)
        steps.carry_out(self.host, self.tree, self.services, self.intent, say)

    def self_test(self) -> Callable[[], Ran]:
        """What runs one job as the first user. Raises ProblemFound where there is no such account."""
        account = self.host.account(self.intent.spec.users[0])
        if account is None:
            raise ProblemFound(f"there is no account {self.intent.spec.users[0]} to run the self-test as")
        program = f"{account.pw_dir}/{SAMPLES}/test.sh"
        user, here = account.pw_name, not self.workers
        return partial(run_one, self.host, user, program, here=here, deadline=TEST_DEADLINE)


def intended(call: Call, given: Mapping[str, Any], silent: Sequence[str], waiting: Waiting, say: Say) -> Here:
    """What is to become of this machine, by the options of `head init`; `silent` are those that nobody gave.

    Nothing is written, but HTCondor is installed where that is asked for. Raises UsageError, BootstrapError.
    """
    host, tree = hosts.Host(), trees.Tree()
    given = _with_what_was_said(given, silent, tree)
    roles = _roles(given["roles"])
    settings, file = _configuration(call, roles, given["config"], say)
    spec = _spec(host, given, roles, settings)
    place = _place(host, tree, given, spec, file if settings else None)
    if settings is not None and host.is_root() and not given["dry_run"]:
        check_roots_own(settings, file)
    _needs(host, tree, spec, given, waiting)
    told = {**{name: given[name] for name in REMEMBERED}, "config": str(file) if settings else ""}
    intent = replace(steps.intend(host, tree, spec, place), told=told)
    workers = bool(settings) or CENTRAL_MANAGER not in roles
    return Here(host, tree, intent, workers)


def _with_what_was_said(given: Mapping[str, Any], silent: Sequence[str], tree: Tree) -> dict[str, Any]:
    """What was said now, and of the rest what was said the last time: without it, nothing changes."""
    known = tree.book().facts.get("told", {})
    said = {name: known[name] for name in silent if name in known}
    return {**given, **said, "config": known.get("config", "")}


def _roles(text: str) -> tuple[str, ...]:
    asked = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in asked if word not in ROLES]
    if unknown or not asked:
        raise UsageError(f'--roles: "{text}" is not {CENTRAL_MANAGER}, {SUBMIT}, or both with a comma')
    return tuple(role for role in ROLES if role in asked)


def _configuration(call: Call, roles: tuple[str, ...], last: str, say: Say) -> tuple[Settings | None, Path]:
    """updraft.toml, where there is one and this is a central manager: that of the `last` time, if any."""
    if CENTRAL_MANAGER not in roles:
        return None, Path()
    try:
        file = _known_file(call, last).resolve()
    except UsageError:
        if call.asked is not None or last:
            raise
        say("No updraft.toml yet, so no updraft: write one with `updraft init`, then run this again.")
        return None, Path()
    settings = config.load(file)
    check_for_head(settings, file)
    return settings, file


def _known_file(call: Call, last: str) -> Path:
    """The configuration that was asked for; else that of the `last` time; else the one that is found."""
    if call.asked is not None or os.environ.get("UPDRAFT_CONFIG") or not last:
        return call.file
    if not Path(last).is_file():
        raise UsageError(f"{last}, which this head was made with, is not there; name it with --config")
    return Path(last)


def _spec(
    host: Host, given: Mapping[str, Any], roles: tuple[str, ...], settings: Settings | None
) -> HeadSpec:
    series(given["condor"])  # refuses what is no version
    domain, uid_domain = _domains(given["domain"], settings)
    address = _address(host, given, roles)
    public = {} if given["public"] == METADATA else reach_settings(Reach(host=given["public"]))
    # A stable name is the machine's for HTCondor: so its daemons keep theirs where the host's own changes.
    stable = {"NETWORK_HOSTNAME": address} if address and not is_address(address) else {}
    classes = settings.classes.values() if settings else ()
    spec = HeadSpec(
        trust_domain=domain,
        uid_domain=uid_domain,
        condor_host=address or given["manager"] or "$(IP_ADDRESS)",
        users=(_user(given["user"]),) if SUBMIT in roles else (),
        install=Install(version=given["condor"]),
        broker=any(one.reach == "ccb" and not one.ccb for one in classes),
        settings={**stable, **{name: str(value) for name, value in public.items()}},
        roles=roles,
        anonymous_read=given["anonymous_read"],
    )
    if settings is not None:
        spec = replace(spec, job_lease=settings.pool.job_lease)
    return sized(spec, given["machines"])


def _domains(asked: str, settings: Settings | None) -> tuple[str, str]:
    """Trust and UID domain, as `userdata head` chooses them."""
    pool = settings.pool if settings else None
    trust = asked or (pool.trust_domain or f"{pool.name}.pool" if pool else "")
    if not trust:
        raise UsageError("--domain: say the pool's trust domain, as there is no updraft.toml that does")
    return trust, asked or (pool.uid_domain if pool else None) or trust


def _user(asked: str) -> str:
    behind = os.environ.get("SUDO_USER", "")
    return asked or (behind if behind != "root" else "") or "user"


def _address(host: Host, given: Mapping[str, Any], roles: tuple[str, ...]) -> str:
    """The name of this machine, checked; of a submit node alone its central manager's."""
    alone = CENTRAL_MANAGER not in roles
    for flag, value, wanted in (
        ("--central-manager", given["manager"], alone),
        ("--join", given["join"], alone),
        ("--address", given["address"], not alone),
    ):
        if value and not wanted:
            raise UsageError(f"{flag} is not for --roles {','.join(roles)}")
    if alone:
        if not given["manager"]:
            raise UsageError("--central-manager: a submit node alone has to be told where its pool is")
        split_address(given["manager"])
        return ""
    if given["address"]:
        split_address(given["address"])
        check_name(host, given["address"])
    return str(given["address"])


def _place(host: Host, tree: Tree, given: Mapping[str, Any], spec: HeadSpec, file: Path | None) -> Place:
    token = ""
    if CENTRAL_MANAGER not in spec.roles:
        there = tree.read(TOKEN)
        if given["join"] is None and there is None:
            raise UsageError(
                "--join: a submit node alone needs a token of its pool; on the central manager, as root: "
                f"`{token_command(spec.trust_domain)}` prints one; put it here into a file of mode 0600"
            )
        data = given["join"].read_bytes() if given["join"] is not None else there
        token = checked_token((data or b"").decode(errors="replace"), spec.trust_domain)
    unit = unit_text(file) if file else ""
    run = next((line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStart=")), "")
    return Place(unit=unit, run=run, metadata=host.cloud_machine(), public=given["public"], token=token)


def _needs(host: Host, tree: Tree, spec: HeadSpec, given: Mapping[str, Any], waiting: Waiting) -> None:
    """Root, and HTCondor; with --install it is installed now."""
    if given["dry_run"]:
        return
    if not host.is_root():
        raise UsageError("only root may make this machine a head; run it with sudo")
    why = missing(host)
    if not why:
        return
    if not given["installs"]:
        raise UsageError(why)
    with waiting("installing HTCondor"):
        install_condor(host, tree, spec)

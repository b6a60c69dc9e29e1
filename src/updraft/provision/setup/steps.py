"""The order in which a machine becomes a head, and stops being one. What fails half-way is taken back."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from updraft.bootstrap.head.roles import CENTRAL_MANAGER, SUBMIT
from updraft.bootstrap.head.userdata import HeadSpec, sample_files
from updraft.bootstrap.worker.door import DOOR
from updraft.errors import ProblemFound, UsageError
from updraft.provision.setup import applying
from updraft.provision.setup import host as hosts
from updraft.provision.setup import tree as trees
from updraft.provision.setup.book import Book, Entry
from updraft.provision.setup.files import ADDRESS, BY_HTCONDOR, NOTED, START, Place, daemons, wanted_files
from updraft.provision.setup.host import (
    CONDOR,
    UPDRAFT,
    Host,
    Services,
    Standing,
    answer,
    make_account,
    remove_account,
    wait_for,
)
from updraft.provision.setup.tree import IN_THE_WAY, Change, State, Tree

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Intent:
    """All that was decided: the head, its place, what would change, and whether an account is to be made.

    `told` is what the owner has said, for the next time.
    """

    spec: HeadSpec
    place: Place
    book: Book
    changes: Sequence[Change]
    new_account: bool
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Is there a file to write?"""
        return any(one.state is not State.SAME for one in self.changes)

    @property
    def condor_changed(self) -> bool:
        """Does HTCondor have to read something anew?"""
        return any(
            one.state is not State.SAME
            and one.path.startswith(("/etc/condor/", "/etc/systemd/system/condor"))
            for one in self.changes
        )

    @property
    def door_changed(self) -> bool:
        """Does what keeps the metadata address closed have to be started anew?"""
        return any(
            one.state is not State.SAME and one.path.endswith((DOOR, "updraft/door")) for one in self.changes
        )

    @property
    def updraft_changed(self) -> bool:
        """Does updraft's service have to be started anew?"""
        units = (UPDRAFT, "head.conf")
        return any(one.state is not State.SAME and one.path.endswith(units) for one in self.changes)


def intend(host: Host, tree: Tree, spec: HeadSpec, place: Place) -> Intent:
    """Compare what is with what is to be. Raises UsageError and BootstrapError; writes nothing."""
    book = tree.book()
    user = spec.users[0] if spec.users else ""
    account = host.account(user) if user else None
    if user:
        place = replace(place, home=account.pw_dir if account else f"/home/{user}")
    changes = trees.compare(tree, book, wanted_files(spec, place))
    return Intent(spec, place, book, changes, bool(user) and account is None)


def refuse_conflicts(changes: Sequence[Change]) -> None:
    """Raise UsageError where a file is in the way: it names all of them."""
    found = [f"{one.path} is {one.state}" for one in changes if one.state in IN_THE_WAY]
    if found:
        raise UsageError(
            f"{'; '.join(found)}: nothing was changed; move them away, or have them replaced (each with a "
            "backup, which undo brings back) with --replace"
        )


def nothing_to_do(services: Services, intent: Intent) -> bool:
    """Is this machine that head already, at work and for good?"""
    if intent.writes or intent.new_account:
        return False
    units = [CONDOR, *([UPDRAFT] if intent.place.unit else []), *([DOOR] if intent.place.metadata else [])]
    return all(services.active(one) and (services.enabled(one) or not services.managed) for one in units)


class _Back:
    """Steps of taking back, each of which stands alone: what fails is said, and the rest is done."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.failed: list[str] = []

    def do(self, step: Callable[[], object]) -> None:
        """Carry one out."""
        try:
            step()
        except Exception as error:  # whatever it is, it must not keep the others from being done
            self.failed.append(str(error))
            self._say(f"not taken back: {error}")


def carry_out(host: Host, tree: Tree, services: Services, intent: Intent, say: Say) -> None:
    """Write, start, and wait until HTCondor answers. Raises what went wrong, once all is as it was; what of
    it can't be taken back is said."""
    services.check_own()
    spec, before = intent.spec, services.standing()
    facts = dict(intent.book.facts) or {"at": round(time.time()), "before": before}
    facts["told"] = dict(intent.told)
    there = [path for path in (*BY_HTCONDOR, *NOTED) if tree.read(path) is not None]
    back: list[Callable[[], object]] = []
    try:
        if intent.new_account:
            user = spec.users[0]
            make_account(host, user)
            facts["accounts"] = [*_accounts(facts), user]
            back.append(partial(_drop_account, host, user))
            _check_home(host, user, intent.place.home)
        back.append(applying.apply(tree, intent.book, intent.changes, facts))
        verify(host, spec)
        back[:0] = _starts(services, before)  # last of all: on the files that are back
        back += reversed(_stops(services, before))
        _start(host, services, intent, say)
        made = (*BY_HTCONDOR, *NOTED, ADDRESS)
        _remember_made(tree, [path for path in made if path not in there])
    except BaseException:
        way_back = _Back(say)
        for step in reversed(back):  # the services first: nothing may run on files that go
            way_back.do(step)
        raise


def _accounts(facts: Mapping[str, Any]) -> list[str]:
    """The accounts that were made for this head, each time that it was asked for with another user."""
    return [str(name) for name in (*facts.get("accounts", ()), facts.get("account", "")) if name]


def _drop_account(host: Host, user: str) -> None:
    """Remove an account that was made by now. Raises ProblemFound where it has to stay."""
    if why := remove_account(host, user):
        raise ProblemFound(why)


def _check_home(host: Host, user: str, home: str) -> None:
    made = host.account(user)
    if made is not None and made.pw_dir != home:
        raise UsageError(
            f"the home of {user} was made at {made.pw_dir}: run this again, it is found there now"
        )


def verify(host: Host, spec: HeadSpec) -> None:
    """Does HTCondor read what was written? Raises UsageError where another file overrides it."""
    want = {"TRUST_DOMAIN": spec.trust_domain, "UID_DOMAIN": spec.uid_domain}
    if "$" not in spec.condor_host:
        want["CONDOR_HOST"] = spec.condor_host
    for name, value in want.items():
        said = _setting(host, name)
        if said.lower() != value.lower():
            raise UsageError(f'HTCondor reads {name} as "{said}", not "{value}": {_where(host, name)}')
    running = _setting(host, "DAEMON_LIST").upper().replace(",", " ").split()
    needed = [name.removeprefix("condor_").upper() for name in daemons(spec.roles)]
    missing = [name for name in needed if name not in running]
    if missing:
        raise UsageError(f"HTCondor's DAEMON_LIST lacks {', '.join(missing)}: {_where(host, 'DAEMON_LIST')}")
    interface = _setting(host, "NETWORK_INTERFACE")
    if interface.startswith("127."):
        raise UsageError(
            f"HTCondor is told to use {interface} only, where no worker reaches it: "
            + _where(host, "NETWORK_INTERFACE")
        )


def _setting(host: Host, name: str) -> str:
    done = host.run(["condor_config_val", name])
    if done.returncode == 127:
        raise UsageError("condor_config_val can't be run: install HTCondor's tools")
    return done.stdout.strip() if done.returncode == 0 else ""


def _where(host: Host, name: str) -> str:
    """Where HTCondor has a setting from, as a remedy."""
    lines = host.run(["condor_config_val", "-v", name]).stdout.splitlines()
    at = next((line.partition("at:")[2].strip() for line in lines if "at:" in line), "")
    return f"it is set at {at}; take it out there" if at else "take it out of HTCondor's other files"


def _start(host: Host, services: Services, intent: Intent, say: Say) -> None:
    spec = intent.spec
    services.reload()
    ran = services.active(CONDOR)
    again = ran and intent.condor_changed
    say("Restarting HTCondor." if again else "Starting HTCondor.")
    services.enable(CONDOR)
    services.start(CONDOR, again=again)
    probe = ["condor_q", "-totals"] if SUBMIT in spec.roles else ["condor_status", "-collector"]
    wait_for(host, services, daemons(spec.roles), partial(answer, host, probe))
    if CENTRAL_MANAGER not in spec.roles:
        wait_for(host, services, (), partial(_not_taken, host))
    if intent.place.metadata:
        services.enable(DOOR)
        services.start(DOOR, again=services.active(DOOR) and intent.door_changed)
    if intent.place.unit:
        say("Starting updraft.")
        services.enable(UPDRAFT)
        services.start(UPDRAFT, again=services.active(UPDRAFT) and intent.updraft_changed)


def _not_taken(host: Host) -> str:
    """Why the pool doesn't show this submit node; "" where it does."""
    mine = f'Machine == "{_setting(host, "FULL_HOSTNAME")}"'
    done = host.run(["condor_status", "-schedd", "-constraint", mine, "-af", "Name"], timeout=15)
    if done.returncode != 0:
        return "its central manager does not answer"
    return "" if done.stdout.strip() else "the pool does not show this submit node: is its token this pool's?"


_ENDING = (UPDRAFT, CONDOR, DOOR)


def _stops(services: Services, before: Standing) -> list[Callable[[], object]]:
    """What ends them, and has them start with the machine only where they did before."""
    lasting = {unit: bool(before.get(unit, (False, False))[1]) for unit in _ENDING}
    ends = [partial(services.stop, unit) for unit in _ENDING]
    return [*ends, *(partial(services.enable, unit, on=on) for unit, on in lasting.items())]


def _starts(services: Services, before: Standing) -> list[Callable[[], object]]:
    """What starts those again that ran before, the last step first."""
    ran = [unit for unit in (DOOR, UPDRAFT, CONDOR) if before.get(unit, (False, False))[0]]
    return [*(partial(services.start, unit) for unit in ran), services.reload]


def _remember_made(tree: Tree, paths: Sequence[str]) -> None:
    """Add to the book what HTCondor and the start script made; it goes with the head."""
    book = tree.book()
    files = dict(book.files)
    for path in paths:
        data = tree.read(path)
        if path not in files and (data is not None or path in NOTED):
            files[path] = Entry(trees.digest(data or b""), anyhow=path in (ADDRESS, *NOTED), made=True)
    tree.put(tree.manifest, Book(files, book.folders, book.facts).text().encode(), 0o600)


def undo(host: Host, tree: Tree, services: Services, say: Say) -> list[str]:
    """Stop what was started, take back what is as it was written; returns sentences on what stays.

    Each step is tried. Raises ProblemFound where some failed: the book then knows what is left to do.
    """
    book = tree.book()
    before = {unit: (bool(runs), bool(on)) for unit, (runs, on) in dict(book.facts.get("before", {})).items()}
    say("Stopping updraft and HTCondor.")
    way, stays = _Back(say), list[str]()
    for step in _stops(services, before):
        way.do(step)
    way.do(lambda: stays.extend(_files_back(tree, book)))
    stays += filter(None, (remove_account(host, account) for account in _accounts(book.facts)))
    for step in reversed(_starts(services, before)):
        way.do(step)
    if way.failed:
        for line in stays:
            say(line)
        raise ProblemFound(
            f"{way.failed[0]}; the rest is taken back, and `updraft head undo` tries this again"
        )
    applying.undo(tree, tree.book())  # nothing is left to know
    return stays


def _files_back(tree: Tree, book: Book) -> list[str]:
    """Sentences on what stays of the files, and where copies of what people wrote are; the book is kept."""
    changed = applying.undo(tree, book, keep=True)
    copies = [f"{path} is what was put aside, and stays there" for path in applying.aside(tree)]
    return [*(f"{path} was changed since, and stays" for path in changed), *copies]


def start_command() -> str:
    """What starts the head by hand, where nothing manages services."""
    return f"sh {START} start"


def give_samples(user: str) -> Iterator[tuple[str, bool]]:
    """Put the sample jobs into this user's home: each path, and whether it is new; what is there stays.

    Raises UsageError where there is no such user, or what can't be written.
    """
    account, tree = hosts.Host().account(user), trees.Tree()
    if account is None:
        raise UsageError(f"there is no user {user} here: make the account first")
    for entry in sample_files(user, account.pw_dir):
        path = entry["path"]
        try:
            free = tree.is_free(path)
            if free:
                tree.put(path, entry["content"].encode(), int(entry["permissions"], 8), user)
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error
        yield path, free

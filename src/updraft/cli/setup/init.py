"""`init`: writes the first updraft.toml, and says what a pool that is already there needs."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.app.call import Call
from updraft.cli.verbs import VERBS
from updraft.config import USUAL_PLACES
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.cli.setup.asking import Asker
    from updraft.cli.setup.cloud import Seen
    from updraft.provision.first_settings import Wanted

MACHINES = "10"
MANY_FLAVORS = 20
FLAGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--pool-name", {"metavar": "NAME", "help": "The pool's name: a tag on every machine."}),
    ("--driver", {"metavar": "NAME", "help": "The kind of cloud: ec2, openstack, local, fake."}),
    ("--cloud", {"metavar": "NAME", "help": "What the file calls this cloud. Default: as its driver."}),
    ("--endpoint", {"metavar": "ADDRESS", "help": "The cloud's address."}),
    ("--region", {"metavar": "NAME", "help": "The cloud's region."}),
    ("--profile", {"metavar": "NAME", "help": "The profile that has the credentials."}),
    ("--os-cloud", {"metavar": "NAME", "help": "The cloud's name in clouds.yaml (driver openstack)."}),
    ("--credential-file", {"metavar": "PATH", "help": "The file that has the credential (driver local)."}),
    ("--set", {"metavar": "KEY=VALUE", "multiple": True, "help": "Any other setting of the driver."}),
    ("--image", {"metavar": "IMAGE", "help": "The workers' image, by name or id."}),
    ("--flavor", {"metavar": "NAME", "multiple": True, "help": "A flavor or pattern; may be repeated."}),
    ("--market", {"type": click.Choice(["on-demand", "spot"]), "multiple": True,
                  "help": "What to buy; both are fine."}),
    ("--key", {"metavar": "NAME", "help": "The key pair; made if it isn't there. `none`: no key pair."}),
    ("--key-file", {"metavar": "PATH", "help": "Where a private key that is made is saved. ~/.ssh/NAME.pem"}),
    ("--machines", {"metavar": "N", "help": f"Machines at one time; none: no limit. Default: {MACHINES}."}),
    ("--cores", {"metavar": "N", "help": "Cores at one time. Default: no limit."}),
    ("--cost-per-hour", {"metavar": "X", "help": "Cost of all machines together. Default: no limit."}),
    ("--min", {"metavar": "N", "type": click.IntRange(0), "help": "Machines that are always kept."}),
    ("--max", {"metavar": "N", "type": click.IntRange(0), "help": "Machines of the class at one time."}),
    ("--idle-limit", {"metavar": "TIME", "help": "How long a machine may be idle, as in 40m. Default: 10m."}),
    ("--collector", {"metavar": "HOST", "help": "The collector, where updraft doesn't run on the head."}),
    ("--trust-domain", {"metavar": "NAME", "help": "The TRUST_DOMAIN of the pool. Default: this machine's."}),
    ("--token", {"metavar": "PATH", "help": "The controller's token, where updraft isn't on the head."}),
    ("--state-dir", {"metavar": "PATH", "help": "Where the ledger is kept. Default: /var/lib/updraft."}),
    ("--pool", {"type": click.Choice(["new", "existing"]), "help": "Is the pool there already?"}),
)  # fmt: skip


def _flags(command: Callable[..., None]) -> Callable[..., None]:
    for flag, how in reversed(FLAGS):
        command = click.option(flag, **how)(command)
    return command


@click.command()
@_flags
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--pool-lines", is_flag=True, help="Only print what an existing pool needs; write nothing.")
@click.pass_obj
def init(call: Call, /, force: bool, pool_lines: bool, **given: Any) -> None:
    """Write a commented updraft.toml: ask at a terminal, take flags elsewhere.

    What a flag says isn't asked. Lists to choose from come from the cloud itself. The key pair is made if
    there is none. Credentials are never asked for nor written: they stay in the cloud's standard places.
    `--pool existing` prints the exact lines for a pool that is already there, and how to undo them.
    """
    from updraft.cli.setup.asking import Asker, somebody_is_there

    asker = Asker(person=somebody_is_there())
    if pool_lines:
        click.echo(_pool_lines(asker, given), nl=False)
        return
    path = call.target
    if path.exists() and not force:
        raise UsageError(f"{path} is there already; write over it with --force, or name another by --config")
    answered = _answers(asker, given)
    _write(asker, path, answered, given)
    _farewell(path, answered, new_pool=given["pool"] == "new" or asker.person)


@dataclass(frozen=True, slots=True)
class Answered:
    """All that was answered, what the cloud said, the key pair, and what an existing pool needs."""

    wanted: "Wanted"
    seen: "Seen"
    key: str
    pool_lines: str


def _answers(asker: "Asker", given: Mapping[str, Any]) -> Answered:
    """Everything, in the order in which a person thinks of it."""
    from updraft.cli.setup import cloud as init_cloud
    from updraft.provision.first_settings import Wanted

    pool, existing = _pool(asker, given)
    lines = _pool_lines(asker, given) if existing else ""
    driver = init_cloud.choose_driver(asker, given["driver"])
    cloud = given["cloud"] or driver
    settings = init_cloud.driver_settings(asker, driver, _driver_flags(given))
    narrowed = init_cloud.narrowed(driver, settings, given["flavor"])
    seen = init_cloud.look(cloud, pool["name"], driver, narrowed)
    if seen.error:
        asker.say(f"the cloud doesn't answer: {seen.error}")
        if asker.person and not asker.yes("Go on without its lists?", default=False):
            raise click.Abort
    image, image_name = _image(asker, given["image"], seen)
    flavors = _flavors(asker, given["flavor"], seen)
    key = ""
    if init_cloud.has_keys(driver):
        key = init_cloud.choose_key(asker, seen, pool["name"], given["key"])
    elif given["key"] not in (None, init_cloud.NO_KEY):
        raise UsageError(f"--key: machines of the driver {driver} have no key pairs; leave it out")
    wanted = Wanted(
        pool=pool,
        cloud=cloud,
        driver=driver,
        settings={
            **init_cloud.narrowed(driver, settings, flavors),
            **({init_cloud.KEY_SETTING: key} if key else {}),
        },
        image=image,
        image_name=image_name,
        flavors=flavors,
        limits=_limits(asker, given),
        worker=_worker(given, pool),
    )
    return Answered(wanted, seen, key, lines)


def _pool(asker: "Asker", given: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The table [pool], and whether the pool is there already."""
    from updraft.cli.setup.asking import Question
    from updraft.config.values.checks import checked_pool_name
    from updraft.provision.pool_needs import lease, of_this_machine

    def name(text: str) -> str:
        try:
            return checked_pool_name(text)
        except ValueError as error:
            raise UsageError(f"--pool-name: {error}") from error

    here = of_this_machine()
    question = Question("--pool-name", "What is the pool called?")
    table: dict[str, Any] = {
        "name": asker.text(question, given["pool_name"], socket.gethostname().split(".")[0], name)
    }
    for key in ("collector", "trust_domain", "token", "state_dir"):
        if given[key] is not None:
            table[key] = given[key]
    length = lease(here)
    if length is not None:
        table["job_lease"] = length
    existing = given["pool"] == "existing"
    if given["pool"] is None:
        existing = asker.yes("Is the HTCondor pool there already?", default=bool(here)) and asker.person
    return table, existing


def _driver_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    import tomllib

    found = {
        key: given[key]
        for key in ("endpoint", "region", "profile", "os_cloud", "credential_file")
        if given[key] is not None
    }
    for text in given["set"]:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write KEY=VALUE")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:  # a plain text needs no quotes
            found[key.strip()] = value
    return found


def _image(asker: "Asker", given: str | None, seen: "Seen") -> tuple[str, str]:
    """The image as the file names it, and its name."""
    from updraft.cli.setup.asking import Question
    from updraft.cli.setup.cloud import find_image, image_choices

    choices = image_choices(seen.images)
    hint = f"such as {choices[0].value}" if choices else "a name or id of the cloud"
    question = Question("--image", "Which image do the workers boot (number, id, name or a part)?", hint)
    if not choices:
        if asker.person and given is None and not seen.error:
            asker.say("The cloud lists no image of yours: give the id of one that you may use.")
        return _plain(asker, question, given), ""
    image = asker.one_of(question, given, None, choices, partial(find_image, seen))
    return image, next((one.names[0] for one in choices if one.value == image), "")


def _plain(asker: "Asker", question: Any, given: str | None) -> str:
    def check(text: str) -> str:
        if not text.strip():
            raise UsageError(f"{question.flag}: it has a name")
        return text.strip()

    return asker.text(question, given, None, check)


def _flavors(asker: "Asker", given: tuple[str, ...], seen: "Seen") -> tuple[str, ...]:
    from updraft.cli.setup.asking import Question
    from updraft.cli.setup.cloud import flavor_choices

    choices = flavor_choices(seen.offers)
    words = "Which flavors may be bought (numbers, names or patterns, with commas)?"
    # Of very many none is a good guess: the cheapest is too small for most jobs.
    default = "*" if len(choices) <= MANY_FLAVORS or not asker.person else None
    return asker.some_of(Question("--flavor", words, "such as 1, 4 or m5.*"), given, default, choices)


def _limits(asker: "Asker", given: Mapping[str, Any]) -> dict[str, Any]:
    from updraft.cli.setup.asking import Question

    def number(flag: str, kind: type[int] | type[float]) -> Callable[[str], int | float | None]:
        def check(text: str) -> int | float | None:
            if text.strip().lower() in ("", "none"):
                return None
            try:
                value = kind(text)
            except ValueError as error:
                raise UsageError(f'{flag}: "{text}" is no number; write one, or none for no limit') from error
            if value < 0:
                raise UsageError(f"{flag}: {text} is below 0")
            return value

        return check

    asked: tuple[tuple[str, str, str, type[int] | type[float]], ...] = (
        ("machines", "At most how many machines at one time (none: no limit)?", MACHINES, int),
        ("cores", "At most how many cores (empty: no limit)?", "", int),
        ("cost_per_hour", "At most what cost per hour (empty: no limit)?", "", float),
    )
    found: dict[str, Any] = {}
    for key, words, default, kind in asked:
        flag = f"--{key.replace('_', '-')}"
        found[key] = asker.text(Question(flag, words), given[key], default, number(flag, kind))
    return found


def _worker(given: Mapping[str, Any], pool: Mapping[str, Any]) -> dict[str, Any]:
    """What of the class is said by flags; patience that the pool's job lease asks for."""
    from updraft.config.values.units import seconds
    from updraft.provision.first_settings import HOUR

    found = {key: given[key] for key in ("min", "max", "idle_limit") if given[key] is not None}
    if given["market"]:
        found["markets"] = list(given["market"])
    if "job_lease" in pool and seconds(pool["job_lease"]) > HOUR:
        found["head_gone_after"] = pool["job_lease"]
    return found


def _write(asker: "Asker", path: Path, answered: Answered, given: Mapping[str, Any]) -> None:
    """The key pair, where it has to be made, and the file."""
    from updraft.cli.setup.cloud import make_key
    from updraft.provision.first_settings import check, text_of, write

    text, key = text_of(answered.wanted), answered.key
    check(path, text)
    made = bool(key and key not in answered.seen.key_pairs and not answered.seen.error)
    if made:
        file = Path(given["key_file"] or f"~/.ssh/{key}.pem").expanduser()
        make_key(answered.seen, key, file)
        asker.say(f"The key pair {key} is made; its private key is {file}.")
    write(path, text)
    if made:
        _note_key(asker, path, answered.wanted.cloud, key)


def _note_key(asker: "Asker", path: Path, cloud: str, key: str) -> None:
    """Write into the ledger that the key pair is updraft's: no cloud says so for every kind of them."""
    from updraft.config import place
    from updraft.core.leftovers import Kind
    from updraft.ledger.made import note_made

    why = note_made(place(path).ledger, cloud, Kind.KEY_PAIR, key)
    if why:
        asker.say(f"`updraft leftovers` won't know of the key pair: {why}")


def _farewell(path: Path, answered: Answered, *, new_pool: bool) -> None:
    """What to do next."""
    click.echo(f"{path} is written.")
    if answered.pool_lines:
        click.echo(f"\nWhat the pool needs, to be followed in order:\n\n{answered.pool_lines}", nl=False)
        return
    named = "" if str(path) in USUAL_PLACES else f" --config {path}"
    steps = [
        (f"updraft{named} check", "is all of it right?"),
        (f"updraft{named} plan", "what would be done now?"),
    ]
    if new_pool and "userdata" in VERBS:
        steps.insert(0, (f"updraft{named} head launch NAME", "a head there, with HTCondor and updraft on it"))
        steps.insert(1, (f"updraft{named} userdata head", "or its user-data, to launch it yourself"))
    started = "updraft service install --now" if "service" in VERBS else f"updraft{named} run"
    steps.append((started, "let it work"))
    width = max(len(command) for command, _ in steps)
    click.echo("\nNext:")
    for command, why in steps:
        click.echo(f"  {command:<{width}}   {why}")


def _pool_lines(asker: "Asker", given: Mapping[str, Any]) -> str:
    from updraft.cli.setup.asking import Question
    from updraft.errors import BootstrapError
    from updraft.provision.pool_needs import instructions, of_this_machine

    def check(text: str) -> str:
        try:
            instructions(text, elsewhere=False)
        except BootstrapError as error:
            raise UsageError(f"--trust-domain: {error}") from error
        return text

    question = Question(
        "--trust-domain",
        "TRUST_DOMAIN of the pool?",
        "what `condor_config_val TRUST_DOMAIN` says on the head",
    )
    default = of_this_machine().get("TRUST_DOMAIN")
    trust_domain = asker.text(question, given["trust_domain"], default, check)
    return instructions(trust_domain, elsewhere=given["collector"] is not None)

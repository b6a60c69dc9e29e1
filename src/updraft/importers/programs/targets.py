"""What both programs have under names of their own: where its value goes, and what is to be said of it."""

from dataclasses import dataclass, replace

from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Kind, Rule


@dataclass(frozen=True, slots=True)
class Target:
    """A setting of updraft's that some key becomes; see `Rule` for the fields."""

    name: str
    becomes: str
    why: str
    kind: Kind = Kind.TEXT

    def of(self, section: str, key: str, default: str | None = None, *, more: str = "") -> Rule:
        """The rule of the key that has its value; `more` is said after what is said of every one."""
        why = self.why + more
        return Rule(section, key, Fate.TAKEN, why, self.name, self.becomes, self.kind, default)

    def because(self, why: str) -> "Target":
        """The same with other words."""
        return replace(self, why=why)


def _worker(name: str, why: str, kind: Kind = Kind.TEXT, setting: str = "") -> Target:
    return Target(name, f"[classes.default] {setting or name}", why, kind)


FLAVOR = _worker(
    "flavor",
    "more than one may stand here, and patterns: the cheapest that fits is bought",
    setting="flavors",
)
MINIMUM = _worker("min", "kept even when nothing waits", Kind.COUNT)
MAXIMUM = _worker("max", "workers only: the head and other people's machines don't count", Kind.COUNT)
IDLE_LIMIT = _worker(
    "idle_limit",
    "counted from the end of the last job; the machine goes only if the pool says that it is empty",
    Kind.SECONDS,
)
BOOT_DEADLINE = _worker(
    "boot_deadline",
    "no machine has longer to join; the deadline in force is learned from real boots",
    Kind.SECONDS,
)
SLOTS = _worker(
    "slots",
    "so many equal slots, never more jobs on one machine; no more than the flavor has cores. ",
    Kind.COUNT,
)
IMAGE = _worker("image", "an id or a name: `updraft images` lists them")
KEY_NAME = Target("key_name", "[clouds.ec2] key_name", "the key pair for logging in to the workers")
ENDPOINT = Target("endpoint", "[clouds.ec2] endpoint", "the address of the EC2 endpoint", Kind.ADDRESS)
LAYER = Target("layer", "[[classes.default.layers]]", "what is the site's own in it", Kind.USER_DATA)


def no_lifetime(program: str) -> tuple[str, Fate, str]:
    """The note that the program let machines live for ever."""
    text = f'{program} had none. A machine closes to new jobs after its lifetime, "7d", and is replaced when '
    return "machines' lifetime", Fate.REPLACED, f"{text}its jobs are done"

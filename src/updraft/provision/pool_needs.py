"""What a pool that is already there needs for updraft: the lines, the tokens, and how to undo it."""

from collections.abc import Iterator, Mapping

from updraft.bootstrap.condor_config import domain, lines
from updraft.bootstrap.head.identities import OWN_SETTING, WORKER_USER, ended_lines, identity_rule
from updraft.bootstrap.head.userdata import SIGNING_KEY, worker_rights
from updraft.bootstrap.machine import CONFIG_DIR
from updraft.condor.process.tools import Tools
from updraft.config.values.units import spell
from updraft.errors import PoolError

CONFIG_FILE = f"{CONFIG_DIR}/90-updraft.conf"
KEY_FILE = f"/etc/condor/passwords.d/{SIGNING_KEY}"
CONTROLLER = "updraft"
CONTROLLER_RIGHTS = ("READ", "WRITE", "ADMINISTRATOR", "DAEMON", "ADVERTISE_STARTD", "ADVERTISE_MASTER")
WORKER_RIGHTS = ("ADVERTISE_STARTD", "ADVERTISE_MASTER")
ASKED = ("TRUST_DOMAIN", "JOB_DEFAULT_LEASE_DURATION")


def of_this_machine() -> Mapping[str, str]:
    """What HTCondor's configuration on this machine says of ASKED; empty where there is no HTCondor."""
    tools = Tools((), {}, None)
    found: dict[str, str] = {}
    for name in ASKED:
        try:
            found[name] = tools.setting(name)
        except PoolError:
            continue
    return found


def lease(said: Mapping[str, str]) -> str | None:
    """The pool's job lease as updraft.toml writes it; None where it isn't a plain number of seconds."""
    text = said.get("JOB_DEFAULT_LEASE_DURATION", "")
    return spell(float(text)) if text.isdigit() else None


def settings(trust_domain: str, *, elsewhere: bool) -> str:
    """The lines of HTCondor's configuration; `elsewhere` is a controller that isn't on the head."""
    controller = f"{CONTROLLER}@{trust_domain}"
    added = {
        name: f"{_kept(name, _ADVERTISE)} {one}{' ' + controller if elsewhere else ''}"
        for name, one in worker_rights(trust_domain).items()
    }
    if elsewhere:
        added["COLLECTOR.ALLOW_ADMINISTRATOR"] = f"{_kept('COLLECTOR.ALLOW_ADMINISTRATOR')} {controller}"
        added["COLLECTOR.ALLOW_DAEMON"] = f"{_kept('COLLECTOR.ALLOW_DAEMON')} {controller}"
        added["QUEUE_SUPER_USERS"] = f"$(QUEUE_SUPER_USERS), {CONTROLLER}"
    rule = identity_rule(trust_domain)
    if elsewhere:
        return lines({**added, **rule})
    return lines({**added, **rule, OWN_SETTING: True}) + ended_lines()


_ADVERTISE = "ALLOW_DAEMON"  # what counts where nothing says who may advertise


def _kept(name: str, fallback: str = "") -> str:
    """A reference to what the pool's configuration has so far, so that nobody loses a right."""
    plain = name.removeprefix("COLLECTOR.")
    inner = f"$({plain}:$({fallback}))" if fallback else f"$({plain})"
    return f"$({name}:{inner})"


def instructions(trust_domain: str, *, elsewhere: bool) -> str:
    """All of it, to be followed by hand, in order, or run as a script: what comes after it is in comments."""
    domain("trust domain", trust_domain)
    return "\n".join(_steps(trust_domain, elsewhere)) + "\n"


def _steps(trust_domain: str, elsewhere: bool) -> Iterator[str]:
    yield "# 1. On the head, as root: the key that signs workers' tokens, and nothing else"
    yield f"umask 077; mkdir -p {KEY_FILE.rpartition('/')[0]}"
    yield f"[ -s {KEY_FILE} ] || head -c 64 /dev/urandom | base64 -w 0 >{KEY_FILE}"
    yield ""
    yield "# 2. On the head: who may do what, beside those who may already"
    yield f"cat >{CONFIG_FILE} <<'EOF'"
    yield "# for updraft: workers' tokens are good for advertising themselves, and for nothing else"
    yield settings(trust_domain, elsewhere=elsewhere) + "EOF"
    yield "chmod 644 " + CONFIG_FILE
    yield "condor_reconfig"
    yield ""
    if elsewhere:
        yield "# 3. The controller's token: make it on the head, carry it to the machine with updraft (mode"
        yield "#    0600, in a directory with no other token), and name it in [pool] as token"
        yield _create(CONTROLLER, trust_domain, CONTROLLER_RIGHTS)
        yield f"#    Carry {KEY_FILE} there too: updraft signs its workers' tokens with it"
    else:
        yield "# 3. Tokens: none for updraft itself, which runs here as root and makes its workers' tokens."
        yield "#    This makes one as it does, good for a minute, to see that the key is right:"
        yield _create(f"{WORKER_USER}test", trust_domain, WORKER_RIGHTS, f"-key {SIGNING_KEY} -lifetime 60")
    yield ""
    yield "# 4. Start updraft, and see that all of it works:"
    yield "# updraft service install --now"
    yield "# updraft check"
    yield ""
    yield "# To undo it: end the machines first; with the key, every worker's token is void"
    yield "# updraft destroy --wait; systemctl disable --now updraft"
    yield f"# rm {CONFIG_FILE} {KEY_FILE}; condor_reconfig"


def _create(user: str, trust_domain: str, rights: tuple[str, ...], more: str = "") -> str:
    authz = " ".join(f"-authz {right}" for right in rights)
    return f"condor_token_create -identity {user}@{trust_domain} {authz} {more}".rstrip()

"""What a machine's console shows now, asked of its cloud."""

from updraft.app.call import Call

DEADLINE = 20.0


def live_console(call: Call, cloud: str, machine: str) -> tuple[str, str]:
    """The end of a machine's console without what looks like a secret, and why there is none ("" if any).

    It is an image's own text: whoever shows it makes it printable.
    """
    from updraft.app.wiring import make_driver
    from updraft.checks.asking import ask
    from updraft.config import load
    from updraft.errors import ConfigError
    from updraft.ledger.secrets import scrub

    try:
        settings = load(call.file)
    except ConfigError:
        return "", "updraft.toml can't be read: `updraft config check` says why"
    if cloud not in settings.clouds:
        return "", f"updraft.toml has no cloud {cloud} any more"
    question = {"console": lambda: make_driver(settings, cloud, settings.clouds[cloud]).console(machine)}
    answer = ask(question, DEADLINE)["console"]
    if answer.error is not None:
        return "", str(answer.error)
    return (scrub(answer.value), "") if answer.value.strip() else ("", "its cloud shows nothing of it yet")

"""What `updraft.toml` says of `updraft metrics`: where it listens, who is told of alarms. [monitoring]"""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from updraft.config.tables.part import Part
from updraft.config.values.checks import tuple_of_one
from updraft.config.values.units import Duration

_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}@[A-Za-z0-9][A-Za-z0-9.-]{0,254}")
_URL = re.compile(r"https?://[A-Za-z0-9\[][^\s@]{0,2000}")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::([0-9]{1,5}))?")
MAIL_PORT = 25
_FORMS = '"exec:/PROGRAM", "webhook:https://…", "webhook:/FILE" or "mail:NAME@HOST"'


def checked_entry(text: str) -> str:
    """One of `notify`. What is wrong with it is said without it: the address of a webhook is a secret."""
    kind, colon, target = text.partition(":")
    if not colon or kind not in ("exec", "webhook", "mail"):
        raise ValueError(f"an entry of notify is {_FORMS}")
    if not target.isprintable():
        raise ValueError("an entry of notify has a sign in it that can't be printed")
    if kind == "exec" and not target.startswith("/"):
        raise ValueError(
            'the program of an "exec:" is named with its whole path, as in "exec:/usr/bin/logger"'
        )
    if kind == "webhook" and not (target.startswith("/") or _URL.fullmatch(target)):
        raise ValueError(
            'a "webhook:" has a URL without a user in it, or the path of a file (mode 0600) that has the URL'
        )
    if kind == "mail" and not _ADDRESS.fullmatch(target):
        raise ValueError('a "mail:" has one address, as in "mail:ops@example.org"')
    return text


def address(text: str) -> tuple[str, int]:
    """Host and port of "HOST:PORT". Raises ValueError for what is none."""
    found = _SERVER.fullmatch(text)
    if found is None or found[2] is None or int(found[2]) > 65535:
        raise ValueError(f'"{text}" is no address; write it as in "127.0.0.1:9877"')
    return found[1].strip("[]"), int(found[2])


def _checked_address(text: str) -> str:
    address(text)
    return text


def _checked_server(text: str) -> str:
    found = _SERVER.fullmatch(text)
    if text and (found is None or int(found[2] or 0) > 65535):
        raise ValueError(f'"{text}" is no mail server; write it as in "mail.example.org" or with ":PORT"')
    return text


def _checked_sender(text: str) -> str:
    if text and not _ADDRESS.fullmatch(text):
        raise ValueError(f'"{text}" is no address of mail; write it as in "updraft@example.org"')
    return text


class Monitoring(Part):
    """Figures and alarms, by `updraft metrics`: a process of its own, which the daemon knows nothing of."""

    listen: Annotated[str, AfterValidator(_checked_address)] = "127.0.0.1:9877"
    """Where `updraft metrics` answers Prometheus. Whoever reaches it can read the figures: no login is asked
    for, so let only the Prometheus server reach it."""
    notify: Annotated[
        tuple[Annotated[str, AfterValidator(checked_entry)], ...], BeforeValidator(tuple_of_one)
    ] = ()
    """Who is told when the controller doesn't act, a budget is (nearly) spent, boots fail, credentials end
    soon, or a job was lost: "exec:/PROGRAM ARGUMENTS" (the message is on its stdin), "webhook:https://…" or
    "webhook:/FILE" with the URL in a file that only its owner can read, "mail:NAME@HOST"."""
    notify_pause: Duration = 600.0
    """Of each kind of alarm, one message at most is sent in this time; what comes up meanwhile waits."""
    notify_again: Annotated[Duration, Field(gt=0)] = 86400.0
    """An alarm that still stands is told again after this time."""
    mail_server: Annotated[str, AfterValidator(_checked_server)] = ""
    """Host (and port, if not 25) of the SMTP server that mail is handed to, without login. Empty: by this
    machine's /usr/sbin/sendmail."""
    mail_from: Annotated[str, AfterValidator(_checked_sender)] = ""
    """The sender of mail. Empty: updraft at this machine's name."""

    @property
    def server(self) -> tuple[str, int] | None:
        """Host and port of the mail server; None for this machine's own sendmail."""
        found = _SERVER.fullmatch(self.mail_server)
        return None if found is None else (found[1].strip("[]"), int(found[2] or MAIL_PORT))

"""The ways to tell people: a program that is run, a web page that is called, a mail.

Each takes a message and is done or raises `NotSent`, within its deadline. The error says what went wrong and
never where to: an address of a webhook is as good as a password.
"""

import contextlib
import http.client
import json
import os
import shlex
import signal
import smtplib
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Any

from updraft.errors import NotSent
from updraft.metrics.alarms.watching import Message

DEADLINE = 20.0
"""Seconds for a program; and for each answer of a server."""
SENDMAIL = "/usr/sbin/sendmail"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Deliver = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class MailSettings:
    """Where mail is handed in: a `server` (host, port), None for the machine's own sendmail; and by whom."""

    server: tuple[str, int] | None
    sender: str


@dataclass(frozen=True, slots=True)
class Receiver:
    """One of `notify`: its `kind` (exec, webhook, mail), and what delivers a message to it."""

    kind: str
    deliver: Deliver


def receiver(entry: str, mail: MailSettings) -> Receiver:
    """What an entry of `notify` means, which the configuration has checked: `kind:target`."""
    kind, _, target = entry.partition(":")
    make: dict[str, Callable[[], Deliver]] = {
        "exec": lambda: lambda message: execute(target, message),
        "webhook": lambda: lambda message: call(target, message),
        "mail": lambda: lambda message: send_mail(target, mail, message),
    }
    return Receiver(kind, make[kind]())


def execute(command: str, message: Message, deadline: float = DEADLINE) -> None:
    """Run a program, no shell, with the message on its stdin; at the deadline it ends with its children."""
    environment = {"PATH": _PATH, "UPDRAFT_POOL": message.pool, "UPDRAFT_EVENT": message.kind}
    try:
        child = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotSent(f"the program can't be started ({_said(error)})") from error
    try:
        child.communicate(body(message).encode(), timeout=deadline)
    except subprocess.TimeoutExpired as error:
        raise NotSent(f"the program did not end in {deadline:g} s") from error
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if child.returncode != 0:
        raise NotSent(f"the program ended with code {child.returncode}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Whoever answers does not choose where else the message goes."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def call(target: str, message: Message, deadline: float = DEADLINE) -> None:
    """POST the message as JSON to a URL, or to the one in a file that is named."""
    document = {
        "text": "\n".join((message.subject, *message.texts[1:])),  # what chats show of it
        "pool": message.pool,
        "event": message.kind,
        "at": message.at,
        "alarms": message.texts,
    }
    try:
        request = urllib.request.Request(  # noqa: S310 (the scheme was checked with the configuration)
            _url(target), json.dumps(document).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=deadline) as answer:
            code = answer.status
    except urllib.error.HTTPError as error:
        error.close()
        raise NotSent(f"it answered {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotSent(f"there was no answer ({_said(error)})") from None
    if code >= 300:
        raise NotSent(f"it answered {code}")


def _url(target: str) -> str:
    if not target.startswith("/"):
        return target
    try:
        text = Path(target).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotSent(f"the file with its address can't be read ({_said(error)})") from None
    if not text.startswith(("https://", "http://")) or any(one.isspace() for one in text):
        raise NotSent("the file with its address has no URL in it")
    return text


def send_mail(address: str, settings: MailSettings, message: Message, deadline: float = DEADLINE) -> None:
    """Hand in a mail, to a server or to the machine's own sendmail."""
    mail = EmailMessage()
    mail["From"] = settings.sender or f"updraft@{socket.getfqdn()}"
    mail["To"] = address
    mail["Subject"] = message.subject
    mail["Date"] = formatdate(message.at)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(body(message))
    try:
        if settings.server is None:
            subprocess.run(
                [SENDMAIL, "-i", "--", address],
                input=mail.as_bytes(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=deadline,
                check=True,
            )
        else:
            with smtplib.SMTP(*settings.server, timeout=deadline) as server:
                server.send_message(mail)
    except subprocess.SubprocessError as error:
        raise NotSent(f"sendmail did not take it ({type(error).__name__})") from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(f"the mail server did not take it ({_said(error)})") from None


def body(message: Message) -> str:
    """The message as lines."""
    lines = (f"pool: {message.pool}", f"event: {message.kind}", "", *message.texts, "")
    return "\n".join(lines)


def _said(error: Exception) -> str:
    """What kind of error it is: its own words may have the address in them."""
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, OSError) and inner.strerror:
        return str(inner.strerror)
    return type(inner).__name__

"""Whether the proxies of CernVM-FS would fetch the cloud's metadata for a job.

A worker's own door is closed to its jobs. A proxy elsewhere that fetches whatever it is asked for has an open
one: that of the machine that it runs on, with its user-data and the credentials of its role.
"""

import http.client
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from updraft.checks.asking import Answer
from updraft.checks.finding import Area, Finding
from updraft.checks.role import METADATA
from updraft.config.model import Settings
from updraft.errors import ProblemFound

HERE = Area("here")
_TIMEOUT = 4.0
# What the service itself says at its root; a proxy that doesn't fetch it says 403, 502, 503 or 504.
_ANSWERS = (http.client.OK, http.client.UNAUTHORIZED)


def wanted(settings: Settings) -> tuple[str, ...]:
    """The addresses of all proxies in the settings, each once."""
    every = (one for worker in settings.classes.values() for one in re.split("[;|]", worker.cvmfs_proxy))
    return tuple(dict.fromkeys(one for one in every if one not in ("DIRECT", "auto")))


def fetches(proxy: str) -> bool:
    """True where the proxy fetches the metadata's root. Raises ProblemFound where it doesn't answer."""
    try:
        address = urlsplit(proxy)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = kind(address.hostname or "", address.port or 3128, timeout=_TIMEOUT)
        try:
            connection.request("GET", f"http://{METADATA}/", headers={"Host": METADATA})
            return connection.getresponse().status in _ANSWERS
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ProblemFound(f"it does not answer here ({error})") from error


def judge(answers: Mapping[str, Answer]) -> Iterator[Finding]:
    """What each of them did. `answers` are by the proxy's address."""
    for proxy, answer in answers.items():
        what = f"proxy {proxy}"
        if answer.error is not None:
            yield HERE.skipped(what, f"whether it would fetch metadata for a job isn't known: {answer.error}")
        elif answer.value:
            yield HERE.warning(
                what,
                f"it fetches http://{METADATA}/ for whoever asks: any job can read the user-data and the "
                "role of the machine that it runs on",
                "refuse 169.254.0.0/16 there (in squid: acl metadata dst 169.254.0.0/16, "
                "http_access deny metadata, before all that allows)",
            )
        else:
            yield HERE.ok(what, "it does not fetch the cloud's metadata for a job")

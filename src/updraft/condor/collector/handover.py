"""The two ads by which a machine gets its own token: it asks in one, and is answered in the other.

What is asked is read and answered in a child. A token is sealed to the machine's key by openssl, which is on
every machine that has HTCondor; so is the machine's end of it.
"""

import base64
import hashlib
import math
import re
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from updraft.condor import written
from updraft.condor.advalues import text
from updraft.condor.base import ATTR_INSTANCE, ATTR_LAUNCH, ATTR_POOL, SHOWN_IDENTITY
from updraft.condor.tokens.workers import is_launchs, launch_of
from updraft.core.machines.handover import TokenRequest
from updraft.errors import PoolError

_KEY = "UpdraftKey"
_NAME = "updraft-handover/"
_MOST = 500  # questions of one launch in one look
_LONGEST = 4096  # characters of a certificate
_PATIENCE = 2.0
_LINE = 128
_SEAL = 10.0
_SHOWN = re.compile(r"^updraft-handover: ([0-9a-f]{64})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A machine's request, with its certificate (DER)."""

    asked: TokenRequest
    cert: bytes


def read_questions(collector: str | None, pool: str) -> tuple[SignedRequest, ...]:
    """In a child: what machines of this pool ask; what makes no sense is left out."""
    import htcondor2

    names = ["Name", ATTR_INSTANCE, ATTR_LAUNCH, SHOWN_IDENTITY, _KEY]
    conditions = [written.said(_KEY), written.says(ATTR_POOL, written.quoted(pool))]
    constraint = " && ".join([*conditions, *map(written.says_text, names)])
    ads = htcondor2.Collector(collector).query(htcondor2.AdType.Master, constraint, names)
    found = (question(*(text(ad, name) for name in names)) for ad in ads)
    return tuple(few_of_each(one for one in found if one is not None))


def few_of_each(questions: Iterable[SignedRequest]) -> Iterator[SignedRequest]:
    """These, but of each launch no more than it could have machines: whoever floods, floods his own."""
    seen: Counter[str] = Counter()
    for one in questions:
        seen[one.asked.shown] += 1
        if one.asked.shown and seen[one.asked.shown] <= _MOST:
            yield one


def question(name: str, instance: str, launch: str, identity: str, key: str) -> SignedRequest | None:
    """The question of an ad with these values; None for what is none.

    It goes by the name of its key: whoever writes another's key into an ad of another name asks nothing.
    """
    if not instance or not launch or not key or len(key) > _LONGEST:
        return None
    try:
        cert = base64.b64decode(key, validate=True)
    except ValueError:
        return None
    fingerprint = hashlib.sha256(cert).hexdigest()
    if name != _NAME + fingerprint:
        return None
    # With a machine's own token nobody asks for another one.
    shown = launch_of(identity) if is_launchs(identity) else ""
    return SignedRequest(TokenRequest(fingerprint, instance[:128], launch[:128], shown), cert)


def write_answers(collector: str | None, answers: Sequence[Mapping[str, str]], lifetime: float) -> None:
    """In a child: advertise these answers, each with the fingerprint (`key`) of whom it is for."""
    import classad2
    import htcondor2

    ads = [
        classad2.ClassAd(
            {
                "MyType": "Generic",
                "Name": _NAME + one["key"],
                "ClassAdLifetime": max(1, math.ceil(lifetime)),
                **{name: said for name, said in one.items() if name != "key"},
            }
        )
        for one in answers
    ]
    if ads:
        htcondor2.Collector(collector).advertise(ads, "UPDATE_AD_GENERIC")


def seal(token: str, cert: bytes) -> str:
    """The token, so that only who has the certificate's key can read it. Raises PoolError."""
    with tempfile.NamedTemporaryFile(prefix="updraft-cert-") as file:
        try:
            pem = _openssl(["x509", "-inform", "DER"], cert)
            Path(file.name).write_bytes(pem)
            words = ["cms", "-encrypt", "-binary", "-aes-256-cbc", "-outform", "DER", file.name]
            return base64.b64encode(_openssl(words, token.encode())).decode()
        except (OSError, subprocess.SubprocessError) as error:
            raise PoolError(f"a token can't be sealed; is openssl there? ({type(error).__name__})") from error


def _openssl(words: Sequence[str], given: bytes) -> bytes:
    done = subprocess.run(["openssl", *words], input=given, capture_output=True, timeout=_SEAL, check=False)
    if done.returncode:
        raise PoolError("the machine's key is none: openssl can't read it")
    return done.stdout


def keys_on(console: str) -> frozenset[str]:
    """The fingerprints that a machine has shown on its console."""
    return frozenset(_SHOWN.findall(console))


def key_at(address: str, port: int) -> str:
    """The fingerprint that is told at this address; "" where nobody says one within two seconds.

    Two for all of it: who says a letter now and then is as one that says nothing.
    """
    until = time.monotonic() + _PATIENCE
    try:
        with socket.create_connection((address, port), timeout=_PATIENCE) as there:
            line = b""
            while len(line) < _LINE and not line.endswith(b"\n") and (left := until - time.monotonic()) > 0:
                there.settimeout(left)
                part = there.recv(_LINE)
                if not part:
                    break
                line += part
    except OSError:
        return ""
    word, _, key = line.decode("ascii", "replace").strip().partition(" ")
    return key if word == "updraft-handover" else ""

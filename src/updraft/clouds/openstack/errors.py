"""OpenStack's errors in the words of the house: the one place where they are mapped.

An answer is judged by its HTTP status and, where one status stands for several things, by its sentence.
Whatever was no answer at all is CloudUnavailable: for a launch that means unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
from keystoneauth1 import exceptions as auth
from openstack import exceptions as sdk

from updraft.errors import (
    AuthFailed,
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
)

LONGEST = 300

# Nova says 403 and Cinder 413 for a quota that is used up, Neutron 409; policy is a 403 too.
_QUOTA = re.compile(
    r"quota|over the limit|limit ?exceeded|limit reached|maximum number of|maximum allowed|number of defined",
    re.IGNORECASE,
)
_FULL = re.compile(
    r"no valid host|not enough hosts|no more (ip|free) addresses|zero fixed ips|no fixed ip addresses"
    r"|ipaddressgenerationfailure|insufficient (compute )?resources|not enough .{0,20}(capacity|resources)"
    r"|no more floating|externalipaddressexhausted",
    re.IGNORECASE,
)
_POLICY = re.compile(r"policy doesn't allow|disallowed by policy|not authorized", re.IGNORECASE)
_NO_CREDENTIALS = (
    sdk.ConfigException,
    auth.AuthorizationFailure,
    auth.AuthPluginException,
    auth.MissingAuthPlugin,
    auth.NoMatchingPlugin,
)
_HINTS: Mapping[type[CloudError], str] = {
    AuthFailed: "check the credentials in clouds.yaml, what they may do, and this machine's clock; an "
    "application credential may have expired or been deleted: make another",
}


class Refused(Exception):
    """An answer of a service that says no: `status` is HTTP's, `message` the service's own sentence.

    `retry_after` is in seconds, None where it wasn't said.
    """

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.retry_after = retry_after


class Garbled(Exception):
    """An answer that is none of OpenStack's: a login page, a proxy's sorrow, half a document."""


class Translator:
    """Turns what the SDK and the services say into a CloudError that holds no secret.

    `cloud` is the cloud's name; `secrets` are texts that may never be repeated.
    """

    def __init__(self, cloud: str) -> None:
        self._cloud = cloud
        self.secrets: tuple[str, ...] = ()

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        """Whatever goes wrong inside is raised as a CloudError; `doing` says what was being done."""
        try:
            yield
        except Refused as error:
            raise self.answered(error, doing) from error
        except auth.HttpError as error:  # only of the identity service: all others are read by ourselves
            raise self.answered(_of_identity(error), doing) from error
        except _NO_CREDENTIALS as error:
            raise AuthFailed(self._text(doing, f"there are no usable credentials: {error}")) from error
        except auth.CatalogException as error:
            hint = " (is the region right, and does the cloud have this service?)"
            raise BadRequest(self._text(doing, str(error), hint)) from error
        except Garbled as error:
            raise CloudUnavailable(self._text(doing, str(error))) from error
        except (auth.ClientException, sdk.SDKException, requests.RequestException, OSError) as error:
            raise CloudUnavailable(self._text(doing, str(error) or type(error).__name__)) from error

    def answered(self, error: Refused, doing: str) -> CloudError:
        """What a refusal is called in the house."""
        kind = kind_of(error)
        hint = f" ({_HINTS[kind]})" if kind in _HINTS else ""
        text = self._text(doing, f"{error.status} {error.message}", hint)
        return Throttled(text, error.retry_after) if kind is Throttled else kind(text)

    def _text(self, doing: str, what: str, hint: str = "") -> str:
        plain = " ".join(without(what, self.secrets).split())
        return f"cloud {self._cloud}, {doing}: {plain[:LONGEST]}{hint}"


def kind_of(error: Refused) -> type[CloudError]:
    """The error of the house that a refusal stands for."""
    status, message = error.status, error.message
    if status >= 500 or status in (408, 425):
        return NoCapacity if status == 500 and _FULL.search(message) else CloudUnavailable
    if status == 401 or (status == 403 and _POLICY.search(message)):  # a policy's name may have "quota" in it
        return AuthFailed
    if status == 429:
        return Throttled
    if status == 413:
        return QuotaExceeded if _QUOTA.search(message) else Throttled
    if status in (400, 403, 409):
        if _FULL.search(message):
            return NoCapacity
        if _QUOTA.search(message):
            return QuotaExceeded
    return AuthFailed if status == 403 else BadRequest


def is_full(text: str) -> bool:
    """Whether this sentence, a fault's perhaps, says that the cloud has no room."""
    return bool(_FULL.search(text))


def refused_by(response: requests.Response) -> Refused:
    """What an answer of 400 and above says."""
    try:
        said = message_in(response.json())
    except ValueError:  # a page of a proxy
        said = re.sub(r"<[^>]*>", " ", response.text[:2000])
    return Refused(
        response.status_code,
        said or response.reason or "no text",
        _seconds(response.headers.get("Retry-After")),
    )


def message_in(body: Any) -> str:
    """The sentence in a fault, in any of the forms that the services have for it."""
    if not isinstance(body, Mapping):
        return ""
    if isinstance(body.get("message"), str):  # of Glance
        return str(body["message"])
    for inner in body.values():  # {"badRequest": {…}}, {"NeutronError": {…}}, {"error": {…}}
        if isinstance(inner, Mapping) and isinstance(inner.get("message"), str):
            kind = inner.get("type")
            return f"{kind}: {inner['message']}" if isinstance(kind, str) else str(inner["message"])
        if isinstance(inner, str) and inner:
            return inner
    return ""


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with every one of the secrets blotted out."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "…")
    return text


def _of_identity(error: auth.HttpError) -> Refused:
    # A project, user or credential that isn't there is told by some plug-ins as 404: it won't let us in.
    status = 401 if error.http_status in (400, 403, 404) else int(error.http_status or 0)
    headers = getattr(error.response, "headers", None) or {}
    return Refused(status, f"identity service: {error.message}", _seconds(headers.get("Retry-After")))


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None

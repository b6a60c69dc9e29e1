"""EC2's errors in the words of the house: the one place where they are mapped.

A code that nobody knows is judged by the answer's HTTP status. Whatever was no answer at all is
CloudUnavailable: for a launch that means unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError

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

_CODES: Mapping[str, type[CloudError]] = {
    **dict.fromkeys(
        (
            "InsufficientInstanceCapacity",
            "InsufficientHostCapacity",
            "InsufficientReservedInstanceCapacity",
            "InsufficientCapacity",
            "InsufficientFreeAddressesInSubnet",
            "SpotMaxPriceTooLow",
            "Unsupported",  # this type is not sold in that zone
        ),
        NoCapacity,
    ),
    **dict.fromkeys(
        (
            "InstanceLimitExceeded",
            "VcpuLimitExceeded",
            "MaxSpotInstanceCountExceeded",
            "MaxSpotFleetRequestCountExceeded",
            "VolumeLimitExceeded",
            "MaxIOPSLimitExceeded",
            "AddressLimitExceeded",
            "NetworkInterfaceLimitExceeded",
            "PrivateIpAddressLimitExceeded",
            "ResourceLimitExceeded",
            "QuotaExceeded",
            "TooManyInstances",
            "PendingVerification",
        ),
        QuotaExceeded,
    ),
    **dict.fromkeys(
        (
            "RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "EC2ThrottledException",
            "RequestThrottled",
            "RequestThrottledException",
            "TooManyRequestsException",
            "BandwidthLimitExceeded",
            "SlowDown",
        ),
        Throttled,
    ),
    **dict.fromkeys(
        (
            "AuthFailure",
            "UnauthorizedOperation",
            "AccessDenied",
            "AccessDeniedException",
            "Blocked",
            "ExpiredToken",
            "ExpiredTokenException",
            "IncompleteSignature",
            "InvalidAccessKeyId",
            "InvalidClientTokenId",
            "InvalidSecurity",
            "InvalidSecurityToken",
            "MissingAuthenticationToken",
            "NotAuthorized",
            "OptInRequired",
            "RequestExpired",
            "SignatureDoesNotMatch",
            "UnrecognizedClientException",
        ),
        AuthFailed,
    ),
    **dict.fromkeys(
        ("InternalError", "InternalFailure", "InternalServerError", "Unavailable", "ServiceUnavailable"),
        CloudUnavailable,
    ),
}
_QUOTA = re.compile(r"quota exceeded", re.IGNORECASE)
_NO_CREDENTIALS = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.ProfileNotFound,
    sdk.NoAuthTokenError,
    sdk.SSOError,
)
_OUR_FAULT = (sdk.ParamValidationError, sdk.NoRegionError, sdk.InvalidRegionError, sdk.ConfigParseError)
_HINTS: Mapping[type[CloudError], str] = {
    AuthFailed: "check the credentials, what they may do, and this machine's clock",
}


class Translator:
    """Turns what the SDK raises into a CloudError that holds no secret.

    `cloud` is the cloud's name; `secrets` are texts that may never be repeated, asked for at each error.
    """

    def __init__(self, cloud: str) -> None:
        self._cloud = cloud
        self.secrets: tuple[str, ...] = ()

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        """Whatever goes wrong inside is raised as a CloudError; `doing` says what was being done."""
        try:
            yield
        except sdk.ClientError as error:
            raise self._answered(error, doing) from error
        except _NO_CREDENTIALS as error:
            raise AuthFailed(self._text(doing, f"there are no usable credentials: {error}")) from error
        except _OUR_FAULT as error:
            raise BadRequest(self._text(doing, str(error))) from error
        except ResponseParserError as error:
            # Its text is the answer itself, whatever an endpoint may have put there.
            raise CloudUnavailable(self._text(doing, "the answer is none of an EC2 endpoint's")) from error
        except (sdk.BotoCoreError, OSError) as error:
            raise CloudUnavailable(self._text(doing, str(error) or type(error).__name__)) from error

    def _answered(self, error: sdk.ClientError, doing: str) -> CloudError:
        kind = kind_of(error)
        detail = error.response.get("Error", {})
        hint = f" ({_HINTS[kind]})" if kind in _HINTS else ""
        text = self._text(doing, f"{code_of(error)}: {detail.get('Message', '')}", hint)
        return Throttled(text, _retry_after(error)) if kind is Throttled else kind(text)

    def _text(self, doing: str, what: str, hint: str = "") -> str:
        plain = " ".join(without(what, self.secrets).split())
        plain = re.sub(r"(Encoded authorization failure message:).*", r"\1 …", plain)
        return f"cloud {self._cloud}, {doing}: {plain[:LONGEST]}{hint}"


def kind_of(error: sdk.ClientError) -> type[CloudError]:
    """The error of the house that an answer of the cloud stands for."""
    code = code_of(error)
    known = _CODES.get(code) or _CODES.get(code.removeprefix("Server.").removeprefix("Client."))
    if known is not None:
        return known
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) or 0)
    if status in (401, 403):  # OpenStack's ec2-api hands on Nova's "Forbidden" for a quota that is used up
        return QuotaExceeded if _QUOTA.search(message_of(error)) else AuthFailed
    if status == 429:
        return Throttled
    return CloudUnavailable if status >= 500 or not status >= 400 else BadRequest


def code_of(error: sdk.ClientError) -> str:
    """EC2's own word for it, such as `InvalidAMIID.NotFound`."""
    return str(error.response.get("Error", {}).get("Code", "") or "unknown")


def message_of(error: sdk.ClientError) -> str:
    """EC2's own sentence."""
    return str(error.response.get("Error", {}).get("Message", ""))


def is_missing(error: sdk.ClientError) -> bool:
    """Whether an instance that was named isn't there."""
    return code_of(error).startswith("InvalidInstanceID") or code_of(error) == "InvalidID"


def is_unknown_call(error: sdk.ClientError) -> bool:
    """Whether the endpoint doesn't know the call at all."""
    words = ("InvalidAction", "UnknownOperation", "UnsupportedOperation", "NotImplemented", "InvalidRequest")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) or 0)
    return code_of(error).startswith(words) or status in (404, 405, 501)


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with every one of the secrets blotted out."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "…")
    return text


def _retry_after(error: sdk.ClientError) -> float | None:
    headers: Mapping[str, Any] = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}) or {}
    try:
        return max(0.0, float(str(headers.get("retry-after", ""))))
    except ValueError:
        return None

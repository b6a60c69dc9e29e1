"""The connection to an EC2 endpoint: address, credentials, time-outs, retries, pages."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError, NoCredentialsError
from botocore.utils import parse_timestamp

from updraft.clouds.ec2.errors import Translator, kind_of
from updraft.clouds.ec2.settings import Settings, rc_environment
from updraft.errors import AuthFailed

READ_TIMEOUT = 15.0
CONNECT_TIMEOUT = 4.0
ATTEMPTS = 3
RENEWED_AFTER = 30.0
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")

Answer = Mapping[str, Any]


class Connection:
    """Calls of one cloud. Nothing is opened, and no credential looked for, before the first call.

    Calls that change nothing, or may be repeated, are tried three times; a launch once: whether it may be
    asked for again is not for a library to decide.
    """

    def __init__(
        self,
        cloud: str,
        settings: Settings,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._clients: dict[bool, Any] = {}
        self._session: Any = None
        self._clock = clock
        self._looked = 0.0
        self.translate = Translator(cloud)
        self.without_token = False

    @property
    def endpoint(self) -> str:
        """The address that is called."""
        return str(self._client(once=False).meta.endpoint_url)

    @property
    def region(self) -> str:
        """The region that is called."""
        return str(self._client(once=False).meta.region_name)

    @property
    def amazon(self) -> bool:
        """Whether this is Amazon's own service, of which it is known what it can do."""
        return (urlsplit(self.endpoint).hostname or "").endswith(_AMAZON)

    @property
    def from_environment(self) -> bool:
        """Whether the credentials are this process's environment's, which another process may not have."""
        self._client(once=False)
        found = None if self._session is None else self._session.get_credentials()
        return bool(self._from_rc()) or (found is not None and found.method == "env")

    def call(self, action: str, doing: str, **parameters: Any) -> Answer:
        """One call, its errors those of the house; `doing` says in them what was being done."""
        with self.translate(doing):
            return self.ask(action, **parameters)

    def ask(self, action: str, *, once: bool = False, **parameters: Any) -> Answer:
        """One call, its errors the SDK's, for those who can read them."""
        client = self._client(once=once)
        try:
            self._note_secrets()
            answer: Answer = getattr(client, action)(**parameters)
        except NoCredentialsError:
            self._look_again(at_once=True)
            raise
        except ClientError as error:
            if kind_of(error) is AuthFailed:
                self._look_again(at_once=False)
            raise
        return answer

    def pages(self, action: str, key: str, **parameters: Any) -> Iterator[Any]:
        """All items of all pages, their errors the SDK's."""
        token: str | None = None
        while True:
            following_page: dict[str, Any] = {"NextToken": token} if token else {}
            answer = self.ask(action, **parameters, **following_page)
            yield from answer.get(key, ())
            following = answer.get("NextToken") or None
            if following is None or following == token:
                return
            token = following

    def _client(self, *, once: bool) -> Any:
        with self._lock:
            if once not in self._clients:
                self._clients[once] = self._made(once=once)
            return self._clients[once]

    def _made(self, *, once: bool) -> Any:
        settings = self._settings
        if self._session is None:
            self._looked = self._clock()
            with self.translate("reading the credentials"):
                inner = botocore.session.get_session()
                # The SDK's own reader of times takes half of what a long listing costs.
                parsers = inner.get_component("response_parser_factory")
                parsers.set_parser_defaults(timestamp_parser=_moment)
                self._session = boto3.Session(
                    botocore_session=inner, profile_name=settings.profile, **self._from_rc()
                )
        address = settings.endpoint or self._rc_address()
        region = settings.region or self._session.region_name or ("us-east-1" if address else None)
        with self.translate("making a connection"):
            client = self._session.client(
                "ec2",
                region_name=region,
                endpoint_url=address,
                verify=None if settings.ca_bundle is None else str(settings.ca_bundle),
                config=Config(
                    connect_timeout=min(CONNECT_TIMEOUT, settings.timeout),
                    read_timeout=settings.timeout if once else min(READ_TIMEOUT, settings.timeout),
                    retries={"mode": "standard", "total_max_attempts": 1 if once else ATTEMPTS},
                    user_agent_extra="updraft",
                ),
            )
        client.meta.events.register("before-call.ec2.RunInstances", self._drop_token)
        return client

    def _drop_token(self, params: dict[str, Any], **_rest: Any) -> None:
        # The SDK makes up a token where none is given; an endpoint that refuses tokens must get none.
        if self.without_token and isinstance(params.get("body"), dict):
            params["body"].pop("ClientToken", None)

    def _look_again(self, *, at_once: bool) -> None:
        """Credentials that were not there or no good may be by the next call: the SDK looks only once."""
        with self._lock:
            if at_once or self._clock() - self._looked >= RENEWED_AFTER:
                self._clients, self._session = {}, None

    def _from_rc(self) -> dict[str, Any]:
        """The credentials of an ec2rc.sh, where nothing says that others are meant."""
        found = rc_environment(self._environ, self._settings.profile)
        return {} if found is None else {"aws_access_key_id": found[0], "aws_secret_access_key": found[1]}

    def _rc_address(self) -> str | None:
        found = rc_environment(self._environ, self._settings.profile)
        return None if found is None else found[2] or None

    def _note_secrets(self) -> None:
        session = self._session
        found = None if session is None else session.get_credentials()
        if found is not None:
            frozen = found.get_frozen_credentials()
            self.translate.secrets = tuple(
                text for text in (frozen.secret_key, frozen.token, frozen.access_key) if text
            )


def _moment(text: Any) -> datetime:
    """A time of an answer; what isn't written as ISO 8601 is left to the SDK's slower reader."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = parse_timestamp(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)

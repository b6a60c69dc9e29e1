"""The connection to a cloud: credentials, addresses of services, time-outs, pages."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO
from urllib.parse import urlencode

import requests
from keystoneauth1 import exceptions as auth
from keystoneauth1.adapter import Adapter
from keystoneauth1.plugin import AUTH_INTERFACE
from openstack.config import OpenStackConfig
from openstack.config.cloud_region import CloudRegion
from openstack.exceptions import ConfigException

from updraft.clouds.imaging import PART
from updraft.clouds.openstack.errors import Garbled, Refused, Translator, refused_by
from updraft.clouds.openstack.settings import Settings
from updraft.errors import BadRequest

READ_TIMEOUT = 30.0
CONNECT_TIMEOUT = 4.0
RENEWED_AFTER = 30.0
FILE_TIMEOUT = 300.0  # without a byte of an image's file, or until the cloud has stored it
# Tags with the launch came in 2.52 (2017); with 2.69 a listing says so when part of the cloud is silent.
LEAST, WANTED = (2, 52), (2, 69)
LARGEST_PAGE = 1000
COMPUTE, NETWORK, IMAGE, VOLUME = "compute", "network", "image", "block-storage"
IDENTITY = "identity"
# Catalogues (and, of the third, auth_url) name these with their version or without. To ask the service itself
# would not do: where it doesn't answer that, the SDK falls back on an address that knows none of the calls.
_VERSIONS: Mapping[str, str] = {NETWORK: "/v2.0", IMAGE: "/v2", IDENTITY: "/v3"}
_SECRET = ("password", "application_credential_secret", "token", "passcode", "client_secret", "access_token")

Answer = Mapping[str, Any]
Query = Mapping[str, Any]


class Connection:
    """Calls of one cloud. Nothing is opened, and no credential looked for, before the first call.

    A read whose connection broke is tried once more; nothing else is tried again, whatever went wrong.
    """

    def __init__(self, cloud: str, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._cloud = cloud
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._region: CloudRegion | None = None
        self._clients: dict[str, Adapter] = {}
        self._from_environment = False
        self._files: tuple[str, ...] = ()
        self._looked = 0.0
        self._microversion: tuple[int, int] | None = None
        self.translate = Translator(cloud)

    @property
    def source(self) -> str:
        """Where the credentials are from: a file's path, or "environment"."""
        self._made()
        return "environment" if self._from_environment else ", ".join(self._files)

    @property
    def project(self) -> str:
        """The id of the project."""
        return str(self._client(COMPUTE).get_project_id() or "")

    @property
    def token_given(self) -> bool:
        """Whether the configuration holds a token, and nothing that others could be asked for with."""
        return self._made().config.get("auth_type") in ("token", "v3token", "v2token")

    def token(self) -> Answer:
        """What Keystone says of the token that is in use: its "token", without the token itself.

        Raises Garbled where there is no such answer, and the SDK's errors.
        """
        session = self._made().get_session()
        session.get_token()
        told = None if session.auth is None else session.auth.get_auth_state()
        found = (json.loads(str(told or "{}")).get("body") or {}).get("token")
        if not isinstance(found, dict):
            raise Garbled("Keystone doesn't say what the token is")
        return found

    @property
    def microversion(self) -> tuple[int, int]:
        """The version of the compute service that is spoken."""
        with self._lock:
            known = self._microversion
        if known is None:
            known = self._negotiated()
            with self._lock:
                self._microversion = known
        return known

    def get(self, service: str, path: str, query: Query | None = None) -> Answer:
        """The answer to a read. Raises Refused, Garbled, and the SDK's errors."""
        words = urlencode(query, doseq=True) if query else ""
        address = f"{path}?{words}" if words else path
        try:
            return self._asked(service, "GET", address, min(READ_TIMEOUT, self._settings.timeout))
        except auth.ConnectFailure:  # broken, perhaps one kept open for too long: a read may be repeated
            return self._asked(service, "GET", address, min(READ_TIMEOUT, self._settings.timeout))

    def act(self, service: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """The answer to a call that changes something; it is made once. Raises as `get`."""
        return self._asked(service, method, path, self._settings.timeout, body)

    def send(self, service: str, path: str, file: BinaryIO, size: int) -> None:
        """Send `size` bytes of a file, as it is. Raises as `get`."""
        headers = {"Content-Type": "application/octet-stream"}
        with self._raw(service, "PUT", path, headers=headers, data=Counted(file, size)) as response:
            _answer(response)

    def receive(self, service: str, path: str, file: BinaryIO) -> None:
        """Write what is there into the file. Raises as `get`; an answer that ends too soon is an error."""
        with self._raw(service, "GET", path, stream=True) as response:
            if response.status_code >= 400:
                raise refused_by(response)
            expected, got = response.headers.get("Content-Length"), 0
            for part in response.iter_content(PART):
                got += len(part)
                file.write(part)
        if expected is not None and got != int(expected):
            raise Garbled(f"the answer ended after {got} of {expected} bytes")

    def pages(self, service: str, path: str, key: str, query: Query, size: int) -> Iterator[Answer]:
        """All items of all pages, each once, by their ids. Raises as `get`.

        The next page is asked for by the last id: links may name an address that nobody outside can reach.
        """
        seen: set[str] = set()
        marker: dict[str, Any] = {}
        while True:
            answer = self.get(service, path, {**query, "limit": size, **marker})
            found = items(answer, key)
            fresh = [one for one in found if str(one["id"]) not in seen]
            yield from fresh
            seen.update(str(one["id"]) for one in fresh)
            if not _goes_on(answer, found, key, size):
                return
            if fresh:
                marker = {"marker": found[-1]["id"]}
            elif size < LARGEST_PAGE:  # the same page again
                size, marker = min(2 * size, LARGEST_PAGE), {}
            else:
                raise Garbled("the listing changed while it was read")

    # ------------------------------------------------------------------------------------------- inside

    def _asked(
        self, service: str, method: str, path: str, timeout: float, body: Mapping[str, Any] | None = None
    ) -> Answer:
        options: dict[str, Any] = {} if body is None else {"json": body}
        try:
            if service == COMPUTE:
                options["microversion"] = "{}.{}".format(*self.microversion)
            client = self._client(service)
            response = client.request(
                _versioned(service, client) + path,
                method,
                raise_exc=False,
                connect_retries=0,
                status_code_retries=0,
                timeout=(min(CONNECT_TIMEOUT, timeout), timeout),
                headers={"Accept": "application/json"},
                **options,
            )
        except (auth.Unauthorized, ConfigException):
            self._look_again()
            raise
        if response.status_code == 401:
            self._look_again()
        return _answer(response)

    def _raw(self, service: str, method: str, path: str, **options: Any) -> requests.Response:
        """A call whose body is a file's; it may take as long as bytes flow."""
        client = self._client(service)
        headers = {"Accept": "*/*", **options.pop("headers", {})}
        return client.request(
            _versioned(service, client) + path,
            method,
            raise_exc=False,
            connect_retries=0,
            status_code_retries=0,
            timeout=(CONNECT_TIMEOUT, FILE_TIMEOUT),
            headers=headers,
            **options,
        )

    def _client(self, service: str) -> Adapter:
        region = self._made()
        with self._lock:
            if service not in self._clients:
                # Keystone is where tokens are from, whatever the catalogue says of it.
                of_tokens: Any = AUTH_INTERFACE if service == IDENTITY else None
                self._clients[service] = Adapter(
                    region.get_session(),
                    service_type=region.get_service_type(service),
                    service_name=region.get_service_name(service),
                    interface=of_tokens or region.get_interface(service),
                    region_name=self._settings.region or region.get_region_name(service),
                    endpoint_override=region.get_endpoint(service),
                )
            return self._clients[service]

    def _made(self) -> CloudRegion:
        with self._lock:
            if self._region is None:
                self._looked = self._clock()
                self._region = self._configured()
            return self._region

    def _configured(self) -> CloudRegion:
        settings = self._settings
        config = OpenStackConfig(app_name="updraft")
        if settings.os_cloud is not None and settings.os_cloud not in config.get_cloud_names():
            raise ConfigException(_stranger(settings.os_cloud, config))
        timeout = min(READ_TIMEOUT, settings.timeout)
        try:
            region = config.get_one(cloud=settings.os_cloud, region_name=settings.region, api_timeout=timeout)
        except ConfigException:
            if settings.region is None:
                raise
            # A file that names one region is no reason not to use another: the catalogue knows them all.
            region = config.get_one(cloud=settings.os_cloud, api_timeout=timeout)
        given = region.config.get("auth") or {}
        self.translate.secrets = tuple(str(given[key]) for key in _SECRET if given.get(key))
        self._from_environment = region.name == config.envvar_key
        self._files = tuple(
            str(file) for file in (config.config_filename, config.secure_config_filename) if file
        )
        return region

    def _negotiated(self) -> tuple[int, int]:
        found = self._client(COMPUTE).get_endpoint_data()
        if found is None or not found.max_microversion:
            raise Garbled("the compute service doesn't say which versions it speaks")
        most = (int(found.max_microversion[0]), int(found.max_microversion[1]))
        if most < LEAST:
            raise BadRequest(
                f"cloud {self._cloud}: its compute service speaks version {most[0]}.{most[1]} at most, and "
                f"updraft needs {LEAST[0]}.{LEAST[1]} (OpenStack Pike, 2017)"
            )
        return min(most, WANTED)

    def _look_again(self) -> None:
        """Credentials that are no good may be renewed by the next call: the SDK reads them only once."""
        with self._lock:
            if self._clock() - self._looked >= RENEWED_AFTER:
                self._region, self._microversion = None, None
                self._clients = {}


class Counted:
    """The next `size` bytes of a file as the body of a call: read as it goes, and no more than these."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = self.len = size  # requests asks for `len`, and sends it as the length

    def read(self, size: int = -1) -> bytes:
        """The next bytes; empty at the end."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= len(data)
        return data


def _stranger(cloud: str, config: OpenStackConfig) -> str:
    """What to say of a cloud that is in no file: which file was read, and which clouds it has."""
    if not config.config_filename:
        return f"no clouds.yaml was found, so there is no cloud {cloud}"
    names = ", ".join(sorted(config.get_cloud_names())) or "no cloud"
    return f"there is no cloud {cloud} in {config.config_filename}: it has {names}"


def items(answer: Answer, key: str) -> list[Any]:
    """The list in an answer. Raises Garbled: an answer without it is not an empty one."""
    found = answer.get(key)
    if not isinstance(found, list):
        raise Garbled(f"the answer holds no {key}")
    return found


def _versioned(service: str, client: Adapter) -> str:
    """What stands before a path of this service."""
    version = _VERSIONS.get(service, "")
    if not version:
        return ""
    address = str(client.endpoint_override or client.get_endpoint() or "")
    return "" if re.search(r"/v\d[\d.]*/?$", address) else version


def _answer(response: requests.Response) -> Answer:
    if response.status_code >= 400:
        raise refused_by(response)
    if response.status_code == 204 or not response.content:
        return {}
    try:
        found = response.json()
    except ValueError as error:
        raise Garbled("the answer is none of an OpenStack service's") from error
    if not isinstance(found, dict):
        raise Garbled("the answer is none of an OpenStack service's")
    return found


def _goes_on(answer: Answer, found: list[Any], key: str, size: int) -> bool:
    """Whether there may be a page after this one.

    A server that is just taken up by its part of the cloud is counted twice by Nova and shown once: its page
    is short then and looks like the last, and the page after it may be the same one again.
    """
    links = answer.get(f"{key}_links") or ()
    twice = sum(one.get("status") == "BUILD" for one in found)
    return bool(
        answer.get("next") or any(link.get("rel") == "next" for link in links) or len(found) + twice >= size
    )


def found_or_none(ask: Callable[[], Answer]) -> Answer | None:
    """The answer, None where what was named isn't there."""
    try:
        return ask()
    except Refused as error:
        if error.status == 404:
            return None
        raise

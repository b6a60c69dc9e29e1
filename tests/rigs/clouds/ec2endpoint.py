"""An EC2 endpoint over HTTP on the loopback: moto's server, with what moto lacks put before it.

`Quirks` says how the endpoint is; `troubles` are what goes wrong with the next calls. Everything that was
called is in `log`. moto is loaded with the first endpoint, not where tests are collected.
"""

import base64
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl, urlencode
from xml.etree import ElementTree

from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "eu-west-1"
PATH = "/services/Cloud"
USER_DATA_LIMIT = 16 * 1024
IMAGES = (  # id, name, when it was made
    ("ami-00000000000000001", "worker", "2026-01-01"),
    ("ami-00000000000000002", "worker", "2026-02-01"),
    ("ami-00000000000000003", "other", "2026-03-01"),
)
ITEM = re.compile(r"<instancesSet>(.*?)</instancesSet>", re.DOTALL)

Parameters = dict[str, str]


@dataclass
class Quirks:
    """How the endpoint is. Times in seconds. A lack is "" (it has it), "refuse", "ignore" or "TypeError"."""

    boots_in: float = 0.3
    stops_in: float = 0.2
    shows_after: float = 0.0
    keeps_terminated: float = 3600.0
    hidden_unknown: bool = False  # what isn't listed yet can't be named either
    quota: int | None = None
    capacity: dict[str, int] = field(default_factory=dict)  # "zone/type" to machines
    access_keys: frozenset[str] = frozenset({"driver", "tester"})
    client_token: str = ""
    tag_on_create: str = ""
    metadata_options: str = ""
    shutdown_behavior: str = ""
    spot: str = ""
    paging: str = ""
    instance_types: bool = True
    account_attributes: bool = True


@dataclass
class Trouble:
    """What happens to calls whose action matches: an error answer, a lost answer (`lose`), a wait."""

    action: str = "*"
    code: str = ""
    status: int = 400
    message: str = "no reason given"
    after: bool = False  # the call is carried out first
    lose: bool = False
    until: threading.Event | None = None  # the answer waits for it
    times: int = -1
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Call:
    at: float
    action: str
    who: str
    parameters: Parameters


class Refused(Exception):  # noqa: N818
    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(code)
        self.code, self.message, self.status = code, message, status


class Endpoint:
    """The WSGI application before moto's."""

    def __init__(self, moto: Callable[..., Iterable[bytes]]) -> None:
        self._moto = moto
        self._lock = threading.RLock()
        self._flavors: dict[str, tuple[int, bytes]] = {}  # what moto has said of them; they never change
        self.fresh()

    def fresh(self, quirks: Quirks | None = None) -> None:
        """A new, empty endpoint."""
        from moto.ec2.models.amis import Ami

        with self._lock:
            self.quirks = quirks or Quirks()
            self.troubles: list[Trouble] = []
            self.odd: set[str] = set()  # instances that are shown with a tag that has no key
            self.making: set[str] = set()  # images that are shown as pending, without their snapshots
            self.log: list[Call] = []
            self._born: dict[str, float] = {}
            self._ended: dict[str, float] = {}
            self._resting: set[str] = set()
            self._launches: dict[str, tuple[str, bytes]] = {}
            self._items: dict[str, str] | None = None
            self._twins: dict[str, str] = {}
            backend = self.backend
            backend.reservations.clear()
            backend.amis.clear()
            backend.snapshots.clear()
            backend.volumes.clear()
            backend.tags.clear()  # moto looks through all of them for each instance that it shows
            for ami, name, made in IMAGES:
                backend.amis[ami] = Ami(
                    backend,
                    ami,
                    name=name,
                    architecture="x86_64",
                    creation_date=datetime.fromisoformat(made),
                    virtualization_type="hvm",
                )
            backend.key_pairs.clear()

    @property
    def backend(self) -> Any:
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.ec2.models import ec2_backends

        return ec2_backends[DEFAULT_ACCOUNT_ID][REGION]

    def calls(self, action: str = "*", who: str = "driver") -> list[Call]:
        return [call for call in self.log if call.who == who and fnmatchcase(call.action, action)]

    @contextmanager
    def trouble(self, *troubles: Trouble) -> Iterator[None]:
        self.troubles.extend(troubles)
        yield
        self.troubles = [one for one in self.troubles if one not in troubles]

    # ------------------------------------------------------------------------------------------- serving

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        parameters = dict(parse_qsl(body.decode(), keep_blank_values=True))
        action = parameters.get("Action", "")
        found = re.search(r"Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        who = found.group(1) if found else ""
        self.log.append(Call(time.monotonic(), action, who, parameters))
        trouble = self._trouble(action, who)
        if trouble is not None:
            assert trouble.until is None or trouble.until.wait(60)
            if trouble.after or not (trouble.code or trouble.lose):
                status, answer = self._answer(environ, action, parameters, who)
            if trouble.lose and (not trouble.after or status == 200):
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
                start("200 OK", [])
                return []
            if trouble.code:
                status, answer = trouble.status, error_text(trouble.code, trouble.message)
        else:
            status, answer = self._answer(environ, action, parameters, who)
        headers = [("Content-Type", "text/xml"), ("Content-Length", str(len(answer)))]
        start(f"{status} X", headers + list(trouble.headers if trouble else ()))
        return [answer]

    def _trouble(self, action: str, who: str) -> Trouble | None:
        for one in self.troubles:
            if who != "tester" and one.times != 0 and fnmatchcase(action, one.action):
                one.times -= 1
                return one
        return None

    def _answer(
        self, environ: dict[str, Any], action: str, parameters: Parameters, who: str
    ) -> tuple[int, bytes]:
        if who not in self.quirks.access_keys:
            text = "AWS was not able to validate the provided access credentials"
            return 401, error_text("AuthFailure", text)
        if not environ["PATH_INFO"].startswith(PATH):
            return 404, b"no such page"
        with self._lock:
            try:
                do = getattr(self, f"_do_{action}", None)
                return do(environ, parameters) if do else self._forward(environ, parameters)
            except Refused as refusal:
                return refusal.status, error_text(refusal.code, refusal.message)

    def _forward(self, environ: dict[str, Any], parameters: Parameters) -> tuple[int, bytes]:
        body = urlencode(parameters).encode()
        inner = {
            **environ,
            "PATH_INFO": "/",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        seen: list[str] = []
        parts = self._moto(inner, lambda status, _headers, *_rest: seen.append(status))
        answer = b"".join(parts)
        if hasattr(parts, "close"):
            parts.close()
        return int(seen[0].split()[0]), answer

    # --------------------------------------------------------------------------------------- the actions

    def _do_RunInstances(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        if "Credential=tester/" not in environ.get("HTTP_AUTHORIZATION", ""):
            asked = self._without_lacks(asked)
        token = asked.get("ClientToken", "")
        print_of = urlencode(sorted((key, value) for key, value in asked.items() if key != "ClientToken"))
        if token and token in self._launches:
            earlier, answer = self._launches[token]
            if earlier != print_of:
                raise Refused("IdempotentParameterMismatch", "the arguments differ from those of before")
            return 200, answer
        count = self._granted(asked)
        status, answer = self._forward(environ, {**asked, "MinCount": str(count), "MaxCount": str(count)})
        if status == 200:
            answer = self._stripped(answer.decode()).encode()
            for one in re.findall(r"<instanceId>(i-[0-9a-f]+)</instanceId>", answer.decode()):
                self._born[one] = time.monotonic()
            self._items = None
            if token:
                self._launches[token] = (print_of, answer)
        return status, answer

    def _granted(self, asked: Parameters) -> int:
        """How many of the machines asked for can be made. Raises Refused where none may be."""
        from moto.ec2.models.instance_types import INSTANCE_TYPES

        least, most = int(asked["MinCount"]), int(asked["MaxCount"])
        if len(base64.b64decode(asked.get("UserData", ""))) > USER_DATA_LIMIT:
            raise Refused("InvalidParameterValue", "User data is limited to 16384 bytes")
        image = asked.get("ImageId", "")
        if image not in self.backend.amis:
            raise Refused("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
        flavor = asked.get("InstanceType", "")
        if flavor not in INSTANCE_TYPES:
            raise Refused("InvalidParameterValue", f"Invalid value '{flavor}' for InstanceType.")
        key = asked.get("KeyName")
        if key and key not in self.backend.key_pairs:
            raise Refused("InvalidKeyPair.NotFound", f"The key pair '{key}' does not exist")
        if self.quirks.quota is not None:
            left = self.quirks.quota - sum(self.state(one) != "terminated" for one in self._born)
            if left < least:
                raise Refused("InstanceLimitExceeded", "You have requested more instances than your limit")
            most = min(most, left)
        place = f"{asked.get('Placement.AvailabilityZone', '')}/{asked.get('InstanceType', '')}"
        room = self.quirks.capacity.get(place)
        if room is not None:
            if room < least:
                text = "We currently do not have sufficient capacity in the Availability Zone you requested"
                raise Refused("InsufficientInstanceCapacity", text, 500)
            most = min(most, room)
            self.quirks.capacity[place] = room - most
        return most

    def _without_lacks(self, asked: Parameters) -> Parameters:
        quirks = self.quirks
        lacks = {
            "ClientToken": quirks.client_token,
            "TagSpecification": quirks.tag_on_create,
            "MetadataOptions": quirks.metadata_options,
            "InstanceMarketOptions": quirks.spot,
            "InstanceInitiatedShutdownBehavior": quirks.shutdown_behavior,
        }
        for name, lack in lacks.items():
            mine = [key for key in asked if key.startswith(name)]
            if lack == "refuse" and mine:
                raise Refused("UnknownParameter", f"The parameter {mine[0]} is not recognized")
            if lack == "TypeError" and mine:  # OpenStack's ec2-api
                raise Refused(lack, "Unknown error occurred.", 500)
            if lack:
                asked = {key: value for key, value in asked.items() if key not in mine}
        return asked

    def _do_DescribeInstances(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        if "MaxResults" in asked and self.quirks.paging == "refuse":
            raise Refused("UnknownParameter", "The parameter MaxResults is not recognized")
        named = [value for key, value in asked.items() if key.startswith("InstanceId.")]
        self._must_exist(named)
        wanted = [
            (one, item)
            for one, item in self._all(environ).items()
            if self._listed(one) and (not named or one in named) and matches(item, filters(asked))
        ]
        start = int(asked.get("NextToken") or 0)
        size = 10**6 if self.quirks.paging else int(asked.get("MaxResults") or 1000)
        page = wanted[start : start + size]
        text = "".join(
            f"<item><reservationId>r-{one[2:]}</reservationId><instancesSet>"
            f"{self._shown(one, item)}</instancesSet></item>"
            for one, item in page
        )
        following = f"<nextToken>{start + size}</nextToken>" if start + size < len(wanted) else ""
        return 200, answer_text("DescribeInstances", f"<reservationSet>{text}</reservationSet>{following}")

    def _shown(self, one: str, item: str) -> str:
        text = self._with_state(one, item)
        return text.replace("<tagSet>", "<tagSet><item><value>x</value></item>") if one in self.odd else text

    def _do_TerminateInstances(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        named = [value for key, value in asked.items() if key.startswith("InstanceId.")]
        if len(named) > 1000:
            raise Refused("InvalidParameterValue", "too many instances")
        self._must_exist(named)
        living = [one for one in named if one not in self._ended]
        known = [one for one in living if one not in self._twins]
        if known:
            again = {key: value for key, value in asked.items() if not key.startswith("InstanceId.")}
            again |= {f"InstanceId.{at}": one for at, one in enumerate(known, 1)}
            status, answer = self._forward(environ, again)
            if status != 200:
                return status, answer
            self._items = None
        self._ended.update(dict.fromkeys(living, time.monotonic()))
        return 200, answer_text("TerminateInstances", "<instancesSet/>")

    def _do_CreateTags(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        named = [value for key, value in asked.items() if key.startswith("ResourceId.")]
        self._must_exist(one for one in named if one.startswith("i-"))
        self._items = None
        return self._forward(environ, asked)

    _do_DeleteTags = _do_CreateTags  # noqa: N815

    def _do_StopInstances(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        named = [value for key, value in asked.items() if key.startswith("InstanceId.")]
        self._must_exist(named)
        self._resting.update(named)
        return 200, answer_text("StopInstances", "<instancesSet/>")

    def _do_CreateImage(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        if self.quirks.tag_on_create == "refuse" and any(key.startswith("TagSpec") for key in asked):
            raise Refused("UnknownParameter", "The parameter TagSpecification is not recognized")
        # moto knows tags of the image alone.
        return self._forward(
            environ, {k: v for k, v in asked.items() if not k.startswith("TagSpecification.2")}
        )

    def _do_DescribeImages(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        status, text = self._forward(environ, asked)
        if not self.making:
            return status, text

        tree = ElementTree.fromstring(text)  # noqa: S314 (moto's own)
        for one in tree.findall(".//{*}item"):
            if one.findtext("{*}imageId") in self.making:
                for part in [*one.findall("{*}blockDeviceMapping")]:
                    one.remove(part)
                for state in one.findall("{*}imageState"):
                    state.text = "pending"
        ElementTree.register_namespace("", "http://ec2.amazonaws.com/doc/2016-11-15/")
        return status, ElementTree.tostring(tree)

    def _do_GetConsoleOutput(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        self._must_exist([asked["InstanceId"]])
        return self._forward(environ, asked)

    def _do_DescribeAccountAttributes(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        if not self.quirks.account_attributes:
            raise Refused("InvalidAction", "The action DescribeAccountAttributes is not valid")
        quota = -1 if self.quirks.quota is None else self.quirks.quota
        text = (
            "<accountAttributeSet><item><attributeName>max-instances</attributeName><attributeValueSet><item>"
            f"<attributeValue>{quota}</attributeValue></item></attributeValueSet></item></accountAttributeSet>"
        )
        return 200, answer_text("DescribeAccountAttributes", text)

    def _do_DescribeInstanceTypes(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        if not self.quirks.instance_types:
            raise Refused("InvalidAction", "The action DescribeInstanceTypes is not valid")
        return self._of_flavors(environ, asked)

    def _of_flavors(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:
        question = urlencode(sorted(asked.items()))
        if question not in self._flavors:
            self._flavors[question] = self._forward(environ, asked)
        return self._flavors[question]

    _do_DescribeInstanceTypeOfferings = _of_flavors  # noqa: N815

    def _do_DescribeSpotPriceHistory(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        if self.quirks.spot:
            raise Refused("InvalidAction", "The action DescribeSpotPriceHistory is not valid")
        return self._forward(environ, asked)

    # ------------------------------------------------------------------------------------------- instances

    def state(self, one: str) -> str:
        """What the endpoint would say of this instance now."""
        now, ended = time.monotonic(), self._ended.get(one)
        if ended is not None:
            return "terminated" if now >= ended + self.quirks.stops_in else "shutting-down"
        if one in self._resting:
            return "stopped"
        return "running" if now >= self._born[one] + self.quirks.boots_in else "pending"

    def exists(self, one: str) -> bool:
        return one in self._born and one not in self._ended

    def standing(self) -> list[str]:
        return [one for one in self._born if one not in self._ended]

    def multiply(self, one: str, times: int) -> None:
        """List so many more machines like this one. moto makes fifty a second, and knows none of these."""
        with self._lock:
            assert self._items is not None, "list them once before"
            for number in range(times):
                twin = f"i-{number:017x}"
                self._born[twin] = self._born[one]
                self._items[twin] = self._twins[twin] = self._items[one].replace(one, twin)

    def user_data(self, one: str) -> bytes:
        text = next(item.user_data for item in self.backend.all_instances() if item.id == one)
        raw = text if isinstance(text, bytes) else str(text).encode()
        return base64.b64decode(raw)

    def _listed(self, one: str) -> bool:
        now, ended = time.monotonic(), self._ended.get(one)
        if now < self._born[one] + self.quirks.shows_after:
            return False
        return ended is None or now < ended + self.quirks.stops_in + self.quirks.keeps_terminated

    def _must_exist(self, named: Iterable[str]) -> None:
        hidden = self.quirks.hidden_unknown
        missing = [one for one in named if one not in self._born or (hidden and not self._listed(one))]
        if missing:
            text = f"The instance IDs '{', '.join(missing)}' do not exist"
            raise Refused("InvalidInstanceID.NotFound", text)

    def _all(self, environ: dict[str, Any]) -> dict[str, str]:
        """Each instance as moto describes it, asked for again only after a change: moto is slow at it."""
        if self._items is None:
            asked = {"Action": "DescribeInstances", "Version": "2016-11-15", "MaxResults": "100000"}
            _, answer = self._forward(environ, asked)
            self._items = dict(items(self._stripped(answer.decode()))) | self._twins
        return self._items

    def _stripped(self, text: str) -> str:
        if self.quirks.client_token:
            text = re.sub(r"<clientToken>.*?</clientToken>", "", text)
        if self.quirks.metadata_options:
            text = re.sub(r"<metadataOptions>.*?</metadataOptions>", "", text, flags=re.DOTALL)
        return text

    def _with_state(self, one: str, item: str) -> str:
        name = self.state(one)
        code = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopped": 80}[name]
        state = f"<instanceState><code>{code}</code><name>{name}</name></instanceState>"
        return re.sub(r"<instanceState>.*?</instanceState>", state, item, count=1, flags=re.DOTALL)


# ---------------------------------------------------------------------------------------------- the text


def answer_text(action: str, inner: str) -> bytes:
    name = f"{action}Response"
    space = "http://ec2.amazonaws.com/doc/2016-11-15/"
    return f'<{name} xmlns="{space}"><requestId>r</requestId>{inner}</{name}>'.encode()


def error_text(code: str, message: str) -> bytes:
    inner = f"<Code>{code}</Code><Message>{message}</Message>"
    return f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>r</RequestID></Response>".encode()


def items(text: str) -> Iterator[tuple[str, str]]:
    """Every `<item>` of every `<instancesSet>`, by its instance's id."""
    for block in ITEM.findall(text):
        depth, begun = 0, 0
        for mark in re.finditer(r"<(/?)item>", block):
            if not mark.group(1):
                begun = mark.start() if depth == 0 else begun
                depth += 1
                continue
            depth -= 1
            if depth == 0:
                item = block[begun : mark.end()]
                found = re.search(r"<instanceId>(.*?)</instanceId>", item)
                if found:
                    yield found.group(1), item


def filters(asked: Parameters) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, name in asked.items():
        if re.fullmatch(r"Filter\.\d+\.Name", key):
            start = key.removesuffix("Name") + "Value."
            found[name] = [value for other, value in asked.items() if other.startswith(start)]
    return found


def matches(item: str, wanted: dict[str, list[str]]) -> bool:
    tags = dict(re.findall(r"<item>\s*<key>(.*?)</key>\s*<value>(.*?)</value>\s*</item>", item, re.DOTALL))
    for name, values in wanted.items():
        if name.startswith("tag:"):
            if tags.get(name[4:]) not in values:
                return False
        elif name == "instance-id":
            if not any(f"<instanceId>{value}<" in item for value in values):
                return False
        else:
            raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")
    return True


class Handler(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Nothing: the endpoint has its own log."""


class Served:
    """The endpoint on a port of the loopback."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import create_backend_app

        self.endpoint = Endpoint(create_backend_app("ec2"))
        self._server = make_server("127.0.0.1", 0, self.endpoint, threaded=True, request_handler=Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{PATH}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

"""The process of `ec2site.py` beside it: moto's endpoint, whose instances may be machines of a local cloud.

`python -m tests.rigs.clouds.ec2server HOST PORT [STATE_DIR IMAGE]`. Questions come on stdin, each a
JSON list on a line; answers go to stdout. With the state directory of a local cloud every instance
is a machine of that cloud, made from IMAGE, with the same id, user-data, address, state and console.
"""

import base64
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import moto.ec2.models.instances as moto_instances
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from tests.rigs.clouds.ec2endpoint import Endpoint, Handler, Parameters, Quirks, Refused, answer_text
from updraft.clouds.local import process
from updraft.clouds.local.client import Client

# What each state of a local cloud's machine is called by EC2.
STATES = {"pending": "pending", "running": "running", "stopping": "shutting-down", "terminated": "terminated"}
FLAVORS = {"t3.medium": "medium"}  # alike to the last MiB
LOOK_EVERY = 0.2


class BridgedEndpoint(Endpoint):
    """Every instance that is made here is a machine of a local cloud, and is what that machine is."""

    def __init__(self, moto: Callable[..., Iterable[bytes]], client: Client, image: str) -> None:
        super().__init__(moto)
        self._client = client
        self._image = image
        self._made = 0
        self._looked = 0.0
        self._machines: dict[str, dict[str, Any]] = {}
        self._asked: Parameters = {}
        # moto draws an id for each instance: now it is that of the machine that is made for it.
        moto_instances.random_instance_id = self._run_one

    def _do_RunInstances(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        self._asked = asked
        return super()._do_RunInstances(environ, asked)

    def _run_one(self) -> str:
        self._made += 1
        zones = sorted({offer["zone"] for offer in self._client.offers()})
        flavor = FLAVORS.get(self._asked["InstanceType"])
        if flavor is None:
            raise Refused("InvalidParameterValue", f"no machine here is like {self._asked['InstanceType']}")
        (machine,) = self._client.run(
            key=f"ec2-{self._made}",
            count=1,
            image=self._image,
            flavor=flavor,
            zone=zones[self._made % len(zones)],
            market="on-demand",
            user_data=base64.b64decode(self._asked.get("UserData", "")),
        )
        self._machines[machine["id"]] = machine
        return str(machine["id"])

    def _do_TerminateInstances(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        answer = super()._do_TerminateInstances(environ, asked)
        if answer[0] == 200:
            self._client.terminate(value for key, value in asked.items() if key.startswith("InstanceId."))
            self._looked = 0.0
        return answer

    def _do_GetConsoleOutput(self, environ: dict[str, Any], asked: Parameters) -> tuple[int, bytes]:  # noqa: N802
        one = asked["InstanceId"]
        self._must_exist([one])
        text = base64.b64encode(self._client.console(one).encode()).decode()
        return 200, answer_text("GetConsoleOutput", f"<instanceId>{one}</instanceId><output>{text}</output>")

    def state(self, one: str) -> str:
        """What the machine of this id does; one that the local cloud has forgotten has ended."""
        if time.monotonic() - self._looked > LOOK_EVERY:
            self._machines = {machine["id"]: machine for machine in self._client.machines()}
            self._looked = time.monotonic()
        return STATES[self._machines[one]["state"]] if one in self._machines else "terminated"

    def _with_state(self, one: str, item: str) -> str:
        text = super()._with_state(one, item)
        address = self._machines[one]["address"] if one in self._machines else ""
        return re.sub(r"(<privateIpAddress>)[^<]*", rf"\g<1>{address}", text)


class Timed:
    """Notes from when to when the endpoint was at work."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.spans: list[tuple[float, float]] = []

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        begun = time.monotonic()
        try:
            return self.endpoint(environ, start)
        finally:
            self.spans.append((begun, time.monotonic()))


class Answers:
    """What `EC2Site.ask` can ask."""

    def __init__(self, timed: Timed) -> None:
        self._timed = timed
        self._endpoint = timed.endpoint

    def log(self) -> list[dict[str, Any]]:
        offset = time.time() - time.monotonic()
        return [
            {
                "at": call.at + offset,
                "action": call.action,
                "who": call.who,
                "count": int(call.parameters.get("MaxCount", 0)),
            }
            for call in list(self._endpoint.log)
        ]

    def spans(self) -> list[tuple[float, float]]:
        return self._timed.spans

    def standing(self) -> list[str]:
        return self._endpoint.standing()

    def quirks(self, changes: dict[str, Any]) -> None:
        for name, value in changes.items():
            setattr(self._endpoint.quirks, name, value)

    def multiply(self, one: str, times: int) -> None:
        self._endpoint.multiply(one, times)


def main(host: str, port: str, state_dir: str = "", image: str = "") -> None:
    moto = DomainDispatcherApplication(create_backend_app)
    cloud = process.find(Path(state_dir)) if state_dir else None
    endpoint = Endpoint(moto) if cloud is None else BridgedEndpoint(moto, cloud.client(), image)
    endpoint.quirks = Quirks()
    timed = Timed(endpoint)
    server = make_server(host, int(port), timed, threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    answers = Answers(timed)
    print(json.dumps({"port": server.server_port}), flush=True)  # noqa: T201  # the answer
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        print(json.dumps(getattr(answers, what)(*arguments)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])

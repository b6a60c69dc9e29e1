from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import botocore.hooks
import botocore.session
import pytest
from botocore.client import ClientCreator
from botocore.hooks import EventAliaser, NodeList
from botocore.loaders import Loader
from botocore.retries.standard import ExponentialBackoff

from tests.rigs.clouds.ec2endpoint import Served


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """moto's server, once for all tests: its data take a second, and would take ten with its own images."""
    import moto.core.responses

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        # Every driver has a session of its own, and each would read EC2's description anew.
        loader = Loader()
        patch.setattr(botocore.session, "create_loader", lambda *_: loader)
        for made in ("_create_client_class", "_load_service_model"):
            patch.setattr(ClientCreator, made, _made_once(getattr(ClientCreator, made)))
        patch.setattr(EventAliaser, "_alias_event_name", _aliased_once(EventAliaser._alias_event_name))
        # That each of these handlers takes what events bring needs no look at its signature each time.
        patch.setattr(botocore.hooks, "accepts_kwargs", lambda _: True)
        # Every client has a copy of a session's five hundred handlers.
        patch.setattr(NodeList, "__copy__", lambda nodes: NodeList(*(part[:] for part in nodes)))
        # moto looks for the names of its methods at each call.
        names = moto.core.responses.method_names_from_class
        patch.setattr(moto.core.responses, "method_names_from_class", cache(names))
        # How long the SDK waits before it tries again is its own business, and up to seconds.
        patch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.01)
        served = Served()
        yield served
        served.stop()


def _made_once(make: Callable[..., Any]) -> Callable[..., Any]:
    """What is the same for all clients of a service (a class with hundreds of methods), made once."""
    made: dict[str, Any] = {}

    def once(creator: ClientCreator, service: str, *more: object, **named: object) -> Any:
        if service not in made:
            made[service] = make(creator, service, *more, **named)
        return made[service]

    return once


def _aliased_once(alias: Callable[[EventAliaser, str], str]) -> Callable[[EventAliaser, str], str]:
    """The hundred events that every session registers for have the same names in each."""
    known: dict[str, str] = {}

    def once(aliaser: EventAliaser, name: str) -> str:
        if name not in known:
            known[name] = alias(aliaser, name)
        return known[name]

    return once


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known credentials, and none of whoever runs the tests."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "EC2_URL", "EC2_ACCESS_KEY", "EC2_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "driver")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-seen")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")

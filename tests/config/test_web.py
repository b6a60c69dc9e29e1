"""What [web] may say."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from updraft.config.tables.web import Web, split_listen


def test_by_default_it_is_this_machine_alone_and_no_header_is_believed() -> None:
    said = Web()
    assert split_listen(said.listen) == ("127.0.0.1", 8642)
    assert said.socket is None
    assert said.user_header == ""
    assert said.operators == ()


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:80", "192.0.2.7:80", "[::]:80", "head:80", "127.0.0.1", ":1", "127.0.0.1:x"]
)
def test_a_page_for_the_world_is_refused(listen: str) -> None:
    with pytest.raises(ValidationError, match="an address of this machine"):
        Web(listen=listen)


def test_addresses_of_both_families() -> None:
    assert split_listen("[::1]:80") == ("::1", 80)
    assert split_listen("127.0.0.2:65535") == ("127.0.0.2", 65535)


def test_a_header_is_believed_from_a_socket_only() -> None:
    with pytest.raises(ValidationError, match="set socket, too"):
        Web(user_header="X-Remote-User")
    assert Web(user_header="X-Remote-User", socket=Path("/run/x.sock")).user_header == "X-Remote-User"


@pytest.mark.parametrize("name", ["Cookie", "host", "X Remote", "X:y", "x" * 65, "X\r\nY"])
def test_what_can_be_no_header_of_a_user(name: str) -> None:
    with pytest.raises(ValidationError, match="can't be the header"):
        Web(user_header=name, socket=Path("/run/x.sock"))


def test_somewhere_it_has_to_be() -> None:
    with pytest.raises(ValidationError, match="nobody could look"):
        Web(listen="")


def test_operators_may_be_one() -> None:
    assert Web.model_validate({"operators": "carol"}).operators == ("carol",)

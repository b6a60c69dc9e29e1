"""A layer's variables: read with the configuration, replaced at the launch, in no other place."""

import socket
from pathlib import Path
from typing import Any

import pytest

from updraft import config
from updraft.app.variables import OF_THE_HEAD, fill
from updraft.app.wiring import worker_spec
from updraft.config.model import Settings
from updraft.config.values.checks import HEAD_VARIABLES
from updraft.core.model import Launch, Offer, Reason, Resources
from updraft.errors import BootstrapError, ConfigError, PoolError

TEXT = """\
[pool]
name = "p"
{pool}
[clouds.here]
driver = "fake"

[classes.default]
image = "worker"
layers = {layers}
"""
ADDRESSES = {"IPV4_ADDRESS": "10.64.22.190", "IPV6_ADDRESS": "fd00::2", "FULL_HOSTNAME": "head.example.org"}
SETTINGS = {
    **ADDRESSES,
    "TRUST_DOMAIN": "p.test",
    "UID_DOMAIN": "p.test",
    "COLLECTOR_HOST": "head.example.org",
}


def loaded(folder: Path, layers: str, pool: str = "") -> Settings:
    path = folder / "updraft.toml"
    path.write_text(TEXT.format(layers=layers, pool=pool))
    return config.load(path)


def launched(settings: Settings, said: dict[str, str] | None = None) -> list[object]:
    """The contents of the layers that a launch gets."""

    def ask(name: str) -> str:
        known = SETTINGS if said is None else {**SETTINGS, **said}
        if not known.get(name):
            raise PoolError(f"Not defined: {name}")
        return known[name]

    offer = Offer(
        "default",
        "here",
        "a",
        "small",
        "on-demand",
        "worker",
        settings.generation("default"),
        Resources(2, 2),
        "k",
    )
    made = worker_spec(settings, ask, Launch("L1", offer, 1, Reason("demand", "x")), "eyJ.a.b")
    return [layer.content for layer in made.layers]


def test_the_names_are_the_same_in_both_rooms() -> None:
    assert HEAD_VARIABLES == OF_THE_HEAD


def test_the_heads_addresses_are_found_at_the_launch(tmp_path: Path) -> None:
    text = '"#!/bin/sh\\necho %ipv4% %ipv6% %fqdn% %path%"'
    layers = f'[{{ text = {text}, variables = {{ ipv4 = "", ipv6 = "", fqdn = "" }} }}]'
    assert launched(loaded(tmp_path, layers)) == [
        "#!/bin/sh\necho 10.64.22.190 fd00::2 head.example.org %path%"
    ]


def test_a_layer_that_asks_for_none_is_left_alone(tmp_path: Path) -> None:
    assert launched(loaded(tmp_path, '["#!/bin/sh\\necho %ipv4%"]')) == ["#!/bin/sh\necho %ipv4%"]


def test_a_file_may_have_variables_too_and_a_value_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("#cloud-config\nruncmd: [[mount, '%server%:/home', /home]]\n")
    layers = '[{ file = "site.yaml", variables = { server = "nfs.example.org" } }]'
    assert launched(loaded(tmp_path, layers)) == [{"runcmd": [["mount", "nfs.example.org:/home", "/home"]]}]


def test_away_from_the_head_the_collectors_name_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def found(host: str, _port: object, family: int, _kind: object) -> list[Any]:
        asked.append(host)
        return [(family, None, None, "", ("192.0.2.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    layers = '[{ text = "#!/bin/sh\\n%ipv4% %fqdn%", variables = { ipv4 = "", fqdn = "" } }]'
    settings = loaded(tmp_path, layers, 'collector = "head.example.org:9618"')
    assert launched(settings) == ["#!/bin/sh\n192.0.2.7 head.example.org"]
    assert asked == ["head.example.org"]


def test_a_value_that_cannot_be_found_is_one_sentence(tmp_path: Path) -> None:
    settings = loaded(tmp_path, '[{ text = "#!/bin/sh\\n%ipv6%", variables = { ipv6 = "" } }]')
    with pytest.raises(BootstrapError, match=r"%ipv6%.*variables = \{ ipv6"):
        launched(settings, {"IPV6_ADDRESS": ""})


def test_a_value_is_never_code() -> None:
    with pytest.raises(BootstrapError, match="not one plain word"):
        fill("l", "#!/bin/sh\necho %ipv4%", {"ipv4": ""}, lambda _: "1.2.3.4; reboot")
    once = fill("l", "%a% %b%", {"a": "x", "b": "y"}, lambda _: "")
    assert once == "x y"


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        ('[{ text = "#!/bin/sh", variables = { server = "" } }]', "no value for %server%"),
        ('[{ text = "#!/bin/sh", variables = { ipv4 = "a b" } }]', "not one plain word"),
        ('[{ text = "#!/bin/sh", variables = { "a-b" = "x" } }]', 'has the variable "a-b"'),
        ('[{ text = "#!/bin/sh", file = "x" }]', "either file"),
        ("[{ variables = {} }]", "either file"),
        ('[{ text = "#!/bin/sh", vars = {} }]', 'no key "vars"'),
        ('[{ text = "echo" }]', "must begin with"),
        ("[{ text = 3 }]", "either file"),
        ('[{ text = "#!/bin/sh", variables = 3 }]', "no table"),
    ],
)
def test_a_layer_that_is_none_is_named_with_its_line(tmp_path: Path, layers: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        loaded(tmp_path, layers)
    assert "line 9" in str(caught.value)


def test_variables_make_another_generation(tmp_path: Path) -> None:
    texts = ("", ", variables = { a = '1' }", ", variables = { a = '2' }")
    layers = [f"[{{ text = '#!/bin/sh %a%'{more} }}]" for more in texts]
    found = [loaded(tmp_path, one).generation("default") for one in layers]
    assert len(set(found)) == 3
    assert found[0] == loaded(tmp_path, "['#!/bin/sh %a%']").generation("default")

"""Layers merge by their rules, and what comes out is what went in."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.reading import cloud_config, parts, plain
from updraft.bootstrap import Layer, compose, parse_layer
from updraft.errors import BootstrapError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
HOSTILE = st.sampled_from(
    [
        "yes",
        "0o17",
        "1e3",
        "~",
        "null",
        "- a",
        "a: b",
        "#!x",
        "{{ x }}",
        "$(reboot)",
        "`id`",
        "'\"\\",
        "%s",
        "\x85",
        "\x00",
        " lead",
        "trail ",
        "\n\n",
        "a\n  b\n",
        "\ta\n",
        "From x\n",
        "--==updraft",
        "\r\n",
        "\ufeff",
        "!!python/none",
        "  \n b",
        "a\n\n ",
        "\u2028x\n",
        "x\n# y",
        "😀\n1",
    ]
)
LEAF = TEXT | HOSTILE | st.booleans() | st.integers() | st.none()
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)
CONFIG = st.dictionaries(TEXT | HOSTILE, VALUE, max_size=5).filter(
    lambda config: {"merge_how", "merge_type"}.isdisjoint(config)
)


@pytest.mark.slow
@given(CONFIG)
def test_any_cloud_config_comes_back_as_it_was(config: dict[str, Any]) -> None:
    assert cloud_config(compose([Layer("any", config)], limit=10**9)) == config


@given(CONFIG, st.lists(TEXT | HOSTILE, min_size=1, max_size=3))
def test_any_script_comes_back_as_it_was(config: dict[str, Any], bodies: list[str]) -> None:
    scripts = [Layer(f"s{index}", f"#!/bin/sh\n{body}") for index, body in enumerate(bodies)]
    found = parts(compose([*scripts, Layer("any", config)], limit=10**9))
    assert yaml.safe_load(found[0][1]) == config
    assert found[1:] == [("text/x-shellscript", script.content) for script in scripts]


@given(CONFIG, TEXT)
def test_the_same_layers_give_the_same_bytes(config: dict[str, Any], body: str) -> None:
    layers = [Layer("a", config), Layer("b", "#!/bin/sh\n" + body)]
    assert compose(layers, limit=10**9) == compose(list(layers), limit=10**9)


def test_lists_append_mappings_merge_and_the_later_scalar_wins() -> None:
    first = {"runcmd": [["a"]], "ntp": {"enabled": False, "servers": ["x"]}, "locale": "C"}
    second = {"runcmd": ["b"], "ntp": {"enabled": True, "pools": ["p"]}, "locale": "de_DE"}
    assert cloud_config(compose([Layer("first", first), Layer("second", second)])) == {
        "runcmd": [["a"], "b"],
        "ntp": {"enabled": True, "servers": ["x"], "pools": ["p"]},
        "locale": "de_DE",
    }
    assert first["runcmd"] == [["a"]], "what was given must not change"


def test_a_list_and_a_scalar_contradict_each_other() -> None:
    with pytest.raises(
        BootstrapError, match=r"layer 'site': 'ntp\.servers' is a single value here and a list"
    ):
        compose([Layer("own", {"ntp": {"servers": ["x"]}}), Layer("site", {"ntp": {"servers": "y"}})])


def test_a_layer_that_merges_itself_stays_a_part_of_its_own() -> None:
    own, site = {"runcmd": ["a"]}, {"merge_how": "list(append)", "runcmd": ["b"]}
    found = [yaml.safe_load(text) for _, text in parts(compose([Layer("own", own), Layer("site", site)]))]
    assert found == [own, site]


def test_nothing_at_all_is_an_empty_cloud_config() -> None:
    assert compose([]) == b"#cloud-config\n{}\n"


def test_what_is_too_large_names_its_size_the_limit_and_the_biggest_layers() -> None:
    noise = "".join(chr(33 + (index * index * 7919) % 90) for index in range(5000))
    layers = [Layer("small", {"a": 1}), Layer("huge", "#!/bin/sh\n# " + noise)]
    size = len(compose(layers))
    assert compose(layers, limit=size)
    with pytest.raises(BootstrapError, match=rf"{size} bytes.* takes {size - 1}.*: 'huge' \(5\d\d\d bytes"):
        compose(layers, limit=size - 1)


def test_it_is_compressed_where_that_is_smaller() -> None:
    long = compose([Layer("long", {"runcmd": ["echo again"] * 200})])
    assert long[:2] == b"\x1f\x8b"
    assert long[4:8] == b"\0\0\0\0", "no time in it"
    assert plain(long).startswith(b"#cloud-config\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("packages: [a]", "first line must be '#cloud-config'"),
        ("", "first line must be '#cloud-config'"),
        ("#cloud-configuration\na: 1", "first line must be '#cloud-config'"),
        ("#cloud-config\n- a\n", "must be a mapping"),
        ("#cloud-config\n1: a\n", "must be a mapping"),
        ("#cloud-config\na: [\n", r"no YAML: line 3"),
        ("#cloud-config\na: !!python/object:os.system {}\n", r"no YAML: line 2"),
    ],
)
def test_a_site_layer_that_is_none_says_so_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BootstrapError, match=sentence) as caught:
        parse_layer("my-site", text)
    assert "'my-site'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_site_layers_are_read() -> None:
    assert parse_layer("x", "#cloud-config \r\npackages: [git]\n").content == {"packages": ["git"]}
    assert parse_layer("x", "#cloud-config\n").content == {}
    assert parse_layer("x", "#!/usr/bin/env python3\nprint()\n").is_script


def test_an_error_in_a_layer_does_not_show_its_secrets() -> None:
    with pytest.raises(BootstrapError) as caught:
        parse_layer("my-site", "#cloud-config\npassword: hunter2: [\n")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(parse_layer("x", "#cloud-config\npassword: hunter2\n"))

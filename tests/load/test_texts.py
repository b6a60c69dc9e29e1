"""The texts that a load test gives HTCondor, and those that people read."""

from pathlib import Path

import pytest

from tests.load.test_figures import FINE, REAL
from updraft.load import ads, conf, look, sender, words
from updraft.load.schedule import Load


def test_children_grow_with_the_pool() -> None:
    assert [conf.children_for(number) for number in (1, 2500, 5000, 20_000)] == [2, 2, 4, 16]


def test_our_configuration_has_a_tree_and_enough_descriptors() -> None:
    text = conf.tuned(5000, 3)
    assert [f"use FEATURE:ChildCollector({child})" in text for child in (1, 2, 3, 4)] == [
        True,
        True,
        True,
        False,
    ]
    assert "COLLECTOR_MAX_FILE_DESCRIPTORS = 40000\n" in text
    assert "COLLECTOR_MAX_FILE_DESCRIPTORS = 10240\n" in conf.tuned(10, 2)


def test_the_leaves_of_a_tree_are_found_by_their_arguments() -> None:
    listed = "MASTER COLLECTOR, NEGOTIATOR COLLECTOR1 COLLECTOR02 COLLECTOR3"
    arguments = [("COLLECTOR1", "-sock collector1"), ("COLLECTOR02", "-f -p 10002"), ("COLLECTOR3", "")]
    assert conf.leaves("10.0.0.2", listed, arguments) == ("10.0.0.2?sock=collector1", "10.0.0.2:10002")


def test_a_head_without_children_is_its_own_leaf() -> None:
    assert conf.leaves("10.0.0.2", "MASTER COLLECTOR SCHEDD", [("COLLECTOR", "")]) == ("10.0.0.2",)


def test_each_real_startd_has_its_own_name_directory_and_collector() -> None:
    text = conf.real_startds(3, "10.0.0.2", ("10.0.0.2?sock=a", "10.0.0.2?sock=b"), "pool.test")
    assert [f"STARTD{n}.EXECUTE = {conf.REAL_HOME}/execute/{n}\n" in text for n in (1, 2, 3, 4)] == [
        True
    ] * 3 + [False]
    assert "STARTD1.COLLECTOR_HOST = 10.0.0.2?sock=b\n" in text
    assert "STARTD2.COLLECTOR_HOST = 10.0.0.2?sock=a\n" in text


def test_dummy_jobs_are_of_as_many_groups() -> None:
    text = conf.dummy_jobs(3, 20)
    assert text.endswith("queue 20 memory in (256, 257, 258)\n")
    assert "request_memory = $(memory)\n" in text


def test_an_update_is_the_ads_of_one_machine_with_its_number() -> None:
    made = ads.made(ads.Update(seat=70_000, life=2, number=5, started=1000, sent=1500.25))
    kinds = [(command, str(ad["MyType"])) for command, some in made.items() for ad in some]
    assert kinds == [
        ("UPDATE_STARTD_AD", "StartD"),
        ("UPDATE_STARTD_AD", "Machine"),
        ("UPDATE_MASTER_AD", "DaemonMaster"),
    ]
    for ad in (ad for some in made.values() for ad in some):
        assert ad["Machine"] == "load-070000-2"
        assert (ad["UpdateSequenceNumber"], ad["DaemonStartTime"], ad[ads.SENT]) == (5, 1000, 1500.25)
    slot = made["UPDATE_STARTD_AD"][1]
    assert slot["Name"] == "slot1@load-070000-2@load-070000-2"
    assert len(slot) > 150


def test_every_ad_of_a_load_may_be_sent_with_the_token_of_the_load() -> None:
    """By the rule of updraft's heads: a slot that another launch than the token's is named by isn't taken."""
    import classad2

    from tests.condor.tokens.test_tokens import DOMAIN, taken
    from updraft.load import head

    told = conf.real_startds(1, "10.0.0.2", ("10.0.0.2",), "pool.test")
    (attributes,) = [line for line in told.splitlines() if line.startswith("STARTD_ATTRS")]
    pairs = dict(line.split(" = ", 1) for line in told.splitlines() if " = " in line)
    real = classad2.ClassAd({"MyType": "Machine", "Name": f"slot1@{pairs['STARTD1.STARTD_NAME']}@host"})
    for name in attributes.split(" = ")[1].split():
        real[name] = classad2.ExprTree(pairs.get(name) or pairs[f"STARTD1.{name}"])
    sent = [ad for some in ads.made(ads.Update(1, 0, 1, 0, 0.0)).values() for ad in some]
    for ad in [*sent, real]:
        ad["AuthenticatedIdentity"] = head.IDENTITY.partition("@")[0] + f"@{DOMAIN}"
        assert taken(**ad)
    sent[1]["UpdraftLaunch"] = "another"
    assert not taken(**sent[1])


def test_the_slot_of_an_update_takes_a_job_that_fits_and_no_greater_one() -> None:
    import classad2

    slot = ads.made(ads.Update(1, 0, 1, 1000, 1500.0))["UPDATE_STARTD_AD"][1]
    for memory, fits in ((1024, True), (1 << 20, False)):
        job = classad2.ClassAd({"RequestCpus": 1, "RequestMemory": memory, "RequestDisk": 1024})
        assert slot["Requirements"].eval(slot, job) is fits


def test_no_two_machines_have_one_address() -> None:
    updates = [ads.Update(seat, life, 1, 0, 0.0) for seat in range(0, 70_000, 7) for life in range(3)]
    assert len({update.address for update in updates}) == len(updates)


def test_an_order_survives_its_way_to_the_head() -> None:
    order = sender.Order(Load(10, seed=3), 1, 2, 1234.5, ("a", "b"), "/tokens")
    assert sender.read(order.text()) == order
    assert [order.collector(seat) for seat in (0, 1, 2)] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("words_", "name"),
    [
        (["condor_collector", "-f"], "collector"),
        (["/usr/sbin/condor_collector", "-local-name", "COLLECTOR3", "-sock", "collector3"], "collector 3"),
        (["condor_startd", "-f", "-local-name", "STARTD12"], "startd 12"),
        (["condor_shadow", "1.0", "--schedd=<x>"], "shadow"),
        (["/bin/sh", "condor_master"], ""),
        ([], ""),
    ],
)
def test_a_daemon_is_known_by_its_command_line(words_: list[str], name: str) -> None:
    assert look.name_of(words_) == name


def test_daemons_are_read_from_proc(tmp_path: Path) -> None:
    entry = tmp_path / "77"
    (entry / "fd").mkdir(parents=True)
    for number in range(5):
        (entry / "fd" / str(number)).touch()
    (entry / "cmdline").write_bytes(b"condor_collector\0-local-name\0COLLECTOR1\0")
    (entry / "smaps_rollup").write_text(
        "55-ff ---p 0 0:0 0 [rollup]\nRss:   2048 kB\nPss:   1024 kB\nPss_Dirty: 9 kB\n"
    )
    (entry / "status").write_text("Name:\tcondor\nVmHWM:\t    4096 kB\nThreads:\t1\n")
    (entry / "stat").write_text("77 (a b) S " + " ".join(["1"] * 10) + " 150 50 0\n")
    (entry / "limits").write_text("Limit  Soft  Hard\nMax open files            1024     4096     files\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "78").mkdir()  # it has ended while it was looked at
    (found,) = look.daemons(tmp_path)
    assert (found["name"], found["descriptors"], found["descriptor_limit"]) == ("collector 1", 5, 1024)
    assert (found["rss"], found["pss"], found["peak"]) == (2 << 20, 1 << 20, 4 << 20)


def test_what_isnt_known_is_shown_as_such_and_extrapolations_say_so() -> None:
    from dataclasses import replace

    from updraft.load import figures

    blind = replace(FINE, status=None, status_longest=None, cycle=None, duty=None)
    rich = replace(FINE, machines=5000, extrapolated=figures.extrapolated(REAL, 5000, 4))
    rows = {row[0]: row[1:] for row in words.rows([blind, rich])}
    assert rows["condor_status (≤ 3 s)"] == ["?", "0.50 s"]
    assert rows["negotiation cycle (≤ 60 s)"] == ["?", "6 s (5.5 s CPU)"]
    assert rows["shadows, MiB (extrapolated)"] == ["?", "15,000"]
    said = words.sentences([replace(FINE, gives_out=("too slow",)), rich], REAL)
    assert said[:2] == ["1000 machines: too slow", "5000 machines: carries this load"]
    assert any("not measured" in line for line in said)

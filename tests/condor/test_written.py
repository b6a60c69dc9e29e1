"""Conditions on what an ad says as it is written: true of what is meant, and cheap whatever it says."""

import time

import classad2
import pytest

from updraft.condor.written import said, says, says_number, says_plainly, says_text

LADDER = "; ".join(f"R{rung} = R{rung + 1} + R{rung + 1}" for rung in range(200))
KNOWN = ("RequestCpus", "RequestMemory")
PLAIN = (
    *("3600", "-1e30", "0.5", '"x\\"y"', '"caf\\351"', "true", "undefined", "{1, true}", "1 isnt 2"),
    *("RequestCpus * 3600", "MY.requestcpus + 1", "TARGET.Memory * 2", "ifThenElse(RequestCpus > 1, 3, 4)"),
)
NOT_PLAIN = (
    *("R0", "RequestCpus2", "xRequestCpus", "RequestCpus.Foo", "TARGET.Foo.Bar", "[ a = b ]", '"a" + R0'),
    *("{1, R0}", "'R0'", "ifThenElse(R0, 1, 2)", "MY.R0", ".R0"),
)


def true_of(condition: str, what: str) -> bool:
    ad = classad2.ClassAd(f"[ {LADDER}; A = {what} ]" if what else f"[ {LADDER} ]")
    begun = time.process_time()
    found = classad2.ExprTree(condition).eval(ad)
    assert time.process_time() - begun < 0.3, "it was evaluated"
    return found is True


@pytest.mark.parametrize("what", PLAIN)
def test_what_refers_to_nothing_of_its_owners_is_plain(what: str) -> None:
    assert true_of(says_plainly(KNOWN, (), ("Other", "A")), what)


@pytest.mark.parametrize("what", NOT_PLAIN)
def test_what_refers_to_anything_else_is_not(what: str) -> None:
    assert not true_of(says_plainly(KNOWN, (), ("Other", "A")), what)


@pytest.mark.parametrize("what", ["RequestCpus", "A", "R0", "DiskUsage", "{ [ b = 1 ] }"])
def test_the_first_level_refers_to_nothing(what: str) -> None:
    assert not true_of(says_plainly(("A", "DiskUsage"), ("Other",), ("RequestCpus",)), what)


@pytest.mark.parametrize("level", [1, 2])
def test_no_level_refers_to_itself_or_to_a_later_one(level: int) -> None:
    levels = [("Low",), ("B1",), ("B2",)]
    levels[level] = (*levels[level], "A")
    own, later = ("B1", "B2") if level == 1 else ("B2", "A")
    assert true_of(says_plainly(*levels), "Low + 1")
    assert not true_of(says_plainly(*levels), f"Low + {own}")
    assert not true_of(says_plainly(*levels), f"Low + {later}")
    assert true_of(says_plainly(*levels), "Low" + " + Low" * 60)
    assert not true_of(says_plainly(*levels), "Low" + " + Low" * 4_000), (
        "the schedd looks through the product"
    )


def test_what_htcondor_writes_is_plain() -> None:
    levels = (("DiskUsage", "ResidentSetSize"), ("A", "MemoryUsage"), ("B",))
    assert true_of(says_plainly(*levels), "((ResidentSetSize + 1023) / 1024)")
    assert true_of(says_plainly(("DiskUsage",), (), ("A",)), "DiskUsage")
    default = "MAX({ 1024,(TransferInputSizeMB + 1) * 1.25 }) * 1024"
    assert true_of(says_plainly(("TransferInputSizeMB",), (), ("A",)), default)
    assert not true_of(says_plainly(("DiskUsage",), (), ("A",)), default)
    for number in ("1.25", "-1e-30", "1.5E+10"):
        assert true_of(says_plainly(("A",)), number)
    for name in ("E", "E+1", "3 + E", "trueR0", "true.R0", "R0true", "-R0"):
        assert not true_of(says_plainly(("A",)), name)
    # A function's name may be an attribute's, too.
    for what in ("Max", "Max + 1", "ifThenElse", "MAX * (1)"):
        assert not true_of(says_plainly(*levels), what)
    for what in ("ResidentSetSize2", "xResidentSetSize", "MemoryUsage", "MemoryUsage + 1"):
        assert not true_of(says_plainly(*levels), what)


def test_a_text_hides_no_length_of_what_stands_beside_it() -> None:
    levels = (("Low",), ("A",), ("B2",))
    assert true_of(says_plainly(("Low", "A"), ("B2",)), '"`"')
    assert not true_of(says_plainly(*levels), 'strcat("`")' + " + Low" * 4_000)


def test_no_condition_has_a_backslash_but_before_a_quote() -> None:
    """By HTCondor's old rules, by which a daemon reads it, any other backslash stands for itself."""
    for condition in (says_plainly(("A",), ("B",), ("C",)), says_text("A"), says_number("A")):
        assert "\\" not in condition.replace('\\"', "")


@pytest.mark.parametrize("long", ['"' + "x" * (1 << 20) + '"', "{" + ",".join(["1"] * 100_000) + "}"])
def test_the_longest_is_judged_at_once(long: str) -> None:
    assert true_of(says_plainly(("A",), KNOWN), long)
    assert not true_of(says_plainly(("A",), KNOWN), long + " + R0")


def test_nothing_is_plain() -> None:
    assert true_of(says_plainly(("A", "B"), ()), "")
    assert true_of(says_plainly((), KNOWN), "R0")
    assert says_plainly((), ()) == "true"


@pytest.mark.parametrize(
    ("condition", "true", "false"),
    [
        (said("A"), ("R0", "1", '""'), ("",)),
        (says("A", "1", "2"), ("1", "2"), ("R0", "11", "", '"1"')),
        (says("A", '"Machine"'), ('"Machine"', '"machine"'), ("Machine", "R0", "")),
        (says_text("A"), ('"x"', '"a\\"b"', '""'), ("R0", '"a" + R0', "1", "")),
        (says_number("A"), ("0", "12", "-1.5", "1e30"), ("R0", '"1"', "1 + R0", "")),
    ],
)
def test_conditions_on_literals(condition: str, true: tuple[str, ...], false: tuple[str, ...]) -> None:
    assert [what for what in true if not true_of(condition, what)] == []
    assert [what for what in false if true_of(condition, what)] == []

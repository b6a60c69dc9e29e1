"""Keys are types: a machine is known by its `MachineId` and no bare pair, how it differs by its `Variant`."""

import ast
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import updraft
from updraft.core import model
from updraft.core.model import AtWork, MachineId, MachineRecord, Plan, Questions, Untaken, variant
from updraft.documents import plain
from updraft.ledger.rows import at_work_from_doc, at_work_to_doc, dump, machine_from_doc, machine_to_doc
from updraft.recording.codec import MACHINES, Decoder, Encoder

SOURCE = Path(updraft.__file__).parent
IMITATED = "sim/rivals/"  # what other people's programs do, with data of their own
ROOMS = ("core", "act", "ledger", "observe")  # where machines are known by a key
PAIRS = {
    *("Verdicts", "pair", "__iter__"),  # a job group and a kind of slot
    *("boots", "kind", "_asker"),  # an image and a flavor; a machine and whether it runs
    *("Person", "name", "shared", "weights", "cores"),  # users, and what they are of
    *("classes", "_known", "claimed"),  # users again
    *("Item", "spared"),  # what was left out: its sort and its key
    *("_resting", "groups", "named", "_name"),  # a scope and a key, and other things by sort and name
    *("sides", "names", "bones", "Bones", "skeletons"),  # the two sides of a match
    "Labels",
}
"""What is annotated with a pair of texts in these rooms, and isn't a machine."""
EAST, WEST = MachineId("east", "i-2"), MachineId("west", "i-1")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(IMITATED):
            yield name, ast.parse(path.read_text())


def word(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def bare(tree: ast.Module) -> Iterator[str]:
    """The tuples of a cloud and an id that are made there and given to neither `MachineId` nor a database."""
    rows = {
        id(given)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and word(call.func) == "execute"
        for given in call.args
    }
    for node in ast.walk(tree):
        made = isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and id(node) not in rows
        if not made or len(node.elts) != 2:
            continue
        cloud, machine = map(word, node.elts)
        if cloud.endswith("cloud") and machine in ("id", "machine", "instance_id", "machine_id"):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def annotated(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What is annotated, or is another name of a type, with its words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            yield word(node.target), ast.unparse(node.annotation)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            yield node.arg, ast.unparse(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.name, ast.unparse(node.returns)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            yield word(node.targets[0]), ast.unparse(node.value)


@pytest.mark.slow
def test_no_module_makes_a_bare_pair_of_a_cloud_and_an_id() -> None:
    found = {name: lines for name, tree in modules() if (lines := list(bare(tree)))}
    assert found == {}


@pytest.mark.slow
def test_no_annotation_says_a_pair_of_texts_for_a_machine() -> None:
    found = {
        (module, name)
        for module, tree in modules()
        if module.split("/")[0] in ROOMS
        for name, words in annotated(tree)
        if "tuple[str, str]" in words and name not in PAIRS
    }
    assert found == set()


@pytest.mark.slow
def test_no_annotation_says_a_text_for_a_variant() -> None:
    found = {
        (module, words)
        for module, tree in modules()
        if module.split("/")[0] in ROOMS
        for name, words in annotated(tree)
        if name == "variant" and words != "Variant"
    }
    assert found == set()


def test_it_is_a_pair_that_says_what_it_is_of() -> None:
    assert sorted([WEST, EAST]) == [EAST, WEST] == [("east", "i-2"), ("west", "i-1")]
    assert {EAST: 1}["east", "i-2"] == 1
    assert (str(EAST), EAST.cloud, EAST.id) == ("east/i-2", "east", "i-2")


def test_a_recording_writes_pairs_and_reads_machine_ids() -> None:
    doubted = Untaken(1, 2.0, 3.0, doubted=(EAST, WEST))
    machines = frozenset({EAST, WEST})
    for value in (AtWork(machines, 1.0), Plan(at_work=machines), Questions(machines, machines), doubted):
        written = Encoder().encode(value)
        assert dump([["east", "i-2"], ["west", "i-1"]]) in dump(written)
        read = Decoder().decode(written)
        assert read == value
        kept = [getattr(read, field) for name, field in MACHINES if name == type(value).__name__]
        assert {type(one) for some in kept for one in some} == {MachineId}


def test_a_recording_knows_every_field_that_holds_machine_ids() -> None:
    fields = {
        (name, field.name)
        for name, found in vars(model).items()
        if dataclasses.is_dataclass(found)
        for field in dataclasses.fields(found)
        if "MachineId" in str(field.type)
    }
    assert fields == MACHINES


def test_documents_recordings_and_the_ledger_write_the_text_of_a_variant() -> None:
    machine = MachineRecord(
        "i-2", "east", "k", "w", "small", "g", 1.0, variant=variant("image=a%2Fb&user=eve")
    )
    assert machine.variant.image == "a/b"
    assert json.loads(machine_to_doc(machine))["variant"] == "image=a%2Fb&user=eve"
    assert machine_from_doc(machine_to_doc(machine)) == machine
    assert plain(machine)["variant"] == "image=a%2Fb&user=eve"
    written = Encoder().encode(machine)
    assert written["variant"] == "image=a%2Fb&user=eve"
    assert Decoder().decode(written) == machine


def test_the_ledger_writes_the_ids_of_each_cloud_and_reads_machine_ids() -> None:
    written = dump(at_work_to_doc([WEST, EAST]))
    assert written == '{"east":["i-2"],"west":["i-1"]}'
    read = at_work_from_doc(written)
    assert read == {EAST, WEST}
    assert {type(one) for one in read} == {MachineId}

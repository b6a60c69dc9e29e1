"""What updraft has made in the clouds and nobody uses any more."""

from collections.abc import Iterator, Mapping

from updraft.checks.asking import Answer
from updraft.checks.finding import Area, Finding
from updraft.core.leftovers import LeftoverState
from updraft.core.reasons import listed

_SHOWN = 3
_WORDS: Mapping[LeftoverState, str] = {
    LeftoverState.LEFT: "left over",
    LeftoverState.UNUSED: "not used by anything",
    LeftoverState.REFUSED: "labelled with the pool's name but not proven to be its own",
}


def judge(answer: Answer) -> Iterator[Finding]:
    """A warning for what costs money for nothing; what may be wanted again is told of."""
    area = Area("left in the clouds")
    if answer.error is not None:
        yield area.skipped("leftovers", f"{answer.error}", "`updraft leftovers` waits longer")
        return
    found = {fate: [one.thing for one in answer.value or () if one.fate is fate] for fate in _WORDS}
    for fate, things in found.items():
        names = [f"{one.kind} {one.name or one.id} in {one.cloud}" for one in things]
        text = f"{listed(names, _SHOWN)}: {_WORDS[fate]}"
        if things and fate is LeftoverState.LEFT:
            yield area.warning("leftovers", text, "`updraft leftovers --remove` removes it")
        elif things:
            yield area.ok("leftovers", f"{text}; `updraft leftovers` lists it")
    if not any(found.values()):
        yield area.ok("leftovers", "nothing is left over")

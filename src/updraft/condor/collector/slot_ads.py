"""The ads of slots, asked so that one that can't be read costs itself. Runs in a child process.

HTCondor's library gives a whole answer up for one ad in it that it can't read, and what is written into an ad
is its machine's owner's. Which ads those are is found by halves, and of each as much is asked for as can be
read: fewer and fewer attributes, in the end only its name. How few is remembered, so that the search is paid
for once.

A slot whose `Name` is no text, or one that can't be asked for as it is, goes by another name, of its machine
or its address, and is no room. Where the library can't even read that attribute, this holds for all slots of
its machine; where that can't be told either, for all of the identity that advertised it, which the collector
writes into each ad itself.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from updraft.condor.advalues import integer, text
from updraft.condor.base import ATTR_INSTANCE, ATTR_LAUNCH, ATTR_POOL, SHOWN_IDENTITY
from updraft.condor.collector.odd_ads import UNREAD, Odd, Steps
from updraft.core.halving import failing

SLOTS = 'MyType == "Machine" && DynamicSlot =!= true'
_OTHERWISE = ["Machine", "SlotID", "MyAddress", "LastHeardFrom"]
_BY_COLLECTOR = ["LastHeardFrom", SHOWN_IDENTITY]
_WHOSE = ("Machine", SHOWN_IDENTITY)
_NAMELESS = (
    [*_OTHERWISE, SHOWN_IDENTITY, ATTR_POOL, ATTR_INSTANCE, ATTR_LAUNCH],
    _OTHERWISE,
    ["Machine", *_BY_COLLECTOR],
    _BY_COLLECTOR,
)
_LONGEST = 512  # bytes of a name: no longer text is read
# No backslash and nothing that only one can write: a collector reads a condition by HTCondor's old rules, in
# which it stands for itself, and so it would never find the name.
_SPELLED = "[] -[^-~[:^ascii:]]*"
_NAMED = f'(isString(Name) && size(Name) < {_LONGEST} && regexp("^{_SPELLED}$", Name))'
_MACHINE = 'split(Name, "@")[1]'  # of a worker's slot: `slot1@MACHINE@host`
_UNSPELLED = re.compile(r"[\x00-\x1f\x7f\\]")
# Ads are asked for by name up to this many; for more, all are read once.
_BY_NAME = 1_000
# Questions that fail, in one search: what is not told apart by then is read with less, until the next look.
_FAILURES = 100


class SlotAds:
    """Implements `reread.AdSource` with a collector of the bindings."""

    def __init__(self, source: Any, odd: Odd) -> None:
        self._source = source
        self._odd = odd
        self._without: list[str] = []

    def marks(self) -> Iterable[Any]:
        self._odd.begin()
        found = self._told(None, self._odd.marks)
        self._odd.ads.forget(self._odd.ads.step.keys() - {text(ad, "Name") for ad in found})
        return found

    def ads(self, names: Sequence[str] | None) -> Iterable[Any]:
        found = self._told(names, self._odd.ads)
        # Which custom resources there are, the slots say first, and then are asked how many of each.
        return self._told(names, self._odd.ads) if self._odd.learns(found) else found

    def at_work(self, names: Sequence[str]) -> Iterable[str]:
        busy = 'MyType == "Machine" && DynamicSlot && Activity == "Busy"'
        return [text(ad, "Name") for ad in whole_of(self._source, busy, names, ["Name"])] if names else ()

    @property
    def projection(self) -> Sequence[str]:
        """The attributes that are asked of an ad that can be read whole."""
        return self._odd.ads.ladder[0]

    @property
    def _slots(self) -> str:
        """The condition for all slots but those of hidden machines, and of such as are left out."""
        others = f"{SLOTS} && !{self._hidden}" if self._odd.hidden else SLOTS
        if not self._without:
            return others
        return f"{others} && {among(_MACHINE, self._without)} =!= true"

    def leave_out(self, machines: Iterable[str]) -> None:
        """Ask for no slots that have one of these in their names, after the first @."""
        self._without = sorted(machines)

    @property
    def _hidden(self) -> str:
        """The condition for the slots of whoever is hidden, never undefined."""
        texts = ([one for of, one in self._odd.hidden if of == what] for what in _WHOSE)
        return f"({' || '.join(f'{among(*each)} =?= true' for each in zip(_WHOSE, texts, strict=True))})"

    def _told(self, names: Sequence[str] | None, steps: Steps) -> list[Any]:
        """The ads of these slots, of each as much as can be read; the nameless ones by other names."""
        found = self._by_name(names, steps)
        told = [ad for ad in found if _name(ad)]
        if names is not None:
            return [*told, *self._nameless()] if self._odd.nameless.intersection(names) else told
        bare = len(found) - len(told)
        nameless = self._nameless() if bare or self._odd.hidden else []
        if bare > len(nameless) and self._hide(self._unlike_texts()):
            return self._told(names, steps)
        self._odd.nameless = {text(ad, "Name") for ad in nameless}
        return [*told, *nameless]

    def _nameless(self) -> list[Any]:
        """The ads of those without a name, with as little as tells whose they are, and other names."""
        import htcondor2

        these = f"{SLOTS} && ({_NAMED} =!= true || {self._hidden})"
        found: list[Any] = []
        for step in _NAMELESS:
            try:
                found = list(self._ask(these, step))
                break
            except htcondor2.HTCondorException:
                self._ask("false", ["Name"])  # raises where it is the collector that fails
        taken: Counter[str] = Counter()
        for ad in found:
            ad["Name"] = _otherwise(ad, taken)
            ad[UNREAD] = True
        return found

    def _hide(self, whose: Iterable[tuple[str, str]]) -> bool:
        """Ask for no names of these slots; whether there is anything new among them."""
        fresh = {(what, one) for what, one in whose if one} - self._odd.hidden
        self._odd.hidden |= fresh
        return bool(fresh)

    def _unlike_texts(self) -> Iterable[tuple[str, str]]:
        """Whose slots have names that are texts to the collector and not to the library."""
        import htcondor2

        these = f"{self._slots} && {_NAMED}"
        try:
            ads = self._ask(these, ["Name", *_WHOSE])
        except htcondor2.HTCondorException:
            ads = self._ask(these, ["Name", SHOWN_IDENTITY])
        for ad in ads:
            if not _name(ad):
                what = next((one for one in _WHOSE if text(ad, one)), SHOWN_IDENTITY)
                yield what, text(ad, what)

    def _names(self) -> list[Any]:
        """The ads of all slots with nothing but names; whoever has one that can't be read is hidden.

        Raises what the library raises where it isn't for that.
        """
        import htcondor2

        for what in _WHOSE:
            try:
                return list(self._ask(self._slots, ["Name"]))
            except htcondor2.HTCondorException:
                self._ask("false", ["Name"])  # raises where it is the collector that fails
                self._hide((what, one) for one in self._unreadable(what))
        return list(self._ask(self._slots, ["Name"]))

    def _unreadable(self, what: str) -> list[str]:
        """Who, by this attribute, has slots whose names can't be read; nobody where it can't be told."""
        import htcondor2

        def fails(some: Sequence[str]) -> bool:
            try:
                self._ask(f"{self._slots} && {among(what, some)}", ["Name"])
            except htcondor2.HTCondorException:
                return True
            return False

        try:
            found = {text(ad, what) for ad in self._ask(self._slots, [what])} - {""}
        except htcondor2.HTCondorException:
            return []
        return failing(sorted(found), fails)

    def _by_name(self, names: Sequence[str] | None, steps: Steps) -> list[Any]:
        """The ads of these slots, and, where all are asked for, maybe of some without a name."""
        steps.begin()
        wanted = None if names is None or len(names) > _BY_NAME else set(names)
        odd = {name for name in steps.step if wanted is None or name in wanted}
        untold = odd - steps.alone
        steps.forget(untold)
        found = self._usual(wanted, odd, steps)
        found += self._halves([sorted(untold)], 0, steps)
        for step in range(1, len(steps.ladder)):
            here = {name for name, at in steps.step.items() if at == step}
            there = sorted(here if wanted is None else here & wanted)
            ads = self._halves([there], step, steps)
            steps.forget(set(there) - {text(ad, "Name") for ad in ads} - _below(steps, step))
            for ad in ads:
                ad[UNREAD] = True
            found += ads
        return found

    def _usual(self, wanted: set[str] | None, odd: set[str], steps: Steps) -> list[Any]:
        """The ads of all that aren't odd: where there is no other way, in parts."""
        import htcondor2

        if wanted is not None:
            return self._halves([sorted(wanted - odd)], 0, steps)
        if len(odd) <= _BY_NAME:
            # Also those whose names can't be compared.
            others = f"{self._slots} && {among('Name', odd)} =!= true" if odd else self._slots
            try:
                return list(self._ask(others, steps.ladder[0]))
            except htcondor2.HTCondorException:
                pass  # which it is for, the parts will tell
        ads = self._names()
        every = sorted({_name(ad) for ad in ads} - odd - {""})
        bare = [ad for ad in ads if not _name(ad)]
        return bare + self._halves(
            [every[at : at + _BY_NAME] for at in range(0, len(every), _BY_NAME)], 0, steps
        )

    def _halves(self, parts: list[list[str]], step: int, steps: Steps) -> list[Any]:
        """The ads of these slots that can be read at this step; the others go one down."""
        import htcondor2

        found: list[Any] = []
        failures = 0
        while parts:
            part = parts.pop()
            if not part:
                continue
            try:
                found += self._ask(f"{self._slots} && {among('Name', part)}", steps.ladder[step])
            except htcondor2.HTCondorException:
                failures += 1
                half = len(part) // 2
                if half and failures < _FAILURES:
                    parts += [part[:half], part[half:]]
                    continue
                self._ask("false", ["Name"])  # raises where it is the collector that fails
                if step + 1 == len(steps.ladder):
                    raise
                steps.down(part, step)
        return found

    def _ask(self, constraint: str, projection: list[str]) -> Iterable[Any]:
        import htcondor2

        return self._source.query(htcondor2.AdType.Startd, constraint, projection)  # type: ignore[no-any-return]


def _name(ad: Any) -> str:
    """The slot's name if one can ask for it by that; "" otherwise."""
    try:
        said = ad.get("Name")
        fits = isinstance(said, str) and len(said.encode()) < _LONGEST and not _UNSPELLED.search(said)
        return said if fits else ""
    except Exception:  # the library's errors are of many kinds: it is no text of Unicode
        return ""


def _otherwise(ad: Any, taken: Counter[str]) -> str:
    """A name for a slot that has none, unlike those that are `taken`."""
    machine, slot = text(ad, "Machine"), integer(ad, "SlotID")
    name = (f"slot{slot}@{machine}" if slot and machine else machine) or text(ad, "MyAddress")
    whose = "" if name else f" of {text(ad, SHOWN_IDENTITY) or 'an unknown advertiser'}"
    taken[name or whose] += 1
    number = taken[name or whose]
    if not name:
        return f"unnamed-{number}{whose}"
    return name if number == 1 else f"{name}#{number}"


def _below(steps: Steps, step: int) -> set[str]:
    return {name for name, at in steps.step.items() if at > step}


def whole(source: Any, names: Sequence[str]) -> Iterable[Any]:
    """The whole ads of these slots; without those that can't be read."""
    return whole_of(source, SLOTS, names) if names else ()


def whole_of(
    source: Any, constraint: str, names: Sequence[str], projection: Sequence[str] = ()
) -> Iterable[Any]:
    """The ads of these names, without those that can't be read: of these nothing can be learned."""
    import htcondor2

    try:
        return source.query(  # type: ignore[no-any-return]
            htcondor2.AdType.Startd, named(constraint, names), list(projection)
        )
    except htcondor2.HTCondorException:
        if len(names) == 1:
            return ()
        source.query(
            htcondor2.AdType.Startd, "false", ["Name"]
        )  # raises where it is the collector that fails
        half = len(names) // 2
        parts = (names[:half], names[half:])
        return [ad for part in parts for ad in whole_of(source, constraint, part, projection)]


def named(constraint: str, names: Sequence[str]) -> str:
    """The constraint for ads of these names; for many names, that of all ads."""
    return constraint if len(names) > _BY_NAME else f"{constraint} && {among('Name', names)}"


def among(attribute: str, names: Iterable[str]) -> str:
    """A constraint that holds where the attribute is one of these texts, in any case; with none, nowhere.

    A tree of comparisons: each ad takes as many of them as the number of names has binary digits. A list, or
    a chain of `||`, takes as many as there are names, and HTCondor gives up on a long chain.
    """
    import classad2

    # In the order in which a ClassAd compares texts.
    unique = sorted({name.encode().lower(): name for name in names}.items())
    quoted = [classad2.quote(name) for _, name in unique]

    def tree(low: int, high: int) -> str:
        if high - low == 1:
            return f"{attribute} == {quoted[low]}"
        middle = (low + high) // 2
        return f"({attribute} < {quoted[middle]} ? {tree(low, middle)} : {tree(middle, high)})"

    return f"({tree(0, len(quoted))})" if quoted else "false"

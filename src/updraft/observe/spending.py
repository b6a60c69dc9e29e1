"""What the records say was spent: asked of the ledger every half minute, and whenever it wasn't known."""

from collections.abc import Callable
from functools import partial

from updraft.core.model import BudgetScope, Known, Reason, Source, Spent, Unknown
from updraft.core.settings import DAY, Policy
from updraft.errors import LedgerError
from updraft.observe.sources import Asker, Asking

EVERY = 30.0
"""Seconds for which an answer serves, if the records were fresh: what runs meanwhile is reckoned."""
PATIENCE = 10.0
"""Seconds that a look waits for it: a file that others lock is given up after five."""
ReadSpent = Callable[[float, bool], Spent | None]
"""What was spent in the day and month of a time, by users too or not; None where nothing is recorded yet."""
_NONE_YET = Reason(
    "spending-unknown", "what was spent is known once the daemon's first look is in the records"
)
_PEOPLE = (BudgetScope.USER, BudgetScope.GROUP)


class SpendingAsker:
    """Asks what was spent where a policy has budgets of money, and remembers the answer for a while.

    It is read beside the other sources, since it takes a while: `start` when a look begins, `ask` at its end.
    """

    def __init__(self, read: ReadSpent | None, asking: Asking | None = None) -> None:
        self._read = read
        self._asker: Asker[tuple[bool, Spent | Reason | None]] = Asker(
            "the records of what was spent", stale_after=2 * EVERY, asking=asking
        )
        self._last: Known[Spent] | None = None
        self._for: tuple[object, ...] = ()

    def start(self, policy: Policy, now: float) -> None:
        """Begin to read it, where that is due."""
        if not policy.spending or self._read is None:
            return
        people = any(one.scope in _PEOPLE for one in policy.spending)
        due = (people, int(now // DAY))
        if self._last is not None and self._for == due and 0 <= now - self._last.at < EVERY:
            return
        self._last, self._for = None, due
        self._asker.ask(partial(self._found, now, people), now)

    def _found(self, now: float, people: bool) -> tuple[bool, Spent | Reason | None]:
        """What the records say, or why they can't be read; with whether users were asked for."""
        assert self._read is not None  # noqa: S101 (else nobody asks)
        try:
            return people, self._read(now, people)
        except LedgerError as error:
            return people, Reason("spending-unknown", f"what was spent can't be read: {error}")

    def ask(self, policy: Policy, now: float) -> Source[Spent] | None:
        """What was spent, as far as it is known; None where no budget asks for it."""
        if not policy.spending or self._read is None:
            return None
        self.start(policy, now)
        if self._last is not None:
            return self._last
        source = self._asker.answer(PATIENCE, now)
        if isinstance(source, Unknown):
            return Unknown(Reason("spending-unknown", source.error.text), source.since)
        people, found = source.value
        if found is None or people != self._for[0]:  # a late answer to what was asked before a reload
            return Unknown(_NONE_YET, now)
        if isinstance(found, Reason):
            return Unknown(found, now)
        answer = Known(found, source.at)
        if 0 <= now - found.at < EVERY:  # older records are soon followed by others
            self._last = answer
        return answer

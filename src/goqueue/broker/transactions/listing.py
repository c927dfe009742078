"""Transactions in lists: a page at a time, and in turns where those that are wanted are few among many."""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from itertools import islice
from typing import NamedTuple

from goqueue.broker.transactions.steps import TransactionSteps
from goqueue.broker.transactions.transactions import Transactions
from goqueue.machines.name_table import page_of_all
from goqueue.machines.patterns import matcher, regex_problem
from goqueue.machines.transactions.facts import State, TransactionChanged
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused

BEGUN, ALL = "Begun", "all"
OPEN = frozenset({BEGUN, State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT})
MAY_BE_BEGUN = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
PATTERN_CHARS_MAX = 1000
PER_TURN = 200
"""Transactional ids that are looked at before others get their turn."""


class Shown(NamedTuple):
    state: str
    """As the coordinator calls it, or BEGUN."""
    transaction: TransactionChanged


class Page(NamedTuple):
    transactions: list[Shown]
    following: str | None
    """Where to go on; None: that was all."""


class Wanted(NamedTuple):
    """The filters of Kafka's ListTransactions; an empty one lets all pass."""

    states: Collection[str] = ()
    producer_ids: Collection[int] = ()
    longer_than_ms: int = -1
    pattern: str = ""

    def matches(self) -> Callable[[str], bool]:
        """Refused: it is no pattern."""
        if not self.pattern:
            return lambda _name: True
        problem = "too long" if len(self.pattern) > PATTERN_CHARS_MAX else regex_problem(self.pattern)
        if problem is not None:
            raise Refused(Code.INVALID_REGULAR_EXPRESSION, problem)
        found = matcher(self.pattern)
        return lambda name: bool(found(name))


class TransactionList:
    def __init__(self, transactions: Transactions, steps: TransactionSteps) -> None:
        self._transactions = transactions
        self._steps = steps

    def shown_state(self, known: TransactionChanged) -> str:
        is_begun = known.state is not State.ONGOING and self._steps.is_begun(known)
        return BEGUN if is_begun else str(known.state)

    def paging(
        self, state: str | None, after: str | None, limit: int, skip: int = 0, prefix: str = ""
    ) -> Generator[None, None, Page]:
        """By transactional id: those in this state, None: those that are open. Whoever goes on from where a page ends
        sees each once that is in that state all the while. `prefix`: only ids that begin so.
        """
        wanted = OPEN if state is None else frozenset(State) | {BEGUN} if state == ALL else {state}
        found: list[Shown] = []
        names = self._names(wanted, after or prefix or None)
        while names:
            for name in names:
                if not name.startswith(prefix):  # they come in their order
                    return Page(found, None)
                known = self._transactions.peek().get(name)
                if known is None or self.shown_state(known) not in wanted:
                    continue
                if skip:
                    skip -= 1
                elif len(found) == limit:
                    return Page(found, found[-1].transaction.transactional_id)
                else:
                    found.append(Shown(self.shown_state(known), known))
            yield
            names = self._names(wanted, names[-1])
        return Page(found, None)

    def _names(self, wanted: Collection[str], after: str | None) -> list[str]:
        states = [state for state in State if state in wanted]
        names = self._transactions.peek().page(states, after, PER_TURN)
        if BEGUN in wanted:
            names = sorted({*names, *page_of_all((self._steps.begun,), after, PER_TURN)})[:PER_TURN]
        return names

    def counting(self) -> Generator[None, None, Counter[str]]:
        """How many there are in each state. Those that were begun and not used are looked at one by one, since they end
        by themselves; all others are counted as they change.
        """
        machine = self._transactions.peek()
        begun: Counter[str] = Counter()
        names = self._steps.begun.page(None, PER_TURN)
        while names:
            for known in filter(None, map(machine.get, names)):
                if self.shown_state(known) == BEGUN:
                    begun[known.state] += 1
            yield
            names = self._steps.begun.page(names[-1], PER_TURN)
        counts = Counter({str(state): machine.count(state) - begun[state] for state in State})
        counts[BEGUN] = begun.total()
        return +counts

    def counting_of(self, prefix: str) -> Generator[None, None, Counter[str]]:
        """The same of those whose ids begin so, one by one."""
        counts: Counter[str] = Counter()
        page: Page | None = None
        while page is None or page.following is not None:
            after = None if page is None else page.following
            page = yield from self.paging(ALL, after, PER_TURN, prefix=prefix)
            counts.update(each.state for each in page.transactions)
        return counts

    def walking(self, wanted: Wanted) -> Iterator[list[TransactionChanged]]:
        """All that pass the filters, some at a time: others may have their turn before the next are asked for.
        Refused: the pattern is none.
        """
        return self._walk(wanted, wanted.matches())

    def _walk(self, wanted: Wanted, matches: Callable[[str], bool]) -> Iterator[list[TransactionChanged]]:
        for names in self._names_of(wanted):
            known = (self._transactions.peek().get(name) for name in names)
            yield [each for each in known if each is not None and self._passes(each, wanted, matches)]

    def _names_of(self, wanted: Wanted) -> Iterator[list[str]]:
        machine = self._transactions.peek()
        if wanted.producer_ids:
            ids = iter(dict.fromkeys(wanted.producer_ids))
            while some := list(islice(ids, PER_TURN)):
                yield [each.transactional_id for each in filter(None, map(machine.of_producer, some))]
            return
        states = [state for state in State if not wanted.states or state in wanted.states]
        names = machine.page(states, None, PER_TURN)
        while names:
            yield names
            names = machine.page(states, names[-1], PER_TURN) if len(names) == PER_TURN else []

    def _passes(self, each: TransactionChanged, wanted: Wanted, matches: Callable[[str], bool]) -> bool:
        if wanted.states and each.state not in wanted.states:
            return False
        if wanted.longer_than_ms >= 0:
            lasted_ms = self._transactions.now_ms(each.transactional_id) - each.start_ms
            if not (each.partitions or each.groups) or lasted_ms <= wanted.longer_than_ms:
                return False
        return matches(each.transactional_id)

    def find(self, transaction_id: str) -> TransactionChanged | None:
        """By the id that `begin` gave; None: it is not the last one of its producer, or there is none."""
        kind, _, rest = transaction_id.partition("-")
        number = rest.partition("-")[0]
        is_number = number.isascii() and number.isdigit() and len(number) < 20
        known = self._transactions.peek().of_producer(int(number)) if kind == "txn" and is_number else None
        return known if known is not None and self._steps.transaction_id(known) == transaction_id else None

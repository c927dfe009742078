"""Transactions that end together: many producers of one writer, one decision, and a mark that tells a repetition.

The writer is a job with many tasks. Each task writes in a transaction of its own and leaves it open; whoever runs the
job ends them all. The facts are one append to the ledger, so a crash leaves all of them decided or none.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest

from msgspec.structs import replace

from goqueue.machines.deadlines import Deadlines
from goqueue.machines.machine import Fact
from goqueue.machines.transactions.commands import EndTogether, TogetherReply
from goqueue.machines.transactions.facts import NOBODY, MarkSet, State, TransactionChanged, decided, fenced
from goqueue.model.codes import Code
from goqueue.records.batch import NO_PRODUCER

KEY_CHARS_MAX = 1000
NO_MARK = -1


class Marks:
    """How far each writer has come; as long as it is remembered."""

    def __init__(self, expiry_ms: int) -> None:
        self._expiry_ms = expiry_ms
        self._marks: dict[str, MarkSet] = {}
        self.deadlines = Deadlines()

    def get(self, name: str) -> int:
        found = self._marks.get(name)
        return NO_MARK if found is None else found.mark

    def is_over(self, name: str) -> bool:
        found = self._marks.get(name)
        return found is not None and found.is_over

    def has(self, name: str) -> bool:
        return name in self._marks

    def page(self, after: str, count: int) -> list[str]:
        """The next names, sorted."""
        return nsmallest(count, (name for name in self._marks if name > after))

    def facts(self) -> Iterator[Fact]:
        yield from self._marks.values()

    def put(self, fact: MarkSet) -> None:
        self._marks.pop(fact.name, None)  # their order is that of their last changes
        self._marks[fact.name] = fact
        self.deadlines.set(fact.name, fact.set_ms + self._expiry_ms)

    def remove(self, name: str) -> None:
        """A ledger may tell of it twice."""
        self._marks.pop(name, None)
        self.deadlines.clear(name)


def writer_of(transactional_id: str) -> str:
    """Whose task has this id, if it is one of many."""
    return transactional_id.rpartition("/")[0]


def decide_together(
    command: EndTogether,
    marks: Marks,
    get: Callable[[str], TransactionChanged | None],
    open_ids: Iterable[str],
    now_ms: int,
) -> tuple[list[Fact], TogetherReply]:
    """`open_ids` are those with an open transaction."""
    family, mark, was_over = command.key + "/", marks.get(command.key), marks.is_over(command.key)
    wrong = _wrong(command, family)
    if wrong:
        return [], TogetherReply(Code.INVALID_REQUEST, message=wrong)
    is_repeated = command.commit and mark >= command.mark
    chosen: dict[str, TransactionChanged] = {}
    facts: list[Fact] = []
    if command.commit and not is_repeated:
        if was_over:
            return [], TogetherReply(Code.INVALID_TXN_STATE, message="nothing is committed: the writer has ended")
        for name, producer_id, epoch in command.transactions:
            known = get(name)
            if known is None or known.identity != (producer_id, epoch) or known.state is not State.ONGOING:
                return [], _refusal(name, known, (producer_id, epoch))
            chosen[name] = known
        facts.append(MarkSet(command.key, command.mark, now_ms, command.forgets))
    elif command.forgets and not was_over:
        facts.append(MarkSet(command.key, mark, now_ms, True))
    ended = [
        decided(known, commit=True, bumps_epoch=False, next_producer_id=NO_PRODUCER, now_ms=now_ms)
        for known in chosen.values()
    ]
    for name in open_ids:
        left = get(name) if name.startswith(family) and name not in chosen else None
        if left is not None:
            # Over its producer's head: whoever is still at it must not go on.
            ended.append(fenced(left, NOBODY, now_ms))
    facts += [replace(each, is_last=True) for each in ended] if command.forgets else ended
    return facts, TogetherReply(Code.NONE, is_repeated)


def _wrong(command: EndTogether, family: str) -> str:
    if not 0 < len(command.key) <= KEY_CHARS_MAX:
        return f"the key of a writer has 1 to {KEY_CHARS_MAX} characters"
    if command.commit and command.mark < 0:
        return f"mark {command.mark} is negative"
    stranger = next((name for name, _, _ in command.transactions if not name.startswith(family)), None)
    return "" if stranger is None else f"transactional id {stranger!r} does not begin with {family!r}"


def _refusal(name: str, known: TransactionChanged | None, claimed: tuple[int, int]) -> TogetherReply:
    if known is None or known.identity[0] != claimed[0]:
        code, why = Code.INVALID_PRODUCER_ID_MAPPING, "it is not known (any more)"
    elif known.identity != claimed:
        code, why = Code.PRODUCER_FENCED, "it took longer than its timeout, or another producer has taken over"
    else:
        code, why = Code.INVALID_TXN_STATE, f"its state is {known.state}"
    return TogetherReply(code, message=f"nothing is committed: transaction {name!r} is not open: {why}")

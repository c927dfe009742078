"""The transaction coordinator: who may write for a transactional id, and what became of each transaction.

Two phases. The decision to commit or abort is stored (Prepare) and answered; from then on it stands, whatever crashes.
`markers_due` then lists what must be written into partitions and groups, again after every restart, until it is
reported as written (Complete). Until then the producer is asked to wait: CONCURRENT_TRANSACTIONS.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from goqueue.machines.deadlines import Deadlines
from goqueue.machines.find_names import FindNames, FoundNames, page_of
from goqueue.machines.machine import Fact, Outcome, Tick
from goqueue.machines.name_table import NameTable, page_of_all
from goqueue.machines.transactions.commands import (
    AddGroup,
    AddPartitions,
    CodeReply,
    EndTogether,
    EndTransaction,
    InitProducer,
    MarkerJob,
    MarkersWritten,
    Partition,
    ProducerIdWanted,
    ProducerReply,
)
from goqueue.machines.transactions.facts import (
    COMPLETE,
    EPOCH_GIVEN_MAX,
    NOBODY,
    PREPARED,
    Identity,
    MarkersNoted,
    MarkExpired,
    MarkSet,
    State,
    TransactionChanged,
    TransactionExpired,
    completed,
    decided,
    enlisted,
    fenced,
    handed_over,
    mark_name_of,
    transactional_id_of,
)
from goqueue.machines.transactions.together import Marks, decide_together, writer_of
from goqueue.model.codes import Code
from goqueue.model.ids import GROUP_ID_CHARS_MAX, TRANSACTIONAL_ID_CHARS_MAX
from goqueue.records.batch import NO_PRODUCER

_DUE_MAX = 1000  # per tick: what is left is due at once in the next


class TransactionOptions(msgspec.Struct, frozen=True):
    timeout_ms_max: int = 15 * 60 * 1000
    expiry_ms: int = 7 * 24 * 60 * 60 * 1000
    """How long a transactional id is remembered without a transaction, and a mark."""


class TransactionMachine:
    """Implements `Machine`. `coordinator_epoch` is the reign of the ledger's leader: partitions refuse older ones."""

    def __init__(self, options: TransactionOptions | None = None, coordinator_epoch: int = 0) -> None:
        self._options = options or TransactionOptions()
        self._coordinator_epoch = coordinator_epoch
        self._transactions: dict[str, TransactionChanged] = {}
        # The rest follows from the transactions, but for which markers are already written.
        self._names: dict[int, str] = {}
        self._by_state: dict[State, NameTable[None]] = {state: NameTable() for state in State}
        self._enlisted: dict[str, frozenset[Partition | str]] = {}
        self._due: dict[str, dict[Partition | str, None]] = {}
        """Partitions and groups of prepared transactions that still wait for their marker."""
        self._deadlines = Deadlines()
        self._marks = Marks(self._options.expiry_ms)

    # Questions

    def get(self, transactional_id: str) -> TransactionChanged | None:
        return self._transactions.get(transactional_id)

    @property
    def coordinator_epoch(self) -> int:
        return self._coordinator_epoch

    def begin_reign(self, epoch: int) -> None:
        """It was a follower's, and is the leader's from now on."""
        self._coordinator_epoch = epoch

    def of_producer(self, producer_id: int) -> TransactionChanged | None:
        """None: no producer of transactions has this id (any more)."""
        name = self._names.get(producer_id)
        return None if name is None else self._transactions[name]

    def verify(self, producer_id: int, epoch: int, place: Partition | str) -> Code:
        """May a transactional batch go into this partition, or offsets into the group of this name?"""
        name = self._names.get(producer_id)
        if name is None:
            return Code.INVALID_PRODUCER_ID_MAPPING
        if self._transactions[name].epoch != epoch:
            return Code.INVALID_PRODUCER_EPOCH
        return Code.NONE if place in self._enlisted.get(name, ()) else Code.INVALID_TXN_STATE

    def is_open(self, producer_id: int, epoch: int, topic: str, partition: int) -> bool:
        return self.verify(producer_id, epoch, (topic, partition)) is Code.NONE

    def markers_due(self, names: Iterable[str] | None = None) -> list[MarkerJob]:
        """What is still to be written for these transactional ids, or for all, oldest decision first. The same job is
        listed until it is reported.
        """
        jobs = []
        for name in list(self._due) if names is None else names:
            places, of = self._due.get(name), self._transactions.get(name)
            if places is None or of is None:
                continue
            jobs.append(
                MarkerJob(
                    name,
                    of.producer_id,
                    of.epoch,
                    of.written_epoch,
                    self._coordinator_epoch,
                    of.serial,
                    of.state is State.PREPARE_COMMIT,
                    *_sorted_out(places),
                )
            )
        return jobs

    def describe(self, transactional_id: str) -> TransactionChanged | None:
        """As DescribeTransactions shows it: of a decided transaction only what still waits for its marker."""
        found = self._transactions.get(transactional_id)
        if found is None or found.state not in PREPARED:
            return found
        partitions, groups = _sorted_out(self._due[transactional_id])
        return msgspec.structs.replace(found, partitions=partitions, groups=groups)

    def page(self, states: Iterable[State], after: str | None, count: int) -> list[str]:
        """The next transactional ids, sorted, of those in one of these states."""
        return page_of_all((self._by_state[state] for state in states), after, count)

    def count(self, state: State) -> int:
        return len(self._by_state[state])

    def mark(self, key: str) -> int:
        """How far this writer has come with transactions that end together; -1: it is not known."""
        return self._marks.get(key)

    def next_deadline_ms(self) -> int | None:
        both = (self._deadlines.earliest_ms(), self._marks.deadlines.earliest_ms())
        return min((each for each in both if each is not None), default=None)

    def facts(self) -> Iterator[Fact]:
        yield from self._transactions.values()
        yield from self._marks.facts()

    # Decisions

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        reply: Any
        match command:
            case AddPartitions(name, producer_id, epoch, partitions):
                facts, code = self._enlist(name, (producer_id, epoch), partitions, (), now_ms)
                reply = CodeReply(code)
            case AddGroup(name, producer_id, epoch, group):
                facts, code = self._enlist(name, (producer_id, epoch), (), (group,), now_ms)
                reply = CodeReply(code)
            case EndTransaction():
                facts, reply = self._end(command, now_ms)
            case EndTogether():
                facts, reply = decide_together(command, self._marks, self.get, self._enlisted, now_ms)
            case InitProducer():
                facts, reply = self._init(command, now_ms)
            case FindNames():
                facts, reply = self._find_names(command, now_ms)
            case MarkersWritten():
                facts, reply = self._complete(command, now_ms), CodeReply(Code.NONE)
            case Tick():
                return Outcome(self._pass_deadlines(now_ms), [])
            case _:
                raise TypeError(f"{command!r} is no command of this machine")
        return Outcome(facts, [(ticket, reply)])

    def _init(self, command: InitProducer, now_ms: int) -> tuple[list[Fact], ProducerReply | ProducerIdWanted]:
        name, producer_id = command.transactional_id or "", command.new_producer_id
        known = self._transactions.get(name)
        claimed = command.producer_id, command.epoch
        code = self._check_init(command, known)
        if code is not Code.NONE:
            return [], ProducerReply(code)
        if known is None:
            if producer_id == NO_PRODUCER:
                return [], ProducerIdWanted()
            new = TransactionChanged(name, producer_id, 0, command.timeout_ms, State.EMPTY, now_ms)
            return [new], ProducerReply(Code.NONE, producer_id, 0)
        if known.state is State.ONGOING:
            # It is really aborted, by the markers; the producer asks again until they are written.
            return [fenced(known, claimed, now_ms)], ProducerReply(Code.CONCURRENT_TRANSACTIONS)
        identity = _next_identity(known, claimed, producer_id)
        if identity == NOBODY:
            return [], ProducerIdWanted()
        new = handed_over(known, identity, claimed, command.timeout_ms, now_ms)
        return [new], ProducerReply(Code.NONE, *identity)

    def _check_init(self, command: InitProducer, known: TransactionChanged | None) -> Code:
        claimed = command.producer_id, command.epoch
        is_too_long = len(command.transactional_id or "") > TRANSACTIONAL_ID_CHARS_MAX
        if not command.transactional_id or is_too_long or (claimed != NOBODY and min(claimed) < 0):
            return Code.INVALID_REQUEST
        if not 0 < command.timeout_ms <= self._options.timeout_ms_max:
            return Code.INVALID_TRANSACTION_TIMEOUT
        if self._marks.is_over(writer_of(command.transactional_id)):
            return Code.PRODUCER_FENCED
        if known is None:
            return Code.NONE  # a claim to an id that has expired: its producer starts anew
        if claimed not in (NOBODY, known.identity, known.last):
            return Code.PRODUCER_FENCED
        return Code.CONCURRENT_TRANSACTIONS if known.state in PREPARED else Code.NONE

    def _enlist(
        self, name: str, claimed: Identity, partitions: tuple[Partition, ...], groups: tuple[str, ...], now_ms: int
    ) -> tuple[list[Fact], Code]:
        known = self._transactions.get(name)
        if known is None or claimed != known.identity:
            return [], _refusal(name, known, claimed)
        if any(len(group) > GROUP_ID_CHARS_MAX for group in groups):
            return [], Code.INVALID_GROUP_ID
        if known.state in PREPARED:
            return [], Code.CONCURRENT_TRANSACTIONS
        if self._enlisted.get(name, frozenset()).issuperset((*partitions, *groups)):
            return [], Code.NONE
        if self._marks.is_over(writer_of(name)):
            return [], Code.PRODUCER_FENCED
        return [enlisted(known, partitions, groups, now_ms)], Code.NONE

    def _end(self, command: EndTransaction, now_ms: int) -> tuple[list[Fact], ProducerReply | ProducerIdWanted]:
        name, claimed, bumps = command.transactional_id, (command.producer_id, command.epoch), command.bumps_epoch
        known = self._transactions.get(name)
        is_repeated = known is not None and bumps and _is_repeated_end(known, claimed)
        if known is None or not (is_repeated or claimed == known.identity):
            return [], ProducerReply(_refusal(name, known, claimed))
        if known.state in PREPARED:
            return [], ProducerReply(Code.CONCURRENT_TRANSACTIONS)
        if known.state is not State.ONGOING:
            if is_repeated or not bumps:
                return [], _answer_again(known, command.commit)
            if command.commit:
                return [], ProducerReply(Code.INVALID_TXN_STATE)
        next_producer_id = NO_PRODUCER
        if bumps and known.epoch >= EPOCH_GIVEN_MAX:
            next_producer_id = command.new_producer_id
            if next_producer_id == NO_PRODUCER:
                return [], ProducerIdWanted()
        new = decided(known, commit=command.commit, bumps_epoch=bumps, next_producer_id=next_producer_id, now_ms=now_ms)
        return [new], ProducerReply(Code.NONE, *new.identity)

    def _complete(self, command: MarkersWritten, now_ms: int) -> list[Fact]:
        due = self._due.get(command.transactional_id)
        if due is None:
            return []
        known = self._transactions[command.transactional_id]
        if (command.producer_id, command.serial) != (known.producer_id, known.serial):
            return []
        if due.keys() <= {*command.partitions, *command.groups}:
            return [completed(known, now_ms), *([TransactionExpired(known.transactional_id)] if known.is_last else [])]
        return [MarkersNoted(command.transactional_id, command.partitions, command.groups)]

    def _find_names(self, command: FindNames, now_ms: int) -> tuple[list[Fact], FoundNames]:
        """Transactional ids, and writers with a mark. A transaction that is under way is aborted; its id is forgotten
        with the last marker, or when it is asked for again."""
        names = page_of(command, self._page_of_all)
        facts: list[Fact] = []
        for name in names if command.forgets else ():
            known = self._transactions.get(name)
            if known is not None and known.state is State.ONGOING:
                facts.append(msgspec.structs.replace(fenced(known, NOBODY, now_ms), is_last=True))
            elif known is not None and not known.is_prepared:
                facts.append(TransactionExpired(name))
            if self._marks.has(name):
                facts.append(MarkExpired(name))
        return facts, FoundNames(tuple(names))

    def _page_of_all(self, after: str, count: int) -> list[str]:
        return sorted({*self.page(State, after, count), *self._marks.page(after, count)})[:count]

    def _pass_deadlines(self, now_ms: int) -> list[Fact]:
        facts: list[Fact] = []
        for name in self._deadlines.due(now_ms, _DUE_MAX):
            known = self._transactions[name]
            if known.state is State.ONGOING:
                facts.append(fenced(known, NOBODY, now_ms))
            else:
                facts.append(TransactionExpired(name))
        facts += [MarkExpired(name) for name in self._marks.deadlines.due(now_ms, _DUE_MAX)]
        return facts

    # Changes

    def apply(self, fact: Any) -> None:
        match fact:
            case TransactionChanged():
                self._change(fact)
            case MarkersNoted(name, partitions, groups):
                due = self._due[name]
                done: tuple[Partition | str, ...] = (*partitions, *groups)
                for place in done:
                    due.pop(place, None)
            case TransactionExpired(name):
                self._remove(name)
            case MarkSet():
                self._marks.put(fact)
            case MarkExpired(name):
                self._marks.remove(name)
            case _:
                raise TypeError(f"{fact!r} is no fact of this machine")

    def forget(self, key: bytes) -> None:
        writer = mark_name_of(key)
        if writer is not None:
            self._marks.remove(writer)
        else:
            self._remove(transactional_id_of(key))

    def _change(self, fact: TransactionChanged) -> None:
        name = fact.transactional_id
        # Taken out first: the order of the transactions is that of their last changes.
        known = self._transactions.pop(name, None)
        if known is not None and known.producer_id != fact.producer_id:
            del self._names[known.producer_id]
        if known is None or known.state is not fact.state:
            if known is not None:
                del self._by_state[known.state][name]
            self._by_state[fact.state][name] = None
        self._transactions[name] = fact
        self._names[fact.producer_id] = name
        self._enlisted.pop(name, None)
        self._due.pop(name, None)
        if fact.state is State.ONGOING:
            self._enlisted[name] = frozenset((*fact.partitions, *fact.groups))
            self._deadlines.set(name, fact.start_ms + fact.timeout_ms)
        elif fact.state in PREPARED:
            self._due[name] = dict.fromkeys((*fact.partitions, *fact.groups))
            self._deadlines.clear(name)
        else:
            self._deadlines.set(name, fact.updated_ms + self._options.expiry_ms)

    def _remove(self, name: str) -> None:
        """Only an id without a transaction expires, so nothing is enlisted or due. A ledger may tell of it twice."""
        known = self._transactions.pop(name, None)
        if known is not None:
            del self._names[known.producer_id], self._by_state[known.state][name]
            self._deadlines.clear(name)


def _next_identity(known: TransactionChanged, claimed: Identity, new_producer_id: int) -> Identity:
    """NOBODY: its epochs are used up, and there is no new id."""
    if claimed != NOBODY and claimed == known.last and known.epoch <= EPOCH_GIVEN_MAX:
        return known.identity  # it did not hear the answer; nobody else was given this epoch
    if known.epoch < EPOCH_GIVEN_MAX:
        return known.producer_id, known.epoch + 1
    return NOBODY if new_producer_id == NO_PRODUCER else (new_producer_id, 0)


def _is_repeated_end(known: TransactionChanged, claimed: Identity) -> bool:
    """In version 2 the epoch tells a repeated request from the end of the next transaction.

    The epoch that was left for fencing is given to nobody, not even to the producer that had itself fenced.
    """
    has_ended = known.state in PREPARED or known.state in COMPLETE
    return has_ended and claimed == known.last and known.identity[1] <= EPOCH_GIVEN_MAX


def _answer_again(known: TransactionChanged, commit: bool) -> ProducerReply:
    """To end a transaction as it ended is a success."""
    if known.state is not (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT):
        return ProducerReply(Code.INVALID_TXN_STATE)
    return ProducerReply(Code.NONE, *known.identity)


def _refusal(name: str, known: TransactionChanged | None, claimed: Identity) -> Code:
    if not name:
        return Code.INVALID_REQUEST
    if known is None or claimed[0] != known.identity[0]:
        return Code.INVALID_PRODUCER_ID_MAPPING
    return Code.PRODUCER_FENCED


def _sorted_out(places: Collection[Partition | str]) -> tuple[tuple[Partition, ...], tuple[str, ...]]:
    """Partitions and groups."""
    partitions = tuple(place for place in places if not isinstance(place, str))
    return partitions, tuple(place for place in places if isinstance(place, str))

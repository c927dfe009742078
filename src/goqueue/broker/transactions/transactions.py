"""Transactions: what the coordinator decided is written into every partition and told to every group that took part."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from goqueue.broker.shards import REPLY_MS_MAX, shard_of_transaction
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.enlisting import Enlisting
from goqueue.broker.transactions.joined import Joined
from goqueue.broker.transactions.markers import Ends, Markers
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.broker.transactions.shards import TransactionShards
from goqueue.machines.machine import Command, Fact
from goqueue.machines.transactions.commands import (
    AddGroup,
    AddPartitions,
    CodeReply,
    EndTogether,
    EndTransaction,
    InitProducer,
    Partition,
    ProducerIdWanted,
    ProducerReply,
    TogetherReply,
)
from goqueue.machines.transactions.facts import COMPLETE, State, TransactionChanged
from goqueue.machines.transactions.machine import TransactionMachine
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import BatchTooLarge, GoQueueError
from goqueue.model.transactions import Hanging, Writer
from goqueue.records.batch import Batch
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.coordinators import Coordinators
from goqueue.telemetry.meters import Meters

R = TypeVar("R")
SETTLE_ELSEWHERE_MS = 50
"""After which a coordinator on another node is asked again whether a transaction is over."""


class Transactions:
    def __init__(
        self,
        coordinators: Coordinators[int, TransactionMachine],
        topics: Topics,
        clock: Clock,
        ends: Ends,
        ids: ProducerIds,
        meters: Meters,
    ) -> None:
        self.ids = ids
        self.coordinators = self._coordinators = coordinators
        self._shards = TransactionShards(coordinators)
        self._topics, self._clock, self._meters = topics, clock, meters
        self._began_s: dict[str, float] = {}
        """By transactional id, while one is under way that began since the start."""
        self._settled: dict[str, list[Callable[[], None]]] = {}
        """Who waits for the markers of a transactional id."""
        self.committed = self.aborted = 0
        """Since the start."""
        self.enlisting = Enlisting(clock, self._enlist, self.when_settled)
        self.markers = Markers(self._shards, topics, clock, ends, self._submit)
        self.verified = self.markers.verified
        self._joined: dict[int, Joined] = {}
        """By shard."""
        coordinators.watch(self._added)
        coordinators.on_removed.append(self._removed)

    def _removed(self, number: int) -> None:
        self._joined.pop(number, None)
        self._given_up(number)

    def _given_up(self, number: int) -> None:
        """Whoever waits for markers there does so in vain: another node writes them, or this one after a restart. What
        was decided stays so."""
        for name in [name for name in self._settled if shard_of_transaction(name) == number]:
            for call in self._settled.pop(name):
                self._clock.call_soon(call)

    def _is_elsewhere(self, transactional_id: str) -> bool:
        return self.markers.elsewhere is not None and self._shards.find(transactional_id) is None

    def _enlist(self, command: AddPartitions | AddGroup, joins: bool, on_reply: OnReply[CodeReply]) -> None:
        elsewhere = self.markers.elsewhere
        if elsewhere is None or not self._is_elsewhere(command.transactional_id):
            self._submit(command, on_reply)
            return
        places = command.partitions if isinstance(command, AddPartitions) else (command.group,)
        question = self.verified.ask(command.producer_id, places)

        def answered(reply: CodeReply | GoQueueError) -> None:
            is_sound = self.verified.end(question)
            if isinstance(reply, GoQueueError) or reply.code is not Code.NONE:
                on_reply(reply)
            elif is_sound:
                self.verified.note(command.producer_id, command.epoch, places)
                on_reply(reply)
            else:
                on_reply(CodeReply(Code.CONCURRENT_TRANSACTIONS))  # it may be over: it is asked again

        elsewhere.enlist(command, joins, answered)

    def _added(self, number: int, coordinator: Coordinator[TransactionMachine]) -> None:
        self._joined[number] = Joined(coordinator.when_durable)
        coordinator.after_apply = partial(self._applied, number, coordinator)
        coordinator.on_loaded = partial(self._loaded, number, coordinator)
        coordinator.on_given_up = partial(self._given_up, number)
        coordinator.reply_ms_max = REPLY_MS_MAX

    @property
    def is_active(self) -> bool:
        return all(each.is_active for each in self._coordinators)

    def peek(self) -> TransactionShards:
        """For the broker's own questions; it must not be kept. The refusal of a coordinator: it is not active."""
        return self._shards

    def of_producer(self, producer_id: int) -> TransactionChanged | None:
        """None: no producer of transactions has this id (any more)."""
        return self._shards.of_producer(producer_id)

    def describe(self, transactional_id: str) -> TransactionChanged | None:
        """As DescribeTransactions shows it: of a decided transaction only what still waits for its marker."""
        return self._shards.describe(transactional_id)

    def partition_of(self, transactional_id: str) -> int:
        """Of the ledger that transactions are kept in."""
        return shard_of_transaction(transactional_id)

    def now_ms(self, transactional_id: str) -> int:
        """By the clock that this transaction goes by."""
        found = self._shards.find(transactional_id)
        return self._clock.now_ms() if found is None else found.now_ms()

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None]) -> None:
        if not isinstance(command, InitProducer | EndTransaction):
            self._submit(command, on_reply)
        elif command.transactional_id is None:
            self._give_id(on_reply)  # type: ignore[arg-type]
        else:
            self._submit(command, partial(self._answered, command, on_reply))  # type: ignore[arg-type]

    def _submit(self, command: Command[R], on_reply: OnReply[R]) -> None:
        """All transactional ids of a writer have one coordinator: so it may end them together."""
        name = command.key if isinstance(command, EndTogether) else command.transactional_id  # type: ignore[attr-defined]  # as the others have
        try:
            coordinator = self._coordinators.of_or_new(shard_of_transaction(name))
        except GoQueueError as error:  # its ledger cannot be made, or is led elsewhere
            on_reply(error.kept())
        else:
            coordinator.submit(command, on_reply)

    def _answered(
        self,
        command: InitProducer | EndTransaction,
        on_reply: OnReply[ProducerReply],
        reply: ProducerReply | ProducerIdWanted | GoQueueError,
    ) -> None:
        """The coordinator knows best whether a new producer id is needed: then it is asked again, with one."""
        if not isinstance(reply, ProducerIdWanted):
            on_reply(reply)
            return

        def taken(producer_id: int | GoQueueError) -> None:
            if isinstance(producer_id, GoQueueError):
                on_reply(producer_id)
            else:
                self._submit(replace(command, new_producer_id=producer_id), on_reply)

        self.ids.take(taken)

    def _give_id(self, on_reply: Callable[[ProducerReply | GoQueueError], None]) -> None:
        def taken(producer_id: int | GoQueueError) -> None:
            on_reply(ProducerReply(Code.NONE, producer_id, 0) if isinstance(producer_id, int) else producer_id)

        self.ids.take(taken)

    def end_together(self, command: EndTogether, on_reply: Callable[[TogetherReply | GoQueueError], None]) -> None:
        """Answered when every reader sees it, the second time too."""
        left = len(command.transactions)

        def settled(reply: TogetherReply) -> None:
            nonlocal left
            left -= 1
            if not left:
                on_reply(reply)

        def decided(reply: TogetherReply | GoQueueError) -> None:
            if isinstance(reply, BatchTooLarge):
                count = len(command.transactions)
                text = f"nothing is committed: {count} transactions are too many for one decision"
                on_reply(TogetherReply(Code.INVALID_REQUEST, message=text))
            elif isinstance(reply, GoQueueError) or reply.code is not Code.NONE or not left:
                on_reply(reply)
            else:
                for name, _, _ in command.transactions:
                    self.when_settled(name, lambda: settled(reply))

        self.submit(command, decided)

    def when_settled(self, transactional_id: str, call: Callable[[], None]) -> None:
        """Call when every marker of the last transaction that was decided is written, at once if they are; also if they
        will not be before a restart."""
        if self._is_elsewhere(transactional_id):
            self._clock.call_after(SETTLE_ELSEWHERE_MS, call)
            return
        found = self._shards.find(transactional_id)
        known = found.peek().get(transactional_id) if found is not None and found.is_active else None
        is_settled = found is None or (found.is_active and (known is None or not known.is_prepared))
        if found is None or is_settled or found.has_given_up:
            call()
        else:
            self._settled.setdefault(transactional_id, []).append(call)

    def verify(self, batch: Batch, topic: str, partition: int) -> Code:
        """May a transactional batch go into this partition?"""
        return self._verify(batch.producer_id, batch.producer_epoch, (topic, partition))

    def verify_writer(self, writer: Writer, place: Partition | str) -> Code:
        """May `writer` write to this partition, or commit offsets of this group, without asking first?"""
        if self._is_elsewhere(writer.transactional_id):
            is_known = self.verified.has(writer.producer_id, writer.epoch, place)
            waits = not is_known or self.enlisting.is_waited_for(writer.transactional_id)
            return Code.CONCURRENT_TRANSACTIONS if waits else Code.NONE
        return self._verify(writer.producer_id, writer.epoch, place)

    def has_joined(self, writer: Writer, place: Partition | str) -> bool:
        """Whether this is part of the writer's transaction, though perhaps not for good yet; or nobody here knows."""
        if self._is_elsewhere(writer.transactional_id):
            return True
        return self.may_write(writer.producer_id, writer.epoch, place) is Code.NONE

    def may_write(self, producer_id: int, epoch: int, place: Partition | str) -> Code:
        """Whether this is part of the producer's transaction. While nobody knows, it is asked to try again."""
        if self.verified.has(producer_id, epoch, place):
            return Code.NONE
        verdict = self._shards.verify(producer_id, epoch, place)
        is_unknown = verdict is Code.INVALID_PRODUCER_ID_MAPPING
        return Code.NOT_ENOUGH_REPLICAS if is_unknown and not self.is_active else verdict

    def verify_producer(self, producer_id: int, epoch: int, place: Partition | str) -> Code:
        """As `verify`, for another node that was sent something."""
        return self._verify(producer_id, epoch, place)

    def _verify(self, producer_id: int, epoch: int, place: Partition | str) -> Code:
        if self.verified.has(producer_id, epoch, place):
            return Code.NONE
        verdict = self.may_write(producer_id, epoch, place)
        is_settled = self.enlisting.is_idle and all(each.is_settled for each in self._joined.values())
        if verdict is not Code.NONE or is_settled:
            return verdict
        known = self.peek().of_producer(producer_id)
        assert known is not None  # it was found just now
        name = known.transactional_id
        joined = self._joined[shard_of_transaction(name)]
        must_wait = self.enlisting.is_waited_for(name) or not joined.has(name, place)
        return Code.CONCURRENT_TRANSACTIONS if must_wait else Code.NONE

    def _loaded(self, number: int, coordinator: Coordinator[TransactionMachine]) -> None:
        self._joined[number] = Joined(coordinator.when_durable)  # all that was loaded is durable
        due = [job.transactional_id for job in coordinator.peek().markers_due()]
        for name in [name for name in self._settled if name not in due and shard_of_transaction(name) == number]:
            for call in self._settled.pop(name):
                self._clock.call_soon(call)
        if due:
            coordinator.when_durable(lambda: self.markers.write(coordinator, due))

    def _applied(self, number: int, coordinator: Coordinator[TransactionMachine], facts: Iterable[Fact]) -> None:
        """Not before the decision is durable: a marker that outlived it would tear the transaction apart."""
        names = []
        for fact in facts:
            if isinstance(fact, TransactionChanged):
                self._measure(fact)
                self._joined[number].changed(fact)
                self.committed += fact.state is State.COMPLETE_COMMIT
                self.aborted += fact.state is State.COMPLETE_ABORT
                if fact.is_prepared:
                    names.append(fact.transactional_id)
                else:
                    for call in self._settled.pop(fact.transactional_id, ()):
                        self._clock.call_soon(call)
        if names:
            coordinator.when_durable(lambda: self.markers.write(coordinator, names))

    def _measure(self, fact: TransactionChanged) -> None:
        name, now_s = fact.transactional_id, self._clock.monotonic_s()
        if fact.state is State.ONGOING and name not in self._began_s:
            self._began_s[name] = now_s
            self._meters.transactions_begun += 1
        elif fact.state in COMPLETE and name in self._began_s:
            self._meters.transactions_s.observe(now_s - self._began_s.pop(name))

    def end_hanging(self, one: Hanging, place: Partition, on_code: Callable[[Code], None]) -> None:
        """Write the marker that never came. If the coordinator has the transaction, it alone may end it, in all its
        partitions: it is asked to abort, and a commit is refused.
        """
        inactive = next((each for each in self._coordinators if not each.is_active), None)
        if inactive is not None:
            on_code(code_of(inactive.refusal()))
            return
        known = self.peek().of_producer(one.producer_id)
        code = Code.NONE
        if min(one.producer_id, one.epoch) < 0:
            code = Code.INVALID_REQUEST
        elif known is not None and place in known.partitions:
            self._abort(known, one, on_code)
            return
        elif not self._topics.has(*place):
            code = Code.UNKNOWN_TOPIC_OR_PARTITION
        elif one.coordinator_epoch > self._shards.coordinator_epoch(known):
            # The partition would refuse every marker of ours from then on.
            code = Code.TRANSACTION_COORDINATOR_FENCED
        elif known is not None and one.epoch > known.epoch:
            code = Code.INVALID_PRODUCER_EPOCH
        if code is not Code.NONE:
            on_code(code)
            return

        def ended(reply: GoQueueError | None) -> None:
            on_code(Code.NONE if reply is None else code_of(reply))

        self.markers.end_here(one, place, ended)

    def _abort(self, known: TransactionChanged, one: Hanging, on_code: Callable[[Code], None]) -> None:
        """Its producer goes on with the next epoch, if it goes on."""
        if one.commit:
            on_code(Code.INVALID_TXN_STATE)
            return

        def decided(reply: ProducerReply | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                on_code(Code.COORDINATOR_NOT_AVAILABLE)
            elif reply.code is Code.NONE:
                self.when_settled(known.transactional_id, lambda: on_code(Code.NONE))
            else:
                on_code(reply.code)

        name = known.transactional_id
        self.submit(EndTransaction(name, one.producer_id, one.epoch, commit=False, bumps_epoch=True), decided)

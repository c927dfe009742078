"""Transactions: what the coordinator decided is written into every partition and told to every group that took part."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from goqueue.broker.shards import shard_of_transaction
from goqueue.broker.topics.topics import Topics, code_of
from goqueue.broker.transactions.enlisting import Enlisting, Writer
from goqueue.broker.transactions.joined import Joined
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.broker.transactions.shards import TransactionShards
from goqueue.machines.groups.commands import EndTransactionOffsets
from goqueue.machines.machine import Command
from goqueue.machines.transactions.commands import (
    AddGroup,
    AddPartitions,
    EndTogether,
    EndTransaction,
    InitProducer,
    MarkerJob,
    MarkersWritten,
    Partition,
    ProducerIdWanted,
    ProducerReply,
    TogetherReply,
)
from goqueue.machines.transactions.facts import COMPLETE, State, TransactionChanged
from goqueue.machines.transactions.machine import TransactionMachine
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge, GoQueueError, LogPoisoned
from goqueue.model.refusal import Refused
from goqueue.records.batch import Batch, check_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator, OnReply
from goqueue.runtime.coordinators import Coordinators
from goqueue.runtime.ledger import Fact
from goqueue.telemetry.logs import get_logger
from goqueue.telemetry.meters import Meters

__all__ = [
    "AddGroup",
    "AddPartitions",
    "EndTogether",
    "EndTransaction",
    "Ends",
    "Hanging",
    "InitProducer",
    "ProducerReply",
    "State",
    "TogetherReply",
    "TransactionChanged",
    "Transactions",
    "Writer",
]

R = TypeVar("R")
RETRY_MS = 1000

events = get_logger("broker")


class Ends(NamedTuple):
    """Who else must hear that a transaction is over."""

    offsets: Callable[[str, EndTransactionOffsets, OnReply], None]
    """of a group"""
    schedules: Callable[[Partition, tuple[int, int], bool, OnReply], None]
    """partition, producer id and epoch, whether it was committed"""


class Hanging(NamedTuple):
    """A transaction that is open in a partition and that its coordinator does not know."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commit: bool


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
        self._coordinators = coordinators
        self._shards = TransactionShards(coordinators)
        self._topics, self._clock, self._ends, self._meters = topics, clock, ends, meters
        self._began_s: dict[str, float] = {}
        """By transactional id, while one is under way that began since the start."""
        self._under_way: set[tuple[str, int, Partition | str]] = set()
        self._settled: dict[str, list[Callable[[], None]]] = {}
        """Who waits for the markers of a transactional id."""
        self.committed = self.aborted = 0
        """Since the start."""
        self.enlisting = Enlisting(clock, self._submit, self.when_settled)
        self._joined: dict[int, Joined] = {}
        """By shard."""
        coordinators.watch(self._added)

    def _added(self, number: int, coordinator: Coordinator[TransactionMachine]) -> None:
        self._joined[number] = Joined(coordinator.when_durable)
        coordinator.after_apply = partial(self._applied, number, coordinator)
        coordinator.on_loaded = partial(self._loaded, number, coordinator)

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
            self._submit(command, partial(self._answered, command, on_reply))

    def _submit(self, command: Any, on_reply: OnReply) -> None:
        """All transactional ids of a writer have one coordinator: so it may end them together."""
        name = command.key if isinstance(command, EndTogether) else command.transactional_id
        try:
            coordinator = self._coordinators.of_or_new(shard_of_transaction(name))
        except LogPoisoned as error:  # its ledger cannot be made
            on_reply(error)
        else:
            coordinator.submit(command, on_reply)

    def _answered(self, command: InitProducer | EndTransaction, on_reply: OnReply, reply: object) -> None:
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
        """Call when every marker of the last transaction that was decided is written, at once if they are."""
        found = self._shards.find(transactional_id)
        known = found.peek().get(transactional_id) if found is not None and found.is_active else None
        if found is None or (found.is_active and (known is None or not known.is_prepared)):
            call()
        else:
            self._settled.setdefault(transactional_id, []).append(call)

    def verify(self, batch: Batch, topic: str, partition: int) -> Code:
        """May a transactional batch go into this partition?"""
        return self._verify(batch.producer_id, batch.producer_epoch, (topic, partition))

    def verify_writer(self, writer: Writer, place: Partition | str) -> Code:
        """May `writer` write to this partition, or commit offsets of this group, without asking first?"""
        return self._verify(writer.producer_id, writer.epoch, place)

    def has_joined(self, writer: Writer, place: Partition | str) -> bool:
        """Whether this is part of the writer's transaction, though perhaps not for good yet."""
        return self.may_write(writer.producer_id, writer.epoch, place) is Code.NONE

    def may_write(self, producer_id: int, epoch: int, place: Partition | str) -> Code:
        """Whether this is part of the producer's transaction. While nobody knows, it is asked to try again."""
        verdict = self._shards.verify(producer_id, epoch, place)
        is_unknown = verdict is Code.INVALID_PRODUCER_ID_MAPPING
        return Code.NOT_ENOUGH_REPLICAS if is_unknown and not self.is_active else verdict

    def _verify(self, producer_id: int, epoch: int, place: Partition | str) -> Code:
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
            coordinator.when_durable(lambda: self._write_markers(coordinator, due))

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
            coordinator.when_durable(lambda: self._write_markers(coordinator, names))

    def _measure(self, fact: TransactionChanged) -> None:
        name, now_s = fact.transactional_id, self._clock.monotonic_s()
        if fact.state is State.ONGOING and name not in self._began_s:
            self._began_s[name] = now_s
            self._meters.transactions_begun += 1
        elif fact.state in COMPLETE and name in self._began_s:
            self._meters.transactions_s.observe(now_s - self._began_s.pop(name))

    def _write_markers(self, coordinator: Coordinator[TransactionMachine], names: Iterable[str]) -> None:
        if not coordinator.is_active:
            return  # it asks what is due when it is loaded
        for job in coordinator.peek().markers_due(names):
            places: list[Partition | str] = [*job.partitions, *job.groups]
            for place in places:
                key = (job.transactional_id, job.serial, place)
                if key not in self._under_way:
                    self._under_way.add(key)
                    self._write(job, place, key)

    def _write_later(self, name: str) -> None:
        """They are still due."""
        coordinator = self._shards.find(name)
        if coordinator is not None:
            self._clock.call_after(RETRY_MS, partial(self._write_markers, coordinator, [name]))

    def _write(self, job: MarkerJob, place: Partition | str, key: tuple[str, int, Partition | str]) -> None:
        def noted(reply: Any) -> None:
            if isinstance(reply, GoQueueError):
                self._write_later(job.transactional_id)

        def done(reply: Any = None) -> None:
            self._under_way.discard(key)
            if isinstance(reply, GoQueueError) and not _is_over(reply):
                events.error(
                    "marker not written", transaction=job.transactional_id, place=str(place), reason=str(reply)
                )
                self._write_later(job.transactional_id)
                return
            is_group = isinstance(place, str)
            self._submit(
                MarkersWritten(
                    job.transactional_id,
                    job.producer_id,
                    job.serial,
                    () if is_group else (place,),  # type: ignore[arg-type]
                    (place,) if is_group else (),  # type: ignore[arg-type]
                ),
                noted,
            )

        if isinstance(place, str):
            end = EndTransactionOffsets(job.producer_id, job.epoch, job.commit, job.written_epoch)
            self._ends.offsets(place, end, done)
            return
        # First what was delayed: once the marker stands in the log, nobody asks for this partition again.
        self._ends.schedules(
            place,
            (job.producer_id, job.epoch),
            job.commit,
            lambda reply: done(reply) if isinstance(reply, GoQueueError) else self._append_marker(job, place, done),
        )

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

        def settled(reply: Any) -> None:
            if isinstance(reply, GoQueueError):
                ended(reply)
            else:
                self._append_marker(one, place, ended)

        self._ends.schedules(place, (one.producer_id, one.epoch), one.commit, settled)

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

    def _append_marker(self, job: MarkerJob | Hanging, place: Partition, done: OnReply) -> None:
        """`done` gets None, or why there is no marker."""
        try:
            replica = self._topics.replica(*place)
            kind = ControlKind.COMMIT if job.commit else ControlKind.ABORT
            now_ms = self._clock.now_ms()
            marker = build_control(
                kind,
                producer_id=job.producer_id,
                producer_epoch=job.epoch,
                coordinator_epoch=job.coordinator_epoch,
                timestamp=now_ms,
            )
            replica.append_marker(check_batch(memoryview(marker)), job.coordinator_epoch, now_ms)
        except GoQueueError as error:
            done(error)
            return
        replica.when_reached(replica.end_offset, lambda: done(replica.failure))


def _is_over(error: GoQueueError) -> bool:
    """The topic is gone, or a newer producer has been there: there is nothing left to end."""
    return isinstance(error, Refused) and error.code in (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.INVALID_PRODUCER_EPOCH)

"""Transactions step by step, for doors whose clients have no transactional producer of their own: begin, publish, end.

Kafka's coordinator hears of a transaction when its first partition is added. That it was begun before is kept here,
until then or until its time is over; a restart forgets it, and nothing else.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from goqueue.broker.publishing.publish import Publisher
from goqueue.broker.publishing.send import Sender
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.transactions import Transactions
from goqueue.machines.name_table import NameTable
from goqueue.machines.transactions.commands import AddPartitions, CodeReply, EndTransaction, InitProducer, ProducerReply
from goqueue.machines.transactions.facts import State, TransactionChanged
from goqueue.model.again import Again
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import Tenant, TenantLimit, full, tenant_of, tenant_said
from goqueue.model.transactions import Placed, Producer, Writer
from goqueue.records.build import build_batch
from goqueue.records.messages import NewMessage
from goqueue.runtime.clock import Clock

BEGUN_MAX = 10_000
TRIES_MAX = 3


class _Begun(NamedTuple):
    identity: tuple[int, int]
    """Producer id and epoch."""
    at_ms: int
    at_s: float
    """The same by the monotonic clock, which counts for time-outs."""


AppendElsewhere: TypeAlias = Callable[
    [Producer, tuple[str, int], NewMessage, int | None, Callable[[Placed | GoQueueError], None], bool], None
]

FindOwner: TypeAlias = Callable[
    [Producer, str, NewMessage, int | None, Callable[[Placed | GoQueueError], None], Callable[[], None]], None
]


def unknown_producer(producer: Producer) -> Refused:
    of = "" if producer.transactional_id is None else f" of {producer.transactional_id!r}"
    return Refused(
        Code.INVALID_PRODUCER_ID_MAPPING, f"producer {producer.producer_id} is no producer of transactions{of}"
    )


class TransactionSteps:
    def __init__(
        self,
        transactions: Transactions,
        topics: Topics,
        publisher: Publisher,
        sender: Sender,
        clock: Clock,
        tenants: Callable[[], Mapping[str, Tenant]],
    ) -> None:
        self._tenants = tenants
        self._transactions = transactions
        self._topics = topics
        self._publisher = publisher
        self._sender = sender
        self._clock = clock
        self.begun: NameTable[_Begun] = NameTable()
        """By transactional id: begun, and nothing published yet; or too long ago, see `is_begun`."""
        self.elsewhere: AppendElsewhere | None = None
        """In a cluster: appends to a partition that another node leads."""
        self.find_owner: FindOwner | None = None
        """In a cluster: has it published where the coordinator of the producer is, or by the last argument if it is no
        producer of transactions."""

    # -- questions

    def owner(self, producer_id: int) -> str | None:
        """The transactional id of a producer; None: this node knows of none."""
        known = self._transactions.of_producer(producer_id)
        return None if known is None else known.transactional_id

    def find(self, producer: Producer) -> TransactionChanged:
        """Refused: unknown, or somebody else is this producer by now."""
        known = self._transactions.peek().of_producer(producer.producer_id)
        if known is None or producer.transactional_id not in (None, known.transactional_id):
            raise unknown_producer(producer)
        if (producer.producer_id, producer.epoch) != known.identity:
            raise Refused(
                Code.PRODUCER_FENCED,
                f"epoch {producer.epoch} of producer {producer.producer_id} is over: it was initialized anew, or its "
                "transaction took too long",
            )
        return known

    def is_begun(self, known: TransactionChanged) -> bool:
        """Begun, and nothing published yet."""
        begun = self.begun.get(known.transactional_id)
        if begun is None or begun.identity != (known.producer_id, known.epoch):
            return False
        return self._clock.monotonic_s() < begun.at_s + known.timeout_ms / 1000

    def is_open(self, known: TransactionChanged) -> bool:
        return known.state is State.ONGOING or self.is_begun(known)

    def begun_ms(self, known: TransactionChanged) -> int:
        begun = self.begun.get(known.transactional_id)
        return known.start_ms if begun is None or known.state is State.ONGOING else begun.at_ms

    def transaction_id(self, known: TransactionChanged) -> str:
        """Of the transaction that is open, or of the last one."""
        is_next = known.state is not State.ONGOING and self.is_begun(known)
        return f"txn-{known.producer_id}-{known.serial + is_next}"

    def _open(self, producer: Producer, topic: str = "") -> TransactionChanged:
        """`topic`: to be written to. One that is not of the producer's tenant is refused: whoever named the producer by
        its number alone may be of another."""
        known = self.find(producer)
        tenants = self._tenants()
        if topic and tenant_of(known.transactional_id, tenants) != tenant_of(topic, tenants):
            raise unknown_producer(producer)
        if not self.is_open(known):
            last = {
                State.COMPLETE_COMMIT: "; the last one was committed",
                State.COMPLETE_ABORT: "; the last one was aborted",
            }
            raise Refused(
                Code.INVALID_TXN_STATE,
                f"there is no open transaction of {known.transactional_id!r}{last.get(known.state, '')}",
            )
        return known

    # -- steps

    def init(
        self, transactional_id: str | None, timeout_ms: int, on_reply: Callable[[ProducerReply | GoQueueError], None]
    ) -> None:
        """Become the one producer of a transactional id: an open transaction of the one before is aborted first."""
        tries = 0

        def attempt(again: Again) -> None:
            nonlocal tries
            tries += 1
            self._transactions.submit(InitProducer(transactional_id, timeout_ms), lambda reply: answered(again, reply))

        def answered(again: Again, reply: ProducerReply | GoQueueError) -> None:
            is_busy = not isinstance(reply, GoQueueError) and reply.code is Code.CONCURRENT_TRANSACTIONS
            if is_busy and tries < TRIES_MAX and transactional_id is not None:
                self._transactions.when_settled(transactional_id, again)
            else:
                on_reply(reply)

        Again(attempt)()

    def begin(self, producer: Producer, on_begun: Callable[[str | GoQueueError], None]) -> None:
        """Gives the id of the transaction."""

        def begin() -> None:
            try:
                known = self.find(producer)
                if self.is_open(known):
                    raise Refused(
                        Code.CONCURRENT_TRANSACTIONS, f"a transaction of {known.transactional_id!r} is open already"
                    )
                self._make_room(known.transactional_id)
            except GoQueueError as error:
                on_begun(error)
                return
            identity = known.producer_id, known.epoch
            self.begun[known.transactional_id] = _Begun(identity, self._clock.now_ms(), self._clock.monotonic_s())
            on_begun(self.transaction_id(known))

        try:
            name = self.find(producer).transactional_id
        except GoQueueError as error:
            on_begun(error)
            return
        self._transactions.when_settled(name, begin)

    def _make_room(self, wanted: str) -> None:
        own = tenant = self._tenants().get(tenant_said(wanted))
        if not self._is_full(tenant):
            return
        if len(self.begun) >= BEGUN_MAX:
            tenant = None  # what others have left lying goes, too
        for name in list(self.begun) if tenant is None else self._names_of(tenant):
            known = self._transactions.peek().get(name)
            if known is None or known.state is State.ONGOING or not self.is_begun(known):
                del self.begun[name]
        if self._is_full(tenant):
            words = f"{BEGUN_MAX} transactions were begun and not used"
            told = words if tenant is None else tenant.full_words(TenantLimit.OPEN_TRANSACTIONS, BEGUN_MAX)
            raise Refused(Code.CONCURRENT_TRANSACTIONS, told)
        if tenant is not own and self._is_full(own):
            self._make_room(wanted)

    def _is_full(self, tenant: Tenant | None) -> bool:
        if tenant is None or len(self.begun) >= BEGUN_MAX:
            return len(self.begun) >= BEGUN_MAX
        return len(self._names_of(tenant)) >= tenant.most(TenantLimit.OPEN_TRANSACTIONS, BEGUN_MAX)

    def _names_of(self, tenant: Tenant) -> list[str]:
        """Those that a tenant has begun, up to as many as it may."""
        prefix, most = full(tenant.tenant_id, ""), tenant.most(TenantLimit.OPEN_TRANSACTIONS, BEGUN_MAX)
        return [name for name in self.begun.page(prefix, most) if name.startswith(prefix)]

    def add_partition(
        self, producer: Producer, topic: str, partition: int, on_added: Callable[[GoQueueError | None], None]
    ) -> None:
        try:
            known = self._open(producer, topic)
            if self._topics.led(topic, (partition,)):
                self._topics.replica(topic, partition)
        except GoQueueError as error:
            on_added(error)
            return

        def added(reply: CodeReply | GoQueueError) -> None:
            failure = _failure_of(reply)
            if failure is None:
                self.begun.pop(known.transactional_id, None)
            on_added(failure)

        command = AddPartitions(known.transactional_id, known.producer_id, known.epoch, ((topic, partition),))
        self._transactions.submit(command, added)

    def publish(
        self,
        producer: Producer,
        topic: str,
        message: NewMessage,
        sequence: int | None,
        on_placed: Callable[[Placed | GoQueueError], None],
    ) -> None:
        """As part of the open transaction. `sequence` counts a producer's messages in one partition from 0, so that
        one that is sent again is known; None: it is the next.
        """
        try:
            producer = producer._replace(transactional_id=self._open(producer, topic).transactional_id)
            partition = self._sender.choose(topic, message)
        except GoQueueError as error:
            on_placed(error)
            return

        def added(error: GoQueueError | None) -> None:
            if error is None:
                error = self._append(producer, (topic, partition), message, sequence, on_placed, transactional=True)
            if error is not None:
                on_placed(error)

        self.add_partition(producer, topic, partition, added)

    def publish_as(
        self,
        producer: Producer,
        topic: str,
        message: NewMessage,
        sequence: int | None,
        on_placed: Callable[[Placed | GoQueueError], None],
    ) -> None:
        """As a producer of transactions: in the open one. As one without: by its sequence alone."""

        def plainly() -> None:
            self._publish_plainly(producer, topic, message, sequence, on_placed)

        if self._transactions.peek().of_producer(producer.producer_id) is not None:
            self.publish(producer, topic, message, sequence, on_placed)
        elif self.find_owner is None:
            plainly()
        else:
            self.find_owner(producer, topic, message, sequence, on_placed, plainly)

    def _publish_plainly(
        self,
        producer: Producer,
        topic: str,
        message: NewMessage,
        sequence: int | None,
        on_placed: Callable[[Placed | GoQueueError], None],
    ) -> None:
        try:
            if not self._transactions.ids.was_given(producer.producer_id):
                raise Refused(Code.UNKNOWN_PRODUCER_ID, f"nobody was made producer {producer.producer_id}")
            partition = self._sender.choose(topic, message)
        except GoQueueError as error:
            on_placed(error)
            return
        failure = self._append(producer, (topic, partition), message, sequence, on_placed, transactional=False)
        if failure is not None:
            on_placed(failure)

    def append_here(
        self,
        producer: Producer,
        place: tuple[str, int],
        message: NewMessage,
        sequence: int | None,
        on_placed: Callable[[Placed | GoQueueError], None],
        *,
        transactional: bool,
    ) -> None:
        """For another node, whose producer it is: to a partition that this one leads."""

        def append(code: Code = Code.NONE) -> None:
            failure: GoQueueError | None = Refused(code) if code is not Code.NONE else None
            if failure is None:
                failure = self._append(producer, place, message, sequence, on_placed, transactional=transactional)
            if failure is not None:
                on_placed(failure)

        if transactional and producer.transactional_id is not None:
            writer = Writer(producer.transactional_id, producer.producer_id, producer.epoch)
            self._transactions.enlisting.add_partitions(writer, (place,), 0, append, joins=False)
        else:
            append()

    def _append(
        self,
        producer: Producer,
        place: tuple[str, int],
        message: NewMessage,
        sequence: int | None,
        on_placed: Callable[[Placed | GoQueueError], None],
        *,
        transactional: bool,
    ) -> GoQueueError | None:
        if self.elsewhere is not None and not self._topics.led(place[0], (place[1],)):
            self.elsewhere(producer, place, message, sequence, on_placed, transactional)
            return None
        topic, partition = place
        now_ms, started_s = self._clock.now_ms(), self._publisher.now_s()
        try:
            expected = self._topics.replica(*place).producers.next_sequence(producer.producer_id, producer.epoch)
            if sequence is not None and sequence > expected:
                return Refused(
                    Code.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"sequence {sequence} in {topic}/{partition}, but {expected} comes next",
                )
            batch = build_batch(
                [(now_ms, message.key, message.value, message.all_headers())],
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=expected if sequence is None else sequence,
                transactional=transactional,
            )
            acknowledger, appended = self._publisher.publish(topic, partition, memoryview(batch))
        except ValueError as error:
            return Refused(Code.INVALID_RECORD, str(error))
        except GoQueueError as error:
            return error
        placed = Placed(partition, appended.base_offset, sequence is not None and sequence < expected)

        def reached() -> None:
            if acknowledger.failure is None:
                self._publisher.acknowledged(topic, partition, placed.offset, started_s)
            on_placed(acknowledger.failure or placed._replace(durability=self._topics.durability(*place)))

        acknowledger.when_reached(appended.next_offset, reached)
        return None

    def end(self, producer: Producer, *, commit: bool, on_ended: Callable[[GoQueueError | None], None]) -> None:
        """Answered when every reader sees it."""
        try:
            known = self._open(producer)
        except GoQueueError as error:
            on_ended(error)
            return
        self.begun.pop(known.transactional_id, None)
        if known.state is not State.ONGOING:  # nothing took part in it
            on_ended(None)
            return

        def decided(reply: ProducerReply | GoQueueError) -> None:
            failure = _failure_of(reply)
            if failure is not None:
                on_ended(failure)
            else:
                self._transactions.when_settled(known.transactional_id, lambda: on_ended(None))

        command = EndTransaction(known.transactional_id, known.producer_id, known.epoch, commit)
        self._transactions.submit(command, decided)


def _failure_of(reply: CodeReply | ProducerReply | GoQueueError) -> GoQueueError | None:
    """None: it was done."""
    if isinstance(reply, GoQueueError):
        return reply
    return None if reply.code is Code.NONE else Refused(reply.code)

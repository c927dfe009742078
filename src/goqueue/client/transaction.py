"""Transactions: what is sent in one becomes visible all at once, or never; offsets of a group can be part of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from goqueue.client.assigned import Place
from goqueue.client.cluster import GROUP_KEY, TRANSACTION_KEY, Cluster
from goqueue.client.errors import BrokerRefused, ClientError, Closed, Fenced, InvalidArgument, code_of, refusal
from goqueue.client.identity import Identity
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.wire.kafka.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

_FENCED = frozenset((Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH))


class TransactionAborted(ClientError):
    """The transaction was aborted: nothing of it will be seen."""


class Consumed(NamedTuple):
    """Offsets to commit: those to go on from, and the member of the group that has come so far."""

    offsets: Mapping[Place, int]
    group: str
    member_id: str = ""
    member_epoch: int = -1


class HasConsumed(Protocol):
    """A consumer."""

    def consumed(self) -> Consumed: ...


class TransactionalIdentity(Identity):
    """Invariant: `producer_id` and `epoch` change between transactions only."""

    def __init__(self, cluster: Cluster, transactional_id: str, timeout_ms: int) -> None:
        super().__init__(cluster)
        self.transactional_id: str = transactional_id
        self._timeout_ms = timeout_ms
        self.is_open = False
        self.failure: GoQueueError | None = None
        """Why the open transaction can only be aborted; of a Fenced: why there will be no other."""
        self._enlisted: set[Place] = set()
        self._wanted: set[Place] = set()
        self._has_groups = False

    # -- its identity

    async def make(self) -> None:
        """Fence whoever had this id before; what it had open is aborted."""

        def request() -> InitProducerIdRequest:
            return InitProducerIdRequest(self.transactional_id, self._timeout_ms, self.producer_id, epoch)

        def check(answer: InitProducerIdResponse) -> None:
            _check(answer.error_code)

        epoch = self.epoch if self.is_ready else -1
        answer = await self._cluster.ask_coordinator(
            TRANSACTION_KEY, self.transactional_id, request, InitProducerIdResponse, check
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.on_ready()

    def fail(self, error: GoQueueError) -> None:
        if self.failure is None or isinstance(error, Fenced):
            self.failure = error

    # -- one transaction

    def why_not(self) -> GoQueueError | None:
        """Why nothing can be sent now; None: it can."""
        if self.failure is None and not self.is_open:
            return InvalidArgument("no transaction is open: async with producer.transaction(): ...")
        return self.failure

    def begin(self) -> None:
        if self.is_open:
            raise InvalidArgument("a transaction is open already")
        if self.failure is not None:
            raise self.failure
        self.is_open = True

    def may_write(self, place: Place) -> bool:
        if place in self._enlisted:
            return True
        self._wanted.add(place)
        return False

    async def enlist(self) -> None:
        """The coordinator must know a partition before anything is written there."""
        wanted = self._wanted - self._enlisted
        if not wanted or self.failure is not None:
            return
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for topic, partition in sorted(wanted):
            topics.setdefault(topic, AddPartitionsToTxnTopic(topic)).partitions.append(partition)

        def request() -> AddPartitionsToTxnRequest:
            return AddPartitionsToTxnRequest(
                [], self.transactional_id, self.producer_id, self.epoch, [*topics.values()]
            )

        def check(answer: AddPartitionsToTxnResponse) -> None:
            for topic in answer.results_by_topic_v3_and_below:
                for one in topic.results_by_partition:
                    if one.partition_error_code != Code.OPERATION_NOT_ATTEMPTED:
                        _check(one.partition_error_code)

        await self._cluster.ask_coordinator(
            TRANSACTION_KEY, self.transactional_id, request, AddPartitionsToTxnResponse, check
        )
        self._enlisted |= wanted
        self._wanted -= wanted
        self.on_ready()

    async def send_offsets(self, consumed: Consumed) -> None:
        """They count when the transaction is committed."""
        if (why := self.why_not()) is not None:
            raise why
        offsets, group, member_id, member_epoch = consumed

        def add() -> AddOffsetsToTxnRequest:
            return AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group)

        await self._cluster.ask_coordinator(
            TRANSACTION_KEY,
            self.transactional_id,
            add,
            AddOffsetsToTxnResponse,
            lambda answer: _check(answer.error_code),
        )
        self._has_groups = True
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (topic, partition), offset in offsets.items():
            asked = topics.setdefault(topic, TxnOffsetCommitRequestTopic(topic))
            asked.partitions.append(TxnOffsetCommitRequestPartition(partition, offset))

        def request() -> TxnOffsetCommitRequest:
            return TxnOffsetCommitRequest(
                self.transactional_id,
                group,
                self.producer_id,
                self.epoch,
                member_epoch,
                member_id,
                topics=list(topics.values()),
            )

        def check(answer: TxnOffsetCommitResponse) -> None:
            for topic in answer.topics:
                for one in topic.partitions:
                    _check(one.error_code)

        await self._cluster.ask_coordinator(GROUP_KEY, group, request, TxnOffsetCommitResponse, check)

    async def end(self, *, commits: bool) -> None:
        """All that was sent must have been answered before. Whoever was fenced can end nothing."""
        try:
            if isinstance(self.failure, Fenced):
                return
            if self._enlisted or self._has_groups:
                request = EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, commits)
                await self._cluster.ask_coordinator(
                    TRANSACTION_KEY,
                    self.transactional_id,
                    lambda: request,
                    EndTxnResponse,
                    lambda answer: _check(answer.error_code),
                )
            if not commits:
                # What was given up has left gaps in the sequences: a new epoch begins them anew.
                await self.make()
                self.failure = None
        except BrokerRefused as error:
            self.fail(error)
            raise
        finally:
            self.is_open = False
            self._enlisted.clear()
            self._wanted.clear()
            self._has_groups = False


@asynccontextmanager
async def run_transaction(
    identity: TransactionalIdentity,
    flush: Callable[[], Awaitable[None]],
    abandon: Callable[[GoQueueError], Awaitable[None]],
) -> AsyncIterator[None]:
    if not identity.is_ready:
        raise Closed("the producer was not started: use async with")
    identity.begin()
    try:
        yield
        await flush()
        if identity.failure is not None:
            raise identity.failure
    except BaseException:
        aborted = TransactionAborted("the transaction was aborted")
        identity.fail(aborted)
        await abandon(aborted)
        await identity.end(commits=False)
        raise
    await identity.end(commits=True)


def _check(number: int) -> None:
    code = code_of(number)
    if code in _FENCED:
        raise Fenced(code, "another producer with this transactional id has taken over")
    if code is not Code.NONE:
        raise refusal(code)

"""Leases from one broker: a session in which messages are fetched and settled, all on one connection.

Settlements of one turn of the event loop travel together, neighbours as ranges. The broker answers in the order of the
requests, so one that settles also makes it answer a fetch that waits.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from goqueue.client.cluster import FETCH, Cluster
from goqueue.client.connection import Connection
from goqueue.client.errors import ClientError, ConnectionLost, LeaseLost, refusal
from goqueue.client.share_member import TopicIdPartition
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.share_groups import (
    NO_DELAY,
    AcknowledgementBatch,
    ForgottenShareTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    SharePartition,
    ShareTopic,
)
from goqueue.wire.kafka.notation import INT32_MAX

OPEN_EPOCH, CLOSE_EPOCH = 0, -1
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
DONE = 0
EXACT = 1
"""As `share_acquire_mode`: never more records than asked for, even if they lie in one batch."""
CLOSE_S_MAX = 5.0
CONNECTION_LOST = "the broker that leased it was restarted, or the connection to it was lost: it is delivered again"
BEGIN_AGAIN = frozenset((Code.SHARE_SESSION_NOT_FOUND, Code.INVALID_SHARE_SESSION_EPOCH))


class Settlement(NamedTuple):
    kind: int
    delay_ms: int = NO_DELAY
    reason: str = ""


class _Wanted(NamedTuple):
    settlement: Settlement
    done: "asyncio.Future[None]"


class _Run(NamedTuple):
    """Neighbours that are settled alike."""

    first: int
    last: int
    settlement: Settlement
    waiting: "list[asyncio.Future[None]]"


Partitions: TypeAlias = frozenset[TopicIdPartition]
Runs: TypeAlias = dict[TopicIdPartition, list[_Run]]


class LeaseSession:
    def __init__(self, cluster: Cluster, node_id: int, group: str, member_id: str, start: str, lease_ms: int) -> None:
        self.node_id = node_id
        self.lease_s = 0.0
        """How long leases last, as the broker said last."""
        self._cluster = cluster
        self._group = group
        self._member_id = member_id
        self._start = start
        self._lease_ms = lease_ms
        self._epoch = OPEN_EPOCH
        self._connection: Connection | None = None
        self._told: Partitions = frozenset()
        """The partitions of the session, as the broker knows them."""
        self._wanted: dict[TopicIdPartition, dict[int, _Wanted]] = {}
        self._flush_is_due = False

    @property
    def connection(self) -> Connection | None:
        """While it is open."""
        return self._connection if self._connection is not None and self._connection.is_open else None

    def give_up(self, why: ConnectionLost) -> None:
        """Whoever waits for an answer is told so now."""
        if self._connection is not None:
            self._connection.abort(why)

    # -- fetching

    async def fetch(
        self, partitions: frozenset[TopicIdPartition], records_max: int, wait_s: float
    ) -> ShareFetchResponse:
        """What is ready, or nothing after a while. ClientError: it failed, and the next one begins anew."""
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._cluster.connection(self.node_id, FETCH)
            self._connection, self._epoch = connection, OPEN_EPOCH
        if self._epoch == OPEN_EPOCH:
            self._told = frozenset()
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._next_epoch(),
            max_wait_ms=round(wait_s * 1000),
            max_records=records_max,
            batch_size=records_max,
            share_acquire_mode=EXACT,
            topics=_topics((key, []) for key in sorted(partitions - self._told)),
            forgotten_topics_data=_forgotten(self._told - partitions),
            gq_start=self._start,
            gq_lease_ms=self._lease_ms,
        )
        self._told = partitions
        answer = await connection.ask(request, ShareFetchResponse, wait_s)
        if answer.error_code != Code.NONE:
            self._epoch = OPEN_EPOCH
            raise refusal(answer.error_code, answer.error_message)
        self.lease_s = answer.acquisition_lock_timeout_ms / 1000
        return answer

    def _next_epoch(self) -> int:
        epoch = self._epoch
        self._epoch = epoch + 1 if epoch < INT32_MAX else OPEN_EPOCH + 1
        return epoch

    # -- settling

    def settle(self, key: TopicIdPartition, offset: int, settlement: Settlement) -> "asyncio.Future[None]":
        """The future is done when the settlement is durable; LeaseLost: the message is no longer ours."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wanted = self._wanted.setdefault(key, {})
        before = wanted.get(offset)
        if before is not None and settlement.kind == RENEW:  # what is settled needs no lease
            done.set_result(None)
            return done
        if before is not None and not before.done.done():
            before.done.set_result(None)
        wanted[offset] = _Wanted(settlement, done)
        if not self._flush_is_due:
            self._flush_is_due = True
            asyncio.get_running_loop().call_soon(self._flush)
        return done

    def _flush(self) -> None:
        self._flush_is_due = False
        wanted, self._wanted = self._wanted, {}
        runs = {key: _runs(settlements) for key, settlements in wanted.items()}
        connection = self._connection
        if connection is None or not connection.is_open or self._epoch == OPEN_EPOCH:
            _fail(runs, LeaseLost(CONNECTION_LOST))
            return
        answer = connection.send(self._request(runs, self._next_epoch()))
        answer.add_done_callback(lambda answer: self._settled(runs, answer))

    def _request(self, runs: Runs, epoch: int) -> ShareAcknowledgeRequest:
        batches = (
            (
                key,
                [
                    AcknowledgementBatch(run.first, run.last, [run.settlement.kind], *_wishes(run.settlement))
                    for run in runs[key]
                ],
            )
            for key in sorted(runs)
        )
        renews = any(run.settlement.kind == RENEW for each in runs.values() for run in each)
        return ShareAcknowledgeRequest(self._group, self._member_id, epoch, renews, _topics(batches))

    def _settled(self, runs: Runs, answer: "asyncio.Future[ShareAcknowledgeResponse]") -> None:
        if answer.cancelled():
            return
        failure = answer.exception()
        if failure is not None:
            assert isinstance(failure, ClientError)
            _fail(runs, failure)
            return
        response = answer.result()
        if response.error_code != Code.NONE:
            if response.error_code in BEGIN_AGAIN:
                self._epoch = OPEN_EPOCH
            _fail(runs, _error(response.error_code, response.error_message))
            return
        told = {
            (topic.topic_id, part.partition_index): part for topic in response.responses for part in topic.partitions
        }
        for key, settled in runs.items():
            part = told.get(key)
            code = Code.UNKNOWN_SERVER_ERROR if part is None else part.error_code
            verdicts = part.gq_verdicts if part is not None else []
            for number, run in enumerate(settled):
                is_done = code == Code.NONE or (number < len(verdicts) and verdicts[number] == DONE)
                _tell(run, None if is_done else _error(code, part.error_message if part else None))

    async def close(self) -> None:
        """What is still leased goes back at once, as if it had never been delivered."""
        if self._flush_is_due:
            self._flush()
        connection, self._connection = self._connection, None
        if connection is None or not connection.is_open or self._epoch == OPEN_EPOCH:
            return
        request = ShareAcknowledgeRequest(self._group, self._member_id, CLOSE_EPOCH)
        self._epoch = OPEN_EPOCH
        try:
            async with asyncio.timeout(CLOSE_S_MAX):
                await connection.ask(request, ShareAcknowledgeResponse)
        except (ClientError, TimeoutError):
            connection.abort(ConnectionLost("the session could not be closed"))  # which ends it as well


def _error(code: int, message: str | None) -> ClientError:
    if code == Code.INVALID_RECORD_STATE or code in BEGIN_AGAIN:
        return LeaseLost("its lease has ended: it is delivered again, perhaps to another worker")
    return refusal(code, message)


def _wishes(settlement: Settlement) -> tuple[int, str | None]:
    return settlement.delay_ms, settlement.reason or None


def _runs(settlements: dict[int, _Wanted]) -> list[_Run]:
    runs: list[_Run] = []
    for offset in sorted(settlements):
        settlement, done = settlements[offset]
        before = runs[-1] if runs else None
        if before is not None and before.last + 1 == offset and before.settlement == settlement:
            before.waiting.append(done)
            runs[-1] = before._replace(last=offset)
        else:
            runs.append(_Run(offset, offset, settlement, [done]))
    return runs


def _tell(run: _Run, error: ClientError | None) -> None:
    for done in run.waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


def _fail(runs: Runs, error: ClientError) -> None:
    for settled in runs.values():
        for run in settled:
            _tell(run, error)


def _topics(parts: Iterable[tuple[TopicIdPartition, Sequence[AcknowledgementBatch]]]) -> list[ShareTopic]:
    """In the order in which they come, which is by topic."""
    topics: list[ShareTopic] = []
    for (topic_id, number), batches in parts:
        if not topics or topics[-1].topic_id != topic_id:
            topics.append(ShareTopic(topic_id))
        topics[-1].partitions.append(SharePartition(number, list(batches)))
    return topics


def _forgotten(keys: Iterable[TopicIdPartition]) -> list[ForgottenShareTopic]:
    topics: list[ForgottenShareTopic] = []
    for topic_id, number in sorted(keys):
        if not topics or topics[-1].topic_id != topic_id:
            topics.append(ForgottenShareTopic(topic_id))
        topics[-1].partitions.append(number)
    return topics

"""Brings batches to the leaders of their partitions: in order, each once, again after every failure that may pass.

One request carries one batch: the broker reads many requests of a connection at once, and recognises the next one to
the same partition by its first bytes. Nothing here waits: answers, connections and timers call back.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from goqueue.client.batches import EPOCH_MAX, Batch, PartitionQueue
from goqueue.client.cluster import NO_LEADER, Cluster
from goqueue.client.connection import Connection
from goqueue.client.errors import (
    MOVED,
    RETRIABLE,
    ClientError,
    Closed,
    ConnectionLost,
    DeliveryTimeout,
    TimedOut,
    UnknownTopic,
    code_of,
    refusal,
)
from goqueue.client.identity import Identity
from goqueue.client.tasks import Tasks
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Codec
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.messages.produce import (
    DURABILITY_NAMES,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

ACKS_ALL = -1
UNKNOWN_TOPIC_S_MAX = 5.0
SWEEP_S = 0.5
"""How often what has waited too long is looked for."""

MAY_BE_STORED = frozenset((Code.REQUEST_TIMED_OUT, Code.KAFKA_STORAGE_ERROR, Code.UNKNOWN_SERVER_ERROR))
ONE_MAY_BE_BAD = frozenset((Code.INVALID_RECORD, Code.MESSAGE_TOO_LARGE, Code.INVALID_TIMESTAMP))
"""One message may be what is wrong with a batch; the others shall not suffer for it."""
HELD_UP = frozenset((Code.REQUEST_TIMED_OUT, Code.NOT_ENOUGH_REPLICAS, Code.KAFKA_STORAGE_ERROR))
"""A leader that is cut off from the others says so too, and does not know who leads now."""
HEARD_SHARE = 2 / 3
"""Of the time that a request may take, how long the broker may wait for copies: its own word that they are missing is
heard then, and the connection with the answers of all other partitions is not given up for it."""
COUNT_ANEW = frozenset((Code.UNKNOWN_PRODUCER_ID, Code.INVALID_PRODUCER_EPOCH))


class SenderOptions(NamedTuple):
    codec: Codec
    delivery_s_max: float
    request_s_max: float


log = get_logger("goqueue.client")

Work = Callable[[], Coroutine[Any, Any, None]]
OnEnd = Callable[[Batch, GoQueueError | None], None]
OnSplit = Callable[[Batch, Batch, Batch], None]


class Sender:
    def __init__(
        self, cluster: Cluster, identity: Identity, options: SenderOptions, on_end: OnEnd, on_split: OnSplit
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._options = options
        self._on_end = on_end
        self._on_split = on_split
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._busy: dict[PartitionQueue, None] = {}
        """Those with something to do, in the order in which they got it."""
        self._is_pump_due = False
        self._under_way: set[object] = set()
        """What is being prepared in the background: connections by node, metadata, the identity."""
        self._attempts: dict[object, int] = {}
        self._is_sweeping = False
        self._is_stopped = False
        self._timeout_ms = max(1, int(options.request_s_max * HEARD_SHARE * 1000))
        identity.on_ready = self._pump_soon

    def wake(self, queue: PartitionQueue) -> None:
        """It has a batch to send."""
        self._busy[queue] = None
        self._pump_soon()
        if not self._is_sweeping:
            self._is_sweeping = True
            self._cluster.clock.call_after(SWEEP_S, self._sweep)

    async def stop(self) -> None:
        """What is still here fails: whoever stops has flushed before."""
        await self._tasks.stop()
        self._is_stopped = True
        for queue in list(self._busy):
            for batch in [*queue.in_flight, *queue.waiting]:
                self._on_end(batch, Closed("the producer was closed before this message was acknowledged"))
            queue.in_flight.clear()
            queue.waiting.clear()
        self._busy.clear()

    def give_up(self, error: GoQueueError) -> None:
        """Fail all that is not under way (of a transaction that cannot be saved)."""
        for queue in list(self._busy):
            self._fail_waiting(queue, lambda _: error)

    # -- sending

    def _pump_soon(self) -> None:
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pump_due = False
        now_s = self._cluster.clock.time_s()
        for queue in list(self._busy):
            if queue.waiting and not queue.in_flight and queue.waiting[0].deadline_s <= now_s:
                self._fail_waiting(queue, partial(self._too_late, now_s))
            if queue.may_send(now_s):
                self._send(queue, now_s)
            if not queue.waiting and not queue.in_flight:
                del self._busy[queue]

    def _send(self, queue: PartitionQueue, now_s: float) -> None:
        """As much of one queue as may be under way."""
        if not self._has_identity(queue):
            return
        if not self._identity.may_write(queue.place):
            self._prepare("transaction", self._identity.enlist)
            return
        node_id = self._cluster.leader(queue.topic, queue.partition)
        if node_id == NO_LEADER:
            self._prepare("metadata", self._refresh)
            return
        connection = self._cluster.ready(node_id)
        if connection is None:
            self._prepare(node_id, lambda: self._connect(node_id))
            if queue.failures:  # it may lead no more: who does is asked meanwhile, and not when it has not answered
                self._prepare("metadata", self._refresh)
            return
        while queue.may_send(now_s):
            if not connection.has_room:
                connection.when_room(self._pump_soon)
                return
            self._send_one(connection, queue, node_id)

    def _send_one(self, connection: Connection, queue: PartitionQueue, node_id: int) -> None:
        batch = queue.take()
        name = self._identity.transactional_id
        try:
            data = batch.encode(self._options.codec, queue.producer_id, queue.epoch, name is not None)
            part = PartitionProduceData(queue.partition, memoryview(data))
            topics = [TopicProduceData(queue.topic, partition_data=[part])]
            answer = connection.send(ProduceRequest(name, ACKS_ALL, self._timeout_ms, topics))
        except Exception as error:  # noqa: BLE001  whatever it is, nobody else would tell whoever waits for this batch
            answer = self._loop.create_future()
            answer.set_exception(error)
        answer.add_done_callback(partial(self._answered, queue, batch, node_id))

    def _has_identity(self, queue: PartitionQueue) -> bool:
        """Who sends: known, and the right one for this partition."""
        identity = self._identity
        if not identity.is_ready:
            self._prepare("identity", identity.make)
            return False
        is_right = queue.producer_id >= 0 and not queue.needs_epoch
        if is_right and identity.transactional_id is not None:
            is_right = (queue.producer_id, queue.epoch) == (identity.producer_id, identity.epoch)
        return is_right or self._adopt(queue)

    def _adopt(self, queue: PartitionQueue) -> bool:
        if queue.in_flight:
            return False
        identity = self._identity
        epoch = identity.epoch
        if queue.needs_epoch:
            error = DeliveryTimeout("an earlier message was given up; this one may be stored", may_be_stored=True)
            self._fail_waiting(queue, lambda batch: error if batch.has_doubt else None)
            if identity.transactional_id is None and queue.producer_id == identity.producer_id:
                if queue.epoch >= EPOCH_MAX:
                    identity.forget()
                    self._prepare("identity", identity.make)
                    return False
                epoch = queue.epoch + 1  # a partition counts the epochs of a plain producer for itself
        queue.adopt(identity.producer_id, epoch)
        return bool(queue.waiting)

    # -- answers

    def _answered(
        self, queue: PartitionQueue, batch: Batch, node_id: int, future: "asyncio.Future[ProduceResponse]"
    ) -> None:
        queue.unanswered -= 1
        error = future.exception()
        if self._is_stopped:
            return
        if error is None:
            try:
                self._judge(queue, batch, node_id, future.result())
            except Exception as fault:  # else the batch would be neither sent again nor given up, for ever
                log.error("an answer could not be understood", node=node_id, exc_info=fault)
                batch.has_doubt = True
                self._end_for_good(queue, batch, _as_ours(fault))
        else:
            batch.has_doubt = True
            queue.has_failed = True
            if not isinstance(error, ConnectionLost | TimedOut):
                batch.has_doubt = False
                self._end_for_good(queue, batch, _as_ours(error))
            else:
                self._cluster.doubt(node_id)
        if not queue.unanswered and (queue.in_flight or queue.gap >= 0):
            queue.settle()
            self._pause(queue)
        if queue.waiting:
            self._pump_soon()
        elif not queue.in_flight:
            self._busy.pop(queue, None)

    def _judge(self, queue: PartitionQueue, batch: Batch, node_id: int, response: ProduceResponse) -> None:
        (topic,) = response.responses
        (answer,) = topic.partition_responses
        if answer.error_code == 0:
            queue.finish(batch)
            queue.failures = 0
            durability = DURABILITY_NAMES.get(answer.gq_durability)
            batch.succeed(answer.base_offset, answer.log_append_time_ms, durability)
            self._on_end(batch, None)
        elif not self._cluster.follow(queue.place, node_id, answer.current_leader, response.node_endpoints):
            self._refused(queue, batch, node_id, answer)

    def _refused(self, queue: PartitionQueue, batch: Batch, node_id: int, answer: PartitionProduceResponse) -> None:
        code = code_of(answer.error_code)
        if code is Code.DUPLICATE_SEQUENCE_NUMBER:
            queue.finish(batch)
            batch.succeed(-1, -1)
            self._on_end(batch, None)
            return
        is_behind = queue.in_flight[0] is not batch or queue.gap >= 0 or queue.needs_epoch
        if code in MAY_BE_STORED:
            batch.has_doubt = True
        if code in MOVED:
            if queue.failures:  # it was asked for since, and whoever told of this leader may be behind
                self._cluster.doubt_contact()
            self._prepare("metadata", self._refresh)
        elif code in HELD_UP and self._cluster.suspect(node_id):
            self._prepare("metadata", self._refresh)
        if code is Code.OUT_OF_ORDER_SEQUENCE_NUMBER and is_behind:
            return  # the broker waits for the one before it
        queue.has_failed = True
        if code in RETRIABLE:
            return
        if self._identity.transactional_id is not None:
            error = refusal(code, answer.error_message)
            self._identity.fail(error)
            self._end_for_good(queue, batch, error)
        elif code is Code.OUT_OF_ORDER_SEQUENCE_NUMBER or code in COUNT_ANEW:
            queue.count_anew()
        elif code in ONE_MAY_BE_BAD and len(batch.records) > 1:
            queue.failures, queue.has_failed = 0, False
            halves = batch.split()
            queue.turn_away(batch, *halves)
            self._on_split(batch, *halves)
        else:
            self._end_for_good(queue, batch, refusal(code, answer.error_message))

    def _end_for_good(self, queue: PartitionQueue, batch: Batch, error: GoQueueError) -> None:
        queue.failures, queue.has_failed = 0, False
        if batch in queue.in_flight:
            queue.turn_away(batch)
            self._on_end(batch, error)

    def _pause(self, queue: PartitionQueue) -> None:
        """Before it is tried again. All that was under way has failed together, which counts once: a leader that is
        gone is gone once, however much was on its way to it."""
        if not queue.has_failed:
            return
        queue.has_failed = False
        queue.failures += 1
        cluster = self._cluster
        pause_s = cluster.backoff.pause_s(queue.failures - 1, cluster.dice)
        queue.retry_at_s = cluster.clock.time_s() + pause_s
        cluster.clock.call_after(pause_s, self._pump_soon)

    # -- what takes time

    def _prepare(self, what: object, work: Work) -> None:
        if what not in self._under_way:
            self._under_way.add(what)
            self._tasks.start(self._prepared(what, work), f"goqueue producer: {what}")

    async def _prepared(self, what: object, work: Work) -> None:
        """One attempt; as long as somebody needs it, the next pump asks for another."""
        cluster = self._cluster
        try:
            await work()
            self._attempts.pop(what, None)
        except Exception as error:  # a bug must not turn into a loop without a pause
            if not isinstance(error, ClientError):
                log.error("a producer could not go on, which is a bug", what=str(what), exc_info=error)
            elif not error.retriable:
                self._identity.fail(error)
                self.give_up(error)
            failed = self._attempts[what] = self._attempts.get(what, 0) + 1
            await cluster.clock.sleep(cluster.backoff.pause_s(failed - 1, cluster.dice))
        finally:
            self._under_way.discard(what)
            self._pump_soon()

    async def _connect(self, node_id: int) -> None:
        try:
            await self._cluster.connection(node_id)
        except (ConnectionLost, TimedOut):
            self._cluster.doubt(node_id)
            self._prepare("metadata", self._refresh)  # it may lead no more
            raise

    async def _refresh(self) -> None:
        cluster = self._cluster
        queues = list(self._busy)
        codes = await cluster.refresh({queue.topic for queue in queues})
        now_s = cluster.clock.time_s()
        for queue in queues:
            if codes.get(queue.topic) is not Code.UNKNOWN_TOPIC_OR_PARTITION:
                queue.unknown_since_s = None
            elif queue.unknown_since_s is None:
                queue.unknown_since_s = now_s
                cluster.doubt_contact()  # it may be behind: another one is to say so too
            elif now_s - queue.unknown_since_s > UNKNOWN_TOPIC_S_MAX:
                gone = UnknownTopic(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {queue.topic!r} any more")
                self._fail_waiting(queue, lambda _, gone=gone: gone)  # type: ignore[misc]
        if any(cluster.ready(cluster.leader(*queue.place)) is None for queue in queues):
            self._pump_soon()
            await cluster.clock.sleep(cluster.backoff.pause_s(1, cluster.dice))

    # -- what has waited too long

    def _sweep(self) -> None:
        self._is_sweeping = bool(self._busy)
        if not self._busy:
            return
        self._cluster.clock.call_after(SWEEP_S, self._sweep)
        self._pump_soon()

    def _too_late(self, now_s: float, batch: Batch) -> GoQueueError | None:
        if batch.deadline_s > now_s:
            return None
        text = f"not acknowledged within {self._options.delivery_s_max:g} s"
        if batch.has_doubt:
            text += "; it was sent, and may be stored"
        return DeliveryTimeout(text, may_be_stored=batch.has_doubt)

    def _fail_waiting(self, queue: PartitionQueue, judge: Callable[[Batch], GoQueueError | None]) -> None:
        left = []
        for batch in queue.waiting:
            error = judge(batch)
            if error is None:
                left.append(batch)
                continue
            if batch.has_doubt:
                queue.needs_epoch = True
            elif batch.sequence >= 0:
                queue.gap = batch.sequence if queue.gap < 0 else queue.gap
            if self._identity.transactional_id is not None:
                self._identity.fail(error)
            self._on_end(batch, error)
        queue.waiting.clear()
        queue.waiting.extend(left)
        if not queue.unanswered and queue.gap >= 0:
            queue.settle()


def _as_ours(error: BaseException) -> GoQueueError:
    return error if isinstance(error, GoQueueError) else ClientError(f"{type(error).__name__}: {error}")

"""A channel of kombu: queues are topics that a queue group works off, fanout exchanges are streams read from their end.

What Celery declares of exchanges is known to the process that declares it, as with SQS. What has to reach other
processes (remote control, its replies, events) goes through streams, and each reader takes what is for it.
"""

import re
from collections.abc import Callable
from typing import Any

from kombu.transport import virtual

from goqueue.client import ClientError, Job, Message
from goqueue.integrations.celery.link import Arrival, Link, Tail, Tap
from goqueue.integrations.celery.words import from_record, to_record, topic_name, wishes
from goqueue.telemetry.logs import get_logger

FANOUT = "fanout"
REPLIES = re.compile(r"reply\..*\.pidbox")
"""Exchanges of kombu's mailboxes, direct ones: who replies cannot know which queue is bound in another process."""

log = get_logger("goqueue.celery")


class QoS(virtual.QoS):
    """Which messages are out; GoQueue itself keeps them until they are settled."""

    def ack(self, delivery_tag: str) -> None:
        self.channel.settle(delivery_tag, Job.ack)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        self.channel.settle(delivery_tag, _again if requeue else _give_up)
        self._quick_ack(delivery_tag)

    def restore_unacked_once(self, stderr: object = None) -> None:
        """When its channel closes, the broker delivers them again."""
        self._on_collect.cancel()


async def _again(job: Job) -> None:
    await job.nack(0, "requeued by a worker of Celery")


async def _give_up(job: Job) -> None:
    await job.reject("rejected by a worker of Celery")


class Channel(virtual.Channel):
    QoS = QoS
    do_restore = False
    supports_fanout = True
    body_encoding = None
    queue_name_prefix = ""
    event_exchanges = ("celeryev",)
    """Topic exchanges that are streams, since only other processes read them."""
    stream_retention_ms = 600_000
    partitions = 1
    """Of a queue that is new. With several, each has its lanes: an urgent task of one waits for the turn of others."""
    from_transport_options = (
        *virtual.Channel.from_transport_options,
        "queue_name_prefix",
        "event_exchanges",
        "partitions",
        "stream_retention_ms",
    )

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._link: Link = connection.link
        self._taps: list[Tap] = []
        self._tails: dict[tuple[str, str, str], Tail] = {}
        """By queue, exchange and routing key."""
        self._streamed: set[str] = set()
        """Queues that get what streams bring."""
        self._jobs: dict[str, Job] = {}
        """By delivery tag, those that are not settled."""
        self._without_ack: set[str] = set()
        self._transient: set[str] = set()
        """Queues that end with whoever reads them."""
        self._made: set[str] = set()

    # -- publishing

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        topic = self._topic(queue)
        self._make(topic, self.partitions)
        self._link.publish(topic, *to_record(message), wishes(message))

    def _put_fanout(self, exchange: str, message: dict[str, Any], routing_key: str, **kwargs: Any) -> None:
        topic = self._topic(exchange)
        self._make(topic, 1, self.stream_retention_ms)
        self._link.post(topic, *to_record(message))

    # -- declaring

    def _topic(self, name: str) -> str:
        return topic_name(name, self.queue_name_prefix)

    def _is_stream(self, exchange: str) -> bool:
        return exchange in self.event_exchanges or REPLIES.fullmatch(exchange) is not None

    def exchange_declare(self, exchange: str | None = None, type: str = "direct", **kwargs: Any) -> None:
        super().exchange_declare(exchange, FANOUT if self._is_stream(exchange or "") else type, **kwargs)

    def typeof(self, exchange: str, default: str = "direct") -> Any:
        return self.exchange_types[FANOUT] if self._is_stream(exchange) else super().typeof(exchange, default)

    def _new_queue(self, queue: str, auto_delete: bool = False, **kwargs: Any) -> None:
        if auto_delete:
            self._transient.add(queue)

    def queue_declare(self, queue: str | None = None, passive: bool = False, **kwargs: Any) -> Any:
        """Only who asks without declaring is told the size: it costs a request."""
        declared = super().queue_declare(queue, False, **kwargs)
        size = self._link.run(self._link.size(self._topic(declared.queue))) if passive else 0
        return declared._replace(message_count=size)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        if self.typeof(exchange).type != FANOUT:
            return
        place = (queue, exchange, routing_key)
        if place in self._tails:
            return
        topic = self._topic(exchange)
        self._make(topic, 1, self.stream_retention_ms)
        is_wanted = self._filter(exchange, routing_key)

        def arrive(message: Message) -> None:
            if is_wanted(_routing_key(message)):
                self._link.arrive(Arrival(self, queue, message))

        def fail(error: Exception) -> None:
            self._link.arrive(Arrival(self, queue, None, error=error))

        tail = self._tails[place] = Tail(self._link, topic, arrive, fail)
        self._streamed.add(queue)
        self._link.run(tail.start())

    def _filter(self, exchange: str, routing_key: str) -> Callable[[str], bool]:
        if exchange in self.event_exchanges:
            pattern = re.compile(self.exchange_types["topic"].key_to_pattern(routing_key or "#"))
            return lambda key: pattern.match(key) is not None
        if REPLIES.fullmatch(exchange):
            return lambda key: key == routing_key
        return lambda key: True

    def _make(self, topic: str, partitions: int, retention_ms: int | None = None) -> None:
        """Once: what others delete meanwhile is made by the next process."""
        if topic not in self._made:
            options = {} if retention_ms is None else {"retention.ms": str(retention_ms)}
            self._link.run(self._link.make_topic(topic, partitions, options))
            self._made.add(topic)

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any) -> None:
        if if_empty and self._size(queue):
            return
        self.state.queue_bindings_delete(queue)
        if queue not in self._streamed:
            self._link.run(self._link.delete_topic(self._topic(queue)))
            self._made.discard(self._topic(queue))
            return
        self._streamed.discard(queue)
        for place in [place for place in self._tails if place[0] == queue]:
            self._link.run(self._tails.pop(place).close())

    def _size(self, queue: str) -> int:
        return 0 if queue in self._streamed else self._link.run(self._link.size(self._topic(queue)))

    def _purge(self, queue: str) -> int:
        return 0 if queue in self._streamed else self._link.run(self._link.purge(self._topic(queue)))

    # -- consuming

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> None:
        super().basic_consume(queue, no_ack, *args, **kwargs)
        if no_ack:
            self._without_ack.add(queue)
        if queue not in self._streamed:
            self._make(self._topic(queue), self.partitions)
            self._tap()

    def basic_cancel(self, consumer_tag: str) -> None:
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is not None and queue not in self._streamed and self._link.is_ours:
            self._tap()

    def _tap(self) -> None:
        """Takes from all queues that are consumed now."""
        queues = {self._topic(queue): queue for queue in self._active_queues if queue not in self._streamed}
        if self._taps and self._taps[-1].is_open:
            self._link.run(self._taps[-1].subscribe(queues))
        elif queues:
            tap = Tap(self._link, self, queues)
            self._taps.append(tap)
            self._link.run(tap.start(self.qos.prefetch_count))

    def basic_qos(self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False) -> None:
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        if self._taps and self._taps[-1].is_open:
            self._link.run(self._taps[-1].limit(prefetch_count))

    def deliver(self, arrival: Arrival) -> bool:
        """To whoever consumes its queue. False: nobody does any more, and it goes back. Or it has waited here, behind a
        long task, while the connection was lost over which it was leased: then it is delivered again already.
        """
        message, job = arrival.message, arrival.job
        assert message is not None
        callback = None if self.closed else self.connection._callbacks.get(arrival.queue)  # noqa: SLF001
        if callback is None or (job is not None and not job.is_ours):
            if job is not None:
                self._link.settle(job, _again)
            return False
        tag = f"{message.topic}/{message.partition}/{message.offset}/{0 if job is None else job.attempt}"
        if job is not None and arrival.queue in self._without_ack:
            self._link.settle(job, Job.ack)
        elif job is not None:
            self._jobs[tag] = job
        callback(from_record(message, tag, is_redelivered=job is not None and job.attempt > 1))
        return True

    def settle(self, tag: str, how: Any) -> None:
        job = self._jobs.pop(tag, None)
        if job is not None:
            self._link.settle(job, how)

    def _restore(self, message: Any) -> None:
        self.settle(message.delivery_tag, _again)

    # -- its end

    def close(self) -> None:
        if self.closed:
            return
        taps, self._taps = self._taps, []
        tails, self._tails = list(self._tails.values()), {}
        transient = self._transient - self._streamed
        if not self._link.is_open or not self._link.is_ours:
            taps, tails, transient = [], [], set()
        elif taps:
            self._link.run(self._link.settled())
        self._active_queues.clear()  # so that nothing is taken anew while consumers are cancelled
        for tap in taps:
            self._link.run(tap.close())
        for tail in tails:
            self._link.run(tail.close())
        super().close()
        for queue in transient:
            try:
                self._link.run(self._link.delete_topic(self._topic(queue)))
            except ClientError as error:
                log.warning("a queue of this process could not be deleted", queue=queue, reason=str(error))


def _routing_key(message: Message) -> str:
    properties = from_record(message, "", is_redelivered=False)["properties"]
    return str(properties["delivery_info"].get("routing_key") or "")

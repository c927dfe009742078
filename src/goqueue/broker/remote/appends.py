"""Batches of the broker's own for partitions that another node leads, as dead letters are: the leader publishes them as
it would a producer's, and answers when all in-sync replicas have them.
"""

from collections.abc import Callable
from typing import Any

from goqueue.broker.publishing.publish import Acknowledger, Publisher
from goqueue.broker.remote.asking import Asking, Where
from goqueue.broker.remote.messages import Answered, Append, Appended, decode_appended, encode
from goqueue.broker.remote.serving import Elsewhere, OnAnswer, Serving
from goqueue.broker.topics.topics import Topics
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, Indeterminate
from goqueue.model.refusal import Refused
from goqueue.replica.replica import Appended as Placed
from goqueue.telemetry.logs import get_logger

TIMEOUT_MS = 10_000

events = get_logger("broker")

OnAppended = Callable[[int | GoQueueError], None]
"""The offset of its first record. NotReached: it was not done. Indeterminate: it may have been."""
OnPlaced = Callable[[Placed | GoQueueError], None]


class Waited:
    """What an append to another node is acknowledged by: it stands for that node's replica."""

    def __init__(self) -> None:
        self.failure: GoQueueError | None = None
        self.base_offset = -1
        self._is_over = False
        self._calls: list[Callable[[], None]] = []

    def when_reached(self, _offset: int, call: Callable[[], None]) -> None:
        if self._is_over:
            call()
        else:
            self._calls.append(call)

    def end(self, result: int | GoQueueError) -> None:
        self._is_over = True
        if isinstance(result, GoQueueError):
            self.failure = result
        else:
            self.base_offset = result
        calls, self._calls = self._calls, []
        for call in calls:
            call()


class RemoteAppends:
    def __init__(self, asking: Asking, serving: Serving, topics: Topics, publisher: Publisher) -> None:
        self._asking = asking
        self._topics = topics
        self._publisher = publisher
        serving.others[Append] = self._append

    def is_elsewhere(self, topic: str, partition: int) -> bool:
        return self._topics.exists(topic, partition) and not self._topics.leads(topic, partition)

    def bytes_max(self, topic: str) -> int:
        """Of a batch there."""
        return self._topics.image.topics[topic].options(self._topics.defaults).max_message_bytes + 1

    def append(
        self, topic: str, partition: int, batch: bytes | bytearray, on_appended: OnAppended, *, is_own: bool = True
    ) -> None:
        """It is not done twice: who is told Indeterminate decides. `is_own`: no quota of a tenant keeps it out."""
        known = self._topics.image.topics.get(topic)
        if known is None:
            on_appended(Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}"))
            return
        topic_id, data = known.id, bytes(batch)

        def answered(answer: Answered | GoQueueError) -> None:
            is_error = isinstance(answer, GoQueueError)
            on_appended(answer if is_error else decode_appended(answer.value).base_offset)  # type: ignore[union-attr,arg-type]

        self._asking.ask(
            Where(topic, partition),
            lambda epoch, left_ms: Append(topic_id, partition, epoch, data, left_ms, is_own),
            answered,
            timeout_ms=TIMEOUT_MS,
        )

    def wait(self, topic: str, partition: int, batch: bytes | bytearray) -> tuple[Waited, Placed]:
        """The same, as `Publisher.publish` tells of it; where it stands is known when it was acknowledged."""
        waited = Waited()
        self.append(topic, partition, batch, waited.end)
        return waited, Placed(-1, 0, -1)

    def append_anywhere(self, topic: str, partition: int, batch: bytes, on_appended: OnAppended) -> None:
        """On this node or another, as a message of a client: quotas of its tenant count."""
        if self.is_elsewhere(topic, partition):
            self.append(topic, partition, batch, on_appended, is_own=False)
            return

        def placed(result: Placed | GoQueueError) -> None:
            on_appended(result if isinstance(result, GoQueueError) else result.base_offset)

        self._publish(topic, partition, batch, TIMEOUT_MS, placed, is_own=False)

    # -- being asked

    def _append(self, request: Append, on_answer: OnAnswer) -> None:
        topic = self._topics.image.by_id(request.topic_id)
        if topic is None or not self._topics.leads(topic.name, request.partition):
            raise Elsewhere(f"{request.topic_id.hex()}/{request.partition}")

        def placed(result: Placed | GoQueueError) -> None:
            if isinstance(result, GoQueueError):
                on_answer(result)  # type: ignore[arg-type]  # told as an error
            else:
                on_answer(Answered(0, encode(Appended(result.base_offset, result.append_time))))

        self._publish(topic.name, request.partition, request.batch, request.left_ms, placed, is_own=request.is_own)

    def _publish(
        self, topic: str, partition: int, batch: bytes, left_ms: int, on_placed: OnPlaced, *, is_own: bool
    ) -> None:
        """Here, and wait until it is acknowledged."""
        publisher = self._publisher

        def published(result: tuple[Acknowledger, Placed] | Exception) -> None:
            if isinstance(result, GoQueueError):
                on_placed(result)
            elif isinstance(result, Exception):
                events.error("append failed", topic=topic, exc_info=result)
                on_placed(Indeterminate("a fault of the node"))
            else:
                wait(*result)

        def wait(acknowledger: Acknowledger, placed: Placed) -> None:
            def ended(code: Code) -> None:
                on_placed(placed if code is Code.NONE else Indeterminate(f"not acknowledged: {code.name}"))

            publisher.acknowledgements.wait(acknowledger, placed.next_offset, left_ms, ended)

        steps: Any = publisher.told_steps(topic, partition, memoryview(bytearray(batch)), is_own=is_own)
        publisher.turns.run(steps, published)

"""PublishService: one message, or a stream of them that is answered as they become durable."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from goqueue.broker.topics.auto_creation import create_missing, missing
from goqueue.doors.grpc.call import Call
from goqueue.doors.grpc.convert import Publishing, new_message, timestamp_of
from goqueue.doors.grpc.errors import GrpcError, error_of
from goqueue.doors.grpc.serving import Requests, StopsHere, Writing
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.transactions import Placed, Producer
from goqueue.records.messages import NewMessage, Sent
from goqueue.wire.grpc import common_pb2
from goqueue.wire.grpc import publish_pb2 as pb

UNANSWERED_MAX = 1000
UNANSWERED_BYTES_MAX = 16 * 1024 * 1024
"""Of one stream: who sends faster than the disk takes must wait."""
BATCH_MAX = 10_000
SEQUENCE_MAX = 2**31 - 1
NOT_TOLD = -1
DURABILITIES = {
    "": common_pb2.DURABILITY_UNSPECIFIED,
    "os": common_pb2.DURABILITY_OS,
    "disk": common_pb2.DURABILITY_DISK,
}

ACK_MODES = frozenset(common_pb2.AckMode.values())

OnPublished = Callable[[list[pb.PublishResponse | GoQueueError]], None]


class PublishService:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def publish(self, request: pb.PublishRequest) -> pb.PublishResponse:
        failed = await make_topics(self._call, [request])
        (answer,) = await self._call.ask(partial(publish_all, self._call, [request], failed))
        if isinstance(answer, GoQueueError):
            try:
                raise answer.kept()
            finally:
                del answer  # the error holds this frame
        assert isinstance(answer, pb.PublishResponse)
        return answer

    async def publish_stream(self, requests: Requests[pb.PublishStreamRequest], out: Writing) -> None:
        await _Stream(self._call, requests, out).run()


async def make_topics(call: Call, requests: Sequence[Publishing]) -> Mapping[str, GoQueueError]:
    """Those that are not there, where the settings allow it; returns why some could not be made."""
    names = missing(call.broker, [request.topic for request in requests])
    failed: dict[str, GoQueueError] = {}
    if names:
        failed = await call.ask(lambda done: create_missing(call.broker, names, done))
    return failed


def publish_all(
    call: Call, requests: Sequence[Publishing], failed: Mapping[str, GoQueueError], on_published: OnPublished
) -> None:
    """Each on its own; answered together. Those of one topic that came without a producer make one batch. `failed`:
    topics that could not be made.
    """
    now_ms = call.now_ms
    answers: list[pb.PublishResponse | GoQueueError] = [GoQueueError("not answered")] * len(requests)
    by_topic: dict[tuple[str, bool], list[tuple[int, NewMessage]]] = {}
    known: set[str] = set()
    waiting = 1

    def done() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            on_published(answers)

    for number, request in enumerate(requests):
        try:
            message = new_message(request, now_ms)
            if request.ack_mode not in ACK_MODES:
                raise GrpcError(f"there is no ack_mode {request.ack_mode}")
            if request.topic in failed:
                raise failed[request.topic].kept()
            if request.topic not in known:
                call.topic(request.topic)
                known.add(request.topic)
            if message.partition is not None:
                call.partition(request.topic, message.partition)
            if request.HasField("producer_id"):
                waiting += 1
                _publish_as(call, request, message, _keeping(answers, number, request, now_ms, done))
            else:
                is_unwatched = request.ack_mode == common_pb2.ACK_MODE_NONE
                by_topic.setdefault((request.topic, is_unwatched), []).append((number, message))
        except GoQueueError as error:
            answers[number] = error.kept()
    for (topic, is_unwatched), ones in by_topic.items():
        waiting += 1
        _send(call, topic, ones, answers, done, is_unwatched=is_unwatched)
    done()


def _send(
    call: Call,
    topic: str,
    ones: list[tuple[int, NewMessage]],
    answers: list[pb.PublishResponse | GoQueueError],
    done: Callable[[], None],
    *,
    is_unwatched: bool,
) -> None:
    taken = timestamp_of(call.now_ms)
    is_told = False

    def sent(results: list[Sent]) -> None:
        nonlocal is_told
        if is_told:
            return
        is_told = True
        for (number, _), (partition, offset, error, durability) in zip(ones, results):
            answers[number] = error or pb.PublishResponse(
                topic=topic,
                partition=partition,
                offset=offset,
                timestamp=taken,
                durability=DURABILITIES[durability],
            )
        done()

    call.broker.sender.send(topic, [message for _, message in ones], sent, at_once=is_unwatched)
    if is_unwatched:  # what is wrong at once is told all the same
        sent([Sent(NOT_TOLD, NOT_TOLD, durability="")] * len(ones))


def _publish_as(
    call: Call, request: Publishing, message: NewMessage, on_placed: Callable[[Placed | GoQueueError], None]
) -> None:
    sequence = request.sequence if request.HasField("sequence") else None
    if sequence is not None and not 0 <= sequence <= SEQUENCE_MAX:
        on_placed(GrpcError(f"sequence is {sequence}, but must be from 0 to {SEQUENCE_MAX}"))
        return
    if not 0 <= request.producer_epoch < 2**15:
        on_placed(Refused(Code.PRODUCER_FENCED, f"there is no producer_epoch {request.producer_epoch}"))
        return
    producer = Producer(request.producer_id, request.producer_epoch)
    call.broker.transaction_steps.publish_as(producer, request.topic, message, sequence, on_placed)


def _keeping(
    answers: list[pb.PublishResponse | GoQueueError],
    number: int,
    request: Publishing,
    now_ms: int,
    done: Callable[[], None],
) -> Callable[[Placed | GoQueueError], None]:
    def placed(reply: Placed | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            answers[number] = reply
        else:
            answers[number] = pb.PublishResponse(
                topic=request.topic,
                partition=reply.partition,
                offset=reply.offset,
                timestamp=timestamp_of(now_ms),
                duplicate=reply.is_duplicate,
                durability=DURABILITIES[reply.durability],
            )
        done()

    return placed


class _Stream:
    """Reads while less than so much is unanswered, and answers as the broker does: no task for each message."""

    def __init__(self, call: Call, requests: Requests[pb.PublishStreamRequest], out: Writing) -> None:
        self._call = call
        self._requests = requests
        self._out = out
        self._answers: deque[pb.PublishStreamResponse] = deque()
        self._unanswered = 0
        self._unanswered_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._reading = tasks.create_task(self._read())
            self._call.on_stop[self._stop] = None
            try:
                await self._write()
            finally:
                self._call.on_stop.pop(self._stop, None)
                self._reading.cancel()
        if self._call.is_stopping:
            raise StopsHere

    def _stop(self) -> None:
        """What was taken is still answered."""
        assert self._reading is not None
        self._reading.cancel()
        self._news.set()

    async def _write(self) -> None:
        assert self._reading is not None
        self._reading.add_done_callback(lambda _: self._news.set())
        while self._answers or self._unanswered or not self._reading.done():
            if not self._answers:
                self._news.clear()
                await self._news.wait()
                continue
            await self._out.write(self._answers.popleft())
            self._room.set()

    async def _read(self) -> None:
        async for request in self._requests:
            self._call = self._requests.call()
            failed = await make_topics(self._call, request.batch or [request])
            self._take(request, failed)
            while (
                self._unanswered + len(self._answers) >= UNANSWERED_MAX
                or self._unanswered_bytes >= UNANSWERED_BYTES_MAX
            ):
                self._room.clear()
                await self._room.wait()

    def _take(self, request: pb.PublishStreamRequest, failed: Mapping[str, GoQueueError]) -> None:
        batch: Sequence[Publishing] = request.batch
        if len(batch) > BATCH_MAX:
            error = error_of(GrpcError(f"a batch has at most {BATCH_MAX} messages"))
            self._answer(pb.PublishStreamResponse(correlation_id=request.correlation_id, error=error))
            return
        self._unanswered += 1
        size = request.ByteSize()
        self._unanswered_bytes += size
        wanted: Sequence[Publishing] = batch or [request]

        def published(answers: list[Any]) -> None:
            self._unanswered -= 1
            self._unanswered_bytes -= size
            made = _batch_answer(answers, batch) if batch else _answer(answers[0], request.topic)
            made.correlation_id = request.correlation_id
            self._answer(made)

        publish_all(self._call, wanted, failed, published)

    def _answer(self, answer: pb.PublishStreamResponse) -> None:
        self._answers.append(answer)
        self._news.set()
        self._room.set()


def _answer(answer: pb.PublishResponse | GoQueueError, topic: str) -> pb.PublishStreamResponse:
    if isinstance(answer, GoQueueError):
        return pb.PublishStreamResponse(topic=topic, partition=NOT_TOLD, offset=NOT_TOLD, error=error_of(answer))
    return pb.PublishStreamResponse(
        topic=topic,
        partition=answer.partition,
        offset=answer.offset,
        timestamp=answer.timestamp,
        duplicate=answer.duplicate,
        durability=answer.durability,
    )


def _batch_answer(
    answers: Sequence[pb.PublishResponse | GoQueueError], batch: Sequence[Publishing]
) -> pb.PublishStreamResponse:
    return pb.PublishStreamResponse(
        batch=[
            pb.PublishResponse(topic=wanted.topic, partition=NOT_TOLD, offset=NOT_TOLD, error=error_of(answer))
            if isinstance(answer, GoQueueError)
            else answer
            for answer, wanted in zip(answers, batch)
        ]
    )

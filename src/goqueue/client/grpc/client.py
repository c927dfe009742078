"""The client: publish, read as a stream, read as a member of a group, settle, and look after topics and groups."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from goqueue.client.errors import InvalidArgument
from goqueue.client.grpc.calls import Calls, GrpcOptions, GrpcRefused
from goqueue.client.grpc.subscription import GrpcSubscription
from goqueue.model.lanes import Lane
from goqueue.model.moments import parse_duration_ms
from goqueue.wire.grpc import ack_pb2, common_pb2, consume_pb2, publish_pb2


class GrpcClient:
    """For `async with GrpcClient("127.0.0.1:9000") as client`. Durations are written as everywhere: 1500, "10s"."""

    def __init__(self, address: str, **options: Any) -> None:
        self._calls = Calls(address, GrpcOptions(**options))

    async def __aenter__(self) -> "GrpcClient":
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> "GrpcClient":
        """Waits for nothing: the first call connects."""
        return self

    async def close(self) -> None:
        """Closing twice is fine. Whoever waits for an answer is told Closed."""
        await self._calls.close()

    async def ask(self, request: Message, *, is_safe: bool = False) -> Any:
        """Any method of goqueue.v1 that is no stream, by what it takes: `await client.ask(ListTopicsRequest())`.
        `is_safe`: it may be made again after a broken connection.
        """
        return await self._calls.ask(request, is_safe=is_safe)

    # -- publishing

    async def publish(self, topic: str, value: bytes | None, **fields: Any) -> publish_pb2.PublishResponse:
        """`fields`: as `new_request` takes them. Made again after a broken connection only where the broker would know
        it: with a producer's sequence, or a dedup_id.
        """
        request = new_request(topic, value, **fields)
        is_safe = request.HasField("sequence") or request.HasField("dedup_id")
        answer: publish_pb2.PublishResponse = await self._calls.ask(request, is_safe=is_safe)
        return answer

    async def publish_stream(
        self, messages: AsyncIterable[publish_pb2.PublishRequest | list[publish_pb2.PublishRequest]]
    ) -> AsyncIterator[publish_pb2.PublishStreamResponse]:
        """An answer for each message, as they become durable, with its number in `correlation_id`. A list is sent as
        one batch and answered as one, which costs a fraction for each.
        """

        async def requests() -> AsyncIterator[Message]:
            number = 0
            async for each in messages:
                ones = each if isinstance(each, list) else [each]
                yield publish_pb2.PublishStreamRequest(correlation_id=str(number), batch=ones)
                number += 1

        call = self._calls.both_ways("PublishStream", requests())
        try:
            with self._calls.ours():
                async for answer in call:
                    yield _single(answer) if len(answer.batch) == 1 else answer
        finally:
            call.cancel()

    # -- reading

    async def consume(
        self, topic: str, *, start: str | int = "earliest", partitions: Iterable[int] = (), **fields: Any
    ) -> AsyncIterator[common_pb2.Message]:
        """Every message, as it comes, without end unless `until_end=True`. `start`: earliest, latest, or milliseconds
        since 1970. `fields`: as ConsumeRequest has them.
        """
        request = consume_pb2.ConsumeRequest(topic=topic, partitions=partitions, **fields)
        _set_start(request, start)
        call = self._calls.stream("Consume", request)
        try:
            with self._calls.ours():
                async for answer in call:
                    for message in answer.messages.messages:
                        yield message
        finally:
            call.cancel()

    def subscribe(
        self,
        group_id: str,
        topics: Iterable[str],
        *,
        start: str | int = "earliest",
        session: str | int | None = None,
        lease: str | int | None = None,
        heartbeat: str | int | None = None,
        **fields: Any,
    ) -> GrpcSubscription:
        """For `async with client.subscribe("workers", ["orders"]) as subscription`."""
        request = consume_pb2.SubscribeRequest(group_id=group_id, topics=topics, **fields)
        _set_start(request, start)
        for name, given in (("session_timeout", session), ("lease", lease), ("heartbeat_interval", heartbeat)):
            if given is not None:
                getattr(request, name).CopyFrom(duration_of(given))
        return GrpcSubscription(self._calls, request)

    # -- settling

    async def ack(self, message: common_pb2.Message) -> None:
        await self._settle(ack_pb2.AckRequest(receipt_handle=message.receipt_handle), ack_pb2.AckResponse)

    async def nack(
        self, message: common_pb2.Message, delay: str | int | None = None, reason: str = ""
    ) -> ack_pb2.NackResponse:
        request = ack_pb2.NackRequest(receipt_handle=message.receipt_handle, reason=reason)
        if delay is not None:
            request.visibility_timeout.CopyFrom(duration_of(delay))
        answer: ack_pb2.NackResponse = await self._settle(request, ack_pb2.NackResponse)
        return answer

    async def reject(self, message: common_pb2.Message, reason: str = "") -> ack_pb2.RejectResponse:
        request = ack_pb2.RejectRequest(receipt_handle=message.receipt_handle, reason=reason)
        answer: ack_pb2.RejectResponse = await self._settle(request, ack_pb2.RejectResponse)
        return answer

    async def extend(self, message: common_pb2.Message, hold: str | int) -> ack_pb2.ExtendVisibilityResponse:
        request = ack_pb2.ExtendVisibilityRequest(
            receipt_handle=message.receipt_handle, visibility_timeout=duration_of(hold)
        )
        answer: ack_pb2.ExtendVisibilityResponse = await self._calls.ask(request, is_safe=True)
        return answer

    async def ack_all(self, messages: Iterable[common_pb2.Message]) -> ack_pb2.BatchAckResponse:
        request = ack_pb2.BatchAckRequest(receipt_handles=[each.receipt_handle for each in messages])
        answer: ack_pb2.BatchAckResponse = await self._calls.ask(request, is_safe=True)
        return answer

    async def _settle(self, request: Message, kind: type[Any]) -> Any:
        """Made again, it may find that it was done the first time: then it is done."""
        try:
            return await self._calls.ask(request, is_safe=True)
        except GrpcRefused as refused:
            if not refused.was_asked_again or refused.error.code != common_pb2.ERROR_CODE_ALREADY_SETTLED:
                raise
            return kind(success=True)


def new_request(
    topic: str,
    value: bytes | None,
    *,
    headers: Mapping[str, str | bytes] | None = None,
    priority: str | int | None = None,
    delay: str | int | None = None,
    deliver_at_ms: int | None = None,
    ttl: str | int | None = None,
    **fields: Any,
) -> publish_pb2.PublishRequest:
    """`fields`: key, partition, producer_id, producer_epoch, sequence, ack_mode, dedup_id."""
    given = {name: each for name, each in fields.items() if each is not None}
    request = publish_pb2.PublishRequest(topic=topic, **given)
    if value is not None:
        request.value = value
    for name, content in (headers or {}).items():
        if isinstance(content, str):
            request.headers[name] = content
        else:
            request.binary_headers[name] = content
    if priority is not None:
        request.priority = _lane(priority)
    if delay is not None:
        request.delay.CopyFrom(duration_of(delay))
    if deliver_at_ms is not None:
        request.deliver_at.CopyFrom(timestamp_of(deliver_at_ms))
    if ttl is not None:
        request.ttl.CopyFrom(duration_of(ttl))
    return request


def _lane(given: str | int) -> int:
    if isinstance(given, int):
        return given
    try:
        return int(Lane[given.upper()])
    except KeyError:
        raise InvalidArgument(f"there is no priority {given!r}") from None


def duration_of(written: str | int) -> Duration:
    duration_ms = parse_duration_ms(written)
    return Duration(seconds=duration_ms // 1000, nanos=duration_ms % 1000 * 1_000_000)


def timestamp_of(moment_ms: int) -> Timestamp:
    return Timestamp(seconds=moment_ms // 1000, nanos=moment_ms % 1000 * 1_000_000)


def _set_start(request: consume_pb2.ConsumeRequest | consume_pb2.SubscribeRequest, start: str | int) -> None:
    if isinstance(start, int):
        request.start_position = consume_pb2.CONSUME_START_POSITION_TIMESTAMP
        request.start_timestamp.CopyFrom(timestamp_of(start))
    elif start == "latest":
        request.start_position = consume_pb2.CONSUME_START_POSITION_LATEST
    elif start != "earliest":
        raise InvalidArgument(f"start is {start!r}, but must be earliest, latest or milliseconds since 1970")


def _single(answer: publish_pb2.PublishStreamResponse) -> publish_pb2.PublishStreamResponse:
    (one,) = answer.batch
    return publish_pb2.PublishStreamResponse(
        correlation_id=answer.correlation_id,
        topic=one.topic,
        partition=one.partition,
        offset=one.offset,
        timestamp=one.timestamp,
        duplicate=one.duplicate,
        durability=one.durability,
        error=one.error if one.HasField("error") else None,
    )

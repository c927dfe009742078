"""Calls on pooled channels, made again with backoff where that is safe. The methods are read from the descriptors of
`goqueue.v1`, so there is no table of them to keep.
"""

import asyncio
from collections.abc import AsyncIterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.status_pb2 import Status
from grpc import aio

from goqueue.client.clock import Backoff
from goqueue.client.errors import ClientError, Closed, ConnectionLost, TimedOut
from goqueue.client.security import Security
from goqueue.model.tenancy import TENANT_METADATA
from goqueue.ports.dice import system_dice
from goqueue.wire.grpc import (
    ack_pb2,
    common_pb2,
    consume_pb2,
    group_pb2,
    health_pb2,
    offset_pb2,
    publish_pb2,
    topic_pb2,
    transaction_pb2,
)

DETAILS = "grpc-status-details-bin"
FILES: tuple[FileDescriptor, ...] = tuple(
    each.DESCRIPTOR
    for each in (
        ack_pb2,
        consume_pb2,
        group_pb2,
        health_pb2,
        offset_pb2,
        publish_pb2,
        topic_pb2,
        transaction_pb2,
    )
)
METHODS: dict[str, MethodDescriptor] = {
    method.name: method for file in FILES for service in file.services_by_name.values() for method in service.methods
}
"""By their names alone: no two services have one of the same name."""
UNARY = {
    method.input_type.full_name: method
    for method in METHODS.values()
    if not (method.client_streaming or method.server_streaming)
}
"""By what they take: no two of them take the same."""


class GrpcRefused(ClientError):
    """The broker said no. `status` is gRPC's word for it, `code` ours."""

    def __init__(self, status: grpc.StatusCode, error: common_pb2.Error) -> None:
        super().__init__(error.message or status.name)
        self.status = status
        self.error = error
        self.was_asked_again = False
        """An earlier attempt may have been done, though no answer came."""
        self.retriable = status in (grpc.StatusCode.ABORTED, grpc.StatusCode.UNAVAILABLE)

    @property
    def code(self) -> str:
        """Such as TOPIC_NOT_FOUND."""
        return common_pb2.ErrorCode.Name(self.error.code).removeprefix("ERROR_CODE_")


@dataclass(frozen=True)
class GrpcOptions:
    channels: int = 1
    """Connections; calls take them in turns."""
    timeout_s: float = 30.0
    """Of a call that is no stream, with all its attempts."""
    attempts_max: int = 5
    backoff: Backoff = field(default_factory=Backoff)
    message_bytes_max: int = 16 * 1024 * 1024
    keepalive_ms: int = 30_000
    keepalive_timeout_ms: int = 10_000
    security: Security | None = None
    """Who calls, and TLS if it says so."""

    def channel(self, address: str) -> aio.Channel:
        if self.security is None or not self.security.tls:
            return aio.insecure_channel(address, options=self.channel_options())
        files = (self.security.ca_file, self.security.key_file, self.security.cert_file)
        found = (None if each is None else Path(each).read_bytes() for each in files)
        return aio.secure_channel(address, grpc.ssl_channel_credentials(*found), options=self.channel_options())

    def metadata(self) -> tuple[tuple[str, str], ...]:
        if self.security is None:
            return ()
        said = (("authorization", self.security.authorization), (TENANT_METADATA, self.security.tenant))
        return tuple((name, value) for name, value in said if value)

    def channel_options(self) -> list[tuple[str, int]]:
        return [
            ("grpc.max_receive_message_length", self.message_bytes_max),
            ("grpc.keepalive_time_ms", self.keepalive_ms),
            ("grpc.keepalive_timeout_ms", self.keepalive_timeout_ms),
            ("grpc.http2.ping_timeout_ms", self.keepalive_timeout_ms),  # what grpc really goes by; else a minute
            ("grpc.use_local_subchannel_pool", 1),  # else all channels share one connection
            ("grpc.enable_retries", 0),  # we know which calls are safe
        ]


class Calls:
    """Opened by the first call, in the event loop of who makes it."""

    def __init__(self, address: str, options: GrpcOptions) -> None:
        self._address = address
        self._options = options
        self._channels: list[aio.Channel] = []
        self._turn = 0
        self._dice = system_dice()
        self._is_closed = False

    def _channel(self) -> aio.Channel:
        if self._is_closed:
            raise Closed("the client was closed")
        while len(self._channels) < self._options.channels:
            self._channels.append(self._options.channel(self._address))
        self._turn += 1
        return self._channels[self._turn % len(self._channels)]

    async def close(self) -> None:
        """Closing twice is fine."""
        self._is_closed = True
        channels, self._channels = self._channels, []
        for channel in channels:
            await channel.close()

    async def ask(self, request: Message, *, is_safe: bool) -> Any:
        """The answer of the one method that takes such a request. `is_safe`: it may be made twice."""
        method = UNARY[request.DESCRIPTOR.full_name]
        options, loop = self._options, asyncio.get_running_loop()
        give_up = loop.time() + options.timeout_s
        for attempt in range(options.attempts_max):
            left_s = give_up - loop.time()
            try:
                with self.told():
                    return await self._multi("unary_unary", method)(
                        request, timeout=max(left_s, 0.001), metadata=self._options.metadata()
                    )
            except aio.AioRpcError as failure:
                pause_s = options.backoff.pause_s(attempt, self._dice)
                is_last = attempt + 1 == options.attempts_max or pause_s >= left_s
                if is_last or not is_safe or failure.code() is not grpc.StatusCode.UNAVAILABLE:
                    error = error_of(failure)
                    if isinstance(error, GrpcRefused):
                        error.was_asked_again = attempt > 0
                    raise error from None
                await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whoever waits while the client is closed hears of that; to grpc it is as if they had been cancelled."""
        try:
            yield
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._is_closed or (task is not None and task.cancelling()):
                raise
            raise Closed("the client was closed") from None

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Errors of a stream, as this client has them."""
        try:
            with self.told():
                yield
        except aio.AioRpcError as failure:
            raise error_of(failure) from None

    def stream(self, name: str, request: Message) -> "aio.UnaryStreamCall[Any, Any]":
        call: aio.UnaryStreamCall[Any, Any] = self._multi("unary_stream", METHODS[name])(
            request, metadata=self._options.metadata()
        )
        return call

    def both_ways(self, name: str, requests: AsyncIterable[Message]) -> "aio.StreamStreamCall[Any, Any]":
        call: aio.StreamStreamCall[Any, Any] = self._multi("stream_stream", METHODS[name])(
            requests, metadata=self._options.metadata()
        )
        return call

    def _multi(self, kind: str, method: MethodDescriptor) -> Any:
        return getattr(self._channel(), kind)(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )


def error_of(failure: aio.AioRpcError) -> ClientError:
    status = failure.code()
    told = _told(failure)
    if told is not None:
        return GrpcRefused(status, told)
    words = failure.details() or status.name
    # grpc's own words for a stream that the other side had ended when we wrote to it.
    is_ended = status is grpc.StatusCode.INTERNAL and words == "Internal error from Core"
    if status is grpc.StatusCode.UNAVAILABLE or is_ended:
        return ConnectionLost(words)
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(words)
    return GrpcRefused(status, common_pb2.Error(message=words))


def _told(failure: aio.AioRpcError) -> common_pb2.Error | None:
    for key, value in failure.trailing_metadata() or ():
        if key == DETAILS and isinstance(value, bytes):
            try:
                details = Status.FromString(value).details
            except DecodeError:
                return None
            error = common_pb2.Error()
            if any(each.Unpack(error) for each in details):
                return error
    return None

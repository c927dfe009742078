"""One user of a node, through Kafka, SQS and gRPC: as a tenant beside others, or as the only one there is. What it is
given (ids, receipts, addresses) is remembered, so that it can be shown again."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from goqueue.broker.gate import Gate
from goqueue.doors.grpc.door import GrpcDoor
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.testing import MemoryBroker
from goqueue.wire.kafka.apis import Api
from goqueue.wire.kafka.frames import decode_response, request_frame
from tests.unit.doors.grpc.test_garbage import METHODS, Context, Details
from tests.unit.doors.http.bare import Asked, Bare
from tests.unit.doors.kafka.every_api import BY_NAME, sample
from tests.unit.doors.kafka.transports import FakeTransport, feed

DRAWN = {
    *(
        "topic_id",
        "member_id",
        "producer_id",
        "producer_epoch",
        "epoch",
        "cluster_id",
        "timestamp",
        "log_append_time_ms",
    ),
    *("records", "host", "port", "group_instance_id", "transaction_start_time_ms", "last_timestamp", "session_id"),
    *(
        "member_epoch",
        "group_epoch",
        "assignment_epoch",
        "generation_id",
        "leader_epoch",
        "transaction_id",
        "lease_until",
    ),
    *("receipt_handle", "message_id", "start_time", "last_heartbeat", "new_deadline", "next_visible_at", "generation"),
    *("MessageId", "ReceiptHandle", "SequenceNumber", "TaskHandle", "StartedTimestamp", "CreatedTimestamp"),
    *("LastModifiedTimestamp", "SentTimestamp", "ApproximateFirstReceiveTimestamp", "QueueUrl", "trace_id"),
}
"""Names of values that are not the same twice."""
OF_NODES = {"tagged", "nodes", "brokers", "controller_id"}
SHOWN_AGAIN = re.compile(r"Value \S+ for parameter|producer \d+|\d\d\d\d+")
"""In texts: receipts, and numbers that were drawn."""
NOBODY = 999_999
"""A producer id that nobody was given."""
ACCOUNT = re.compile(r"\b\d{12}\b")
"""Of SQS: a tenant has its own."""


class KafkaAsked(NamedTuple):
    api: Api
    version: int
    names: dict[str, Any]


class SqsAsked(NamedTuple):
    action: str
    given: dict[str, Any]


class GrpcAsked(NamedTuple):
    method: str
    given: dict[str, Any]


class Side:
    def __init__(self, b: MemoryBroker, tenant: str = "") -> None:
        self.b = b
        self._prefix = f"{tenant}~" if tenant else ""
        gate = Gate(b.broker)
        self._bare = Bare(b)
        self._headers = ((b"x-goqueue-tenant", tenant.encode()),) if tenant else ()
        self._metadata = (("goqueue-tenant", tenant),) if tenant else ()
        door = KafkaDoor(gate)
        self._connection = door._connect()
        self._transport = FakeTransport()
        self._connection.connection_made(self._transport)
        if tenant:
            door._set_access(self._connection, gate.trusted_in(tenant))
        self._sent: list[KafkaAsked] = []
        grpc = GrpcDoor(gate)
        self._grpc = {
            method.full_name: (method, grpc._serving.handler_of(method.containing_service, make))
            for service, make in grpc._services()
            for method in METHODS
            if method.containing_service is service
        }
        self.given: dict[str, Any] = {
            "$producer": NOBODY,
            "$epoch": 0,
            "$member": "m",
            "$receipt": "none",
            "$url": "none",
        }

    async def create_topic(self, name: str) -> None:
        created = await self._bare.ask(Asked("POST", "/topics", {"name": name}), headers=self._headers)
        assert created.status == 201

    def submit(self, asked: "KafkaAsked | SqsAsked | GrpcAsked") -> Callable[[], Awaitable[Any]]:
        """What gives the answer, once time has passed for all."""
        match asked:
            case KafkaAsked():
                self._feed(asked)
                return self._answers
            case SqsAsked():
                task = asyncio.ensure_future(self._sqs(asked))
                return lambda: task
            case GrpcAsked():
                calling = asyncio.ensure_future(self._call(asked))
                return lambda: self._ended(asked, calling)

    def _filled(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self.given.get(value, value) if isinstance(value, str) else value for name, value in given.items()
        }

    # -- Kafka

    def _feed(self, asked: KafkaAsked) -> None:
        names = self._filled(asked.names)
        topic = self.b.broker.topics.image.topics.get(self._prefix + asked.names["topic"])
        names["topic_id"] = bytes(16) if topic is None else topic.id
        message = sample(asked.api.request, asked.version, {**BY_NAME, **names})
        parts = request_frame(message, asked.version, len(self._sent), "someone")
        self._sent.append(asked)
        feed(self._connection, b"".join(part for part in parts if isinstance(part, bytes | memoryview)))

    async def _answers(self) -> list[Any]:
        """All that have come by now, also to earlier requests that waited."""
        return [self._answer(each) for each in self._replies()]

    def _replies(self) -> list[memoryview]:
        found, rest = [], memoryview(bytes(self._transport.written))
        self._transport.written.clear()
        while rest:
            end = 4 + int.from_bytes(rest[:4], "big")
            found.append(rest[4:end])
            rest = rest[end:]
        return found

    def _answer(self, reply: memoryview) -> Any:
        asked = self._sent[int.from_bytes(reply[:4], "big", signed=True)]
        _, response, _ = decode_response(asked.api.response, asked.version, reply)
        for name, mark in (("producer_id", "$producer"), ("producer_epoch", "$epoch"), ("member_id", "$member")):
            found = getattr(response, name, None)
            if found not in (None, "", -1) and not getattr(response, "error_code", 0):
                self.given[mark] = found
        return asked.api.name, plain(response)

    # -- SQS

    async def _sqs(self, asked: SqsAsked) -> Any:
        header = (b"x-amz-target", f"AmazonSQS.{asked.action}".encode())
        answered = await self._bare.ask(Asked("POST", "/", self._filled(asked.given)), headers=(header, *self._headers))
        body = answered.json if answered.body else None
        if answered.status == 200 and body:
            self.given["$url"] = body.get("QueueUrl", self.given["$url"])
            # Which partition comes first may depend on others, and is no secret.
            body.get("Messages", []).sort(key=lambda message: str(message["Body"]))
            for message in body.get("Messages", ()):
                self.given["$receipt"] = message["ReceiptHandle"]
        return answered.status, comparable(json.loads(ACCOUNT.sub("account", json.dumps(body))))

    # -- gRPC

    async def _call(self, asked: GrpcAsked) -> list[Any]:
        method, handlers = self._grpc[f"goqueue.v1.{asked.method}"]
        request = ParseDict(self._filled(asked.given), GetMessageClass(method.input_type)())
        handler: Any = handlers.service(Details(f"/{method.containing_service.full_name}/{method.name}"))
        behaviour = handler.unary_unary or handler.unary_stream
        context, kind = Told(self._metadata), GetMessageClass(method.output_type)
        try:
            reply = await behaviour(request.SerializeToString(), context)
            context.told += [] if reply is None else [reply]
        except (aio.AbortError, asyncio.CancelledError):
            pass  # it was told why, or goes on for ever
        return [_shown(kind, each) if isinstance(each, bytes) else each for each in context.told]

    async def _ended(self, asked: GrpcAsked, calling: "asyncio.Future[list[Any]]") -> Any:
        calling.cancel()
        shown = await calling
        if asked.method.endswith("InitProducer") and isinstance(shown[0], dict):
            self.given["$producer"] = int(shown[0].get("producer_id", 0))
            self.given["$epoch"] = int(shown[0].get("epoch", 0))
        return comparable(shown)


def _shown(kind: Any, data: bytes) -> dict[str, Any]:
    shown: dict[str, Any] = MessageToDict(kind.FromString(data), preserving_proto_field_name=True)
    return shown


class Told(Context):
    def __init__(self, metadata: Any) -> None:
        self.told: list[Any] = []
        self._metadata = metadata

    def invocation_metadata(self) -> Any:
        return self._metadata

    async def write(self, message: bytes) -> None:
        self.told.append(message)

    async def abort(self, code: Any, words: str = "", *_: Any) -> None:
        self.told.append([code.name, words])
        raise aio.AbortError


def plain(value: Any, name: str = "") -> Any:
    """A message of Kafka, without what dice and clocks have made; of records what is in them."""
    if name == "records":
        return [] if value is None else [record.value for batch in split(memoryview(value)) for record in decode(batch)]
    if name in DRAWN or name in OF_NODES:
        return "drawn"
    if isinstance(value, list):
        return [plain(each, name) for each in value]
    if hasattr(value, "__struct_fields__"):
        return {field: plain(getattr(value, field), field) for field in value.__struct_fields__}
    if isinstance(value, str):
        return SHOWN_AGAIN.sub("", value)
    return value


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items() if key not in DRAWN}
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    return SHOWN_AGAIN.sub("", value) if isinstance(value, str) else value

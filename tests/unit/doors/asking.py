"""One request of every operation of every API, to a node that has something to tell, by somebody with given rights."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from google.protobuf.json_format import ParseDict
from grpc import StatusCode, aio
from structlog.testing import capture_logs

from goqueue.broker.gate import Gate
from goqueue.doors.grpc.door import GrpcDoor
from goqueue.doors.grpc.permissions import PERMISSIONS
from goqueue.doors.http.routes.table import ROUTES
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.model.access import FORBIDDEN, Kind, Operation, Permission, Rights
from goqueue.model.codes import Code
from goqueue.testing import MemoryBroker, broker
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.notation import Message
from tests.unit.doors.grpc.test_garbage import METHODS, Context, Details
from tests.unit.doors.grpc.test_garbage import sample as grpc_sample
from tests.unit.doors.http.bare import GROUP, TOPIC, Asked, Bare, samples
from tests.unit.doors.http.test_garbage import sqs
from tests.unit.doors.kafka.every_api import OFFERED, sample
from tests.unit.doors.kafka.test_door_fuzz import FAULTS, Guest, House, frame
from tests.unit.testing.loops import turn

MARK = b"what-the-message-holds"
"""Told to nobody who may not read the topic."""
TURNS = 30
SCHEDULE, SUBJECT = "nightly-report", "orders-value"


class Told(NamedTuple):
    codes: frozenset[str]
    """Refusals for want of a right, of all or of a part, in the words of the API."""
    text: str
    is_fault: bool = False

    @property
    def has_mark(self) -> bool:
        return any(each.decode().rstrip("=") in self.text for each in (MARK, b64encode(MARK)))


class Recording:
    """May do everything, and remembers what was asked for."""

    are_all = False

    def __init__(self) -> None:
        self.asked: set[tuple[Kind, Operation, str]] = set()

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool:
        self.asked.add((kind, operation, name))
        return True

    def alike(self, kind: Kind, operation: Operation) -> object:
        return object()


class Furnished(Protocol):
    """A node that has something to tell, and an API of it."""

    async def ask(self, operation: str, rights: Rights) -> Told: ...

    def state(self) -> Any: ...


class Door(NamedTuple):
    permissions: Mapping[str, Permission]
    """By the names of the operations."""
    furnish: Callable[[], Any]


def what_is_there(node: Any) -> Any:
    topics = node.topics.image.topics
    ends = {
        name: [node.topics.end_offset(name, one) for one in range(each.partitions)] for name, each in topics.items()
    }
    groups = node.groups.page(None, 100), node.queues.page(None, 100), node.queues.page_with_options(None, 100)
    subjects = {each: len(node.schemas.versions(each, with_deleted=True)) for each in node.schemas.subjects()}
    return dict(topics), ends, groups, subjects, node.recurring.all(), node.accounts.image


class Receipts(NamedTuple):
    message: str
    lease: str


async def furnished(b: MemoryBroker) -> Receipts:
    """A topic with messages, some leased, one a dead letter; a schedule and a schema."""
    await b.create_topic(TOPIC)
    await b.publish_many(TOPIC, [MARK] * 4)
    dead, leased = await b.receive(TOPIC, group=GROUP, max_messages=2)
    await dead.reject("it cannot be read")
    await b.repeat(SCHEDULE, TOPIC, MARK, cron="0 3 * * *")
    registered = Asked("POST", f"/subjects/{SUBJECT}/versions", {"schema": '{"type": "string"}'})
    assert (await Bare(b).ask(registered)).status == 200
    taken = await Bare(b).ask(Asked("POST", f"/groups/{GROUP}/leases", {"topics": [TOPIC], "max_messages": 1}))
    return Receipts(leased.receipt, taken.json["leases"][0]["receipt"])


async def within_turns(task: asyncio.Future[Any]) -> Any:
    """What waits is left alone after a while, as by a client that goes away."""
    for _ in range(TURNS):
        if task.done():
            break
        await turn()
    if not task.done():
        task.cancel()
    await asyncio.wait((task,))
    return None if task.cancelled() or task.exception() else task.result()


# -- HTTP and SQS

SAMPLES = {
    **samples(),
    "extend_visibility": Asked("POST", "/messages/visibility", {"receipt_handle": "AQ...", "timeout": "30s"}),
    "reset_offsets": Asked("POST", f"/groups/{GROUP}/offsets/reset", {"topic": TOPIC, "strategy": "earliest"}),
}
for name, asked in list(SAMPLES.items()):
    if name.startswith(("set_config", "set_subject_config")):
        SAMPLES[name] = asked._replace(body={"compatibility": "NONE"})
OF_LEASES = ("extend_leases", "finish_leases")
FORBIDDEN_NAMES = {code.name for code in FORBIDDEN} | {"FORBIDDEN", "AccessDeniedException"}


class OverHttp:
    def __init__(self, b: MemoryBroker, receipts: Receipts) -> None:
        self.b = b
        self._receipts = receipts
        self._bare: dict[Rights, Bare] = {}

    async def ask(self, operation: str, rights: Rights) -> Told:
        asked, headers = sqs(operation) if operation in ACTIONS else (SAMPLES[operation], ())
        bare = self._bare.get(rights) or self._bare.setdefault(rights, Bare(self.b, rights))
        receipt = self._receipts.lease if operation in OF_LEASES else self._receipts.message
        asked = asked._replace(body=with_receipt(asked.body, receipt))
        answered = await within_turns(asyncio.ensure_future(bare.ask(asked, headers=headers)))
        if answered is None:
            return Told(frozenset(), "")
        text = answered.body.decode()
        found = frozenset(each for each in FORBIDDEN_NAMES if f'"{each}"' in text or f'#{each}"' in text)
        is_denied = answered.status == 403
        assert not is_denied or found or "error_code" in text, text
        return Told(found | ({"403"} if is_denied else set()), text, answered.status == 500)

    def state(self) -> Any:
        return what_is_there(self.b.broker)


def with_receipt(value: Any, receipt: str) -> Any:
    if isinstance(value, dict):
        return {key: with_receipt(each, receipt) for key, each in value.items()}
    if isinstance(value, list):
        return [with_receipt(each, receipt) for each in value]
    return receipt if isinstance(value, str) and value.startswith("AQ") else value


@asynccontextmanager
async def over_http() -> AsyncIterator[Furnished]:
    async with broker() as b:
        yield OverHttp(b, await furnished(b))


@asynccontextmanager
async def over_sqs() -> AsyncIterator[Furnished]:
    async with broker() as b:
        await furnished(b)
        asked, headers = sqs("ReceiveMessage")
        received = json.loads((await Bare(b).ask(asked, headers=headers)).body)
        yield OverHttp(b, Receipts(received["Messages"][0]["ReceiptHandle"], ""))


HTTP = Door({each.operation.name: each.permission for each in ROUTES}, over_http)
SQS = Door({name: each.permission for name, each in ACTIONS.items()}, over_sqs)


# -- gRPC


class Remembering(Context):
    def __init__(self) -> None:
        self.status: StatusCode | None = None
        self.words = ""
        self.written: list[bytes] = []

    async def write(self, message: bytes) -> None:
        self.written.append(message)

    async def abort(self, *why: Any) -> None:
        self.status, self.words = why[0], str(why[1])
        raise aio.AbortError


GRPC_SAMPLES: Mapping[str, Any] = {
    **{key: {"group_id": GROUP, "receipt_handle": "AQ"} for key in ("Ack", "Nack", "Reject")},
    "ExtendVisibility": {"group_id": GROUP, "receipt_handle": "AQ", "visibility_timeout": "30s"},
    "BatchAck": {"group_id": GROUP, "receipt_handles": ["AQ"]},
    "CommitOffsets": {"group_id": GROUP, "offsets": [{"topic": TOPIC, "partition": 0, "offset": 1}]},
    "ResetOffsets": {"group_id": GROUP, "strategy": 1, "partitions": [{"topic": TOPIC, "partition": 0}]},
}
"""Where one of names alone says too little."""


class OverGrpc:
    def __init__(self, b: MemoryBroker, receipts: Receipts) -> None:
        self.b = b
        self._receipt = receipts.message

    async def ask(self, operation: str, rights: Rights) -> Told:
        (method,) = (each for each in METHODS if each.full_name == operation)
        door = GrpcDoor(Gate(self.b.broker, rights))
        (served,) = (one for service, one in door._services() if service is method.containing_service)
        handlers = door._serving.handler_of(method.containing_service, served)
        handler: Any = handlers.service(Details(f"/{method.containing_service.full_name}/{method.name}"))
        behaviour = handler.unary_unary or handler.unary_stream or handler.stream_stream
        context = Remembering()
        message = grpc_sample(method.input_type, is_filled=method.name not in GRPC_SAMPLES)
        ParseDict(with_receipt(GRPC_SAMPLES.get(method.name, {}), self._receipt), message)
        sent = message.SerializeToString()
        answered = await within_turns(asyncio.ensure_future(behaviour(sent, context)))
        text = b"".join([answered] if isinstance(answered, bytes) else context.written).decode("latin-1")
        is_denied = context.status is StatusCode.PERMISSION_DENIED or "_AUTHORIZATION_FAILED" in text
        codes = frozenset({"PERMISSION_DENIED"} if is_denied else ())
        return Told(codes, context.words + text, context.status is StatusCode.INTERNAL)

    def state(self) -> Any:
        return what_is_there(self.b.broker)


@asynccontextmanager
async def over_grpc() -> AsyncIterator[Furnished]:
    async with broker() as b:
        yield OverGrpc(b, await furnished(b))


GRPC = Door(PERMISSIONS, over_grpc)


# -- Kafka

REFUSALS = FORBIDDEN | {Code.UNKNOWN_TOPIC_ID}
"""Who may not touch a topic does not learn that an id stands for it."""
VERSIONS = {
    **{f"{api.name} {api.versions.first}": (api, api.versions.first) for api in OFFERED},
    **{f"{api.name} {api.advertised.last}": (api, api.advertised.last) for api in OFFERED},
}


def codes_in(response: Message) -> set[int]:
    found = set()
    for name in response.__struct_fields__:
        value = getattr(response, name)
        if name.endswith("error_code"):
            found.add(value)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Message):
                found |= codes_in(part)
    return found


class OverKafka:
    def __init__(self) -> None:
        self._house = House()
        self._house.broker.publish(TOPIC, MARK)
        self._house.broker.commit()

    async def ask(self, operation: str, rights: Rights) -> Told:
        api, version = VERSIONS[operation]
        house = self._house
        house.door = KafkaDoor(Gate(house.broker.broker, rights))
        guest = Guest(house)
        with capture_logs() as logs:
            guest.send(frame(sample(api.request, version, share_session_epoch=1), version))
            house.settle()
        replies = guest.replies()
        guest.leave()
        is_fault = any(each["event"] in FAULTS for each in logs)
        if not replies:
            return Told(frozenset({"CLOSED"}), "", is_fault)
        response = decode_response(api.response, version, replies[0])[1]
        codes = frozenset(Code(each).name for each in codes_in(response) & REFUSALS)
        return Told(codes, bytes(replies[0]).decode("latin-1"), is_fault)

    def state(self) -> Any:
        return what_is_there(self._house.broker.broker)


@asynccontextmanager
async def over_kafka() -> AsyncIterator[Furnished]:
    yield OverKafka()


KAFKA = Door({name: HANDLERS[api.key].permission for name, (api, _) in VERSIONS.items()}, over_kafka)
assert {api.key for api, _ in VERSIONS.values()} == HANDLERS.keys() & APIS.keys()

DOORS = {"http": HTTP, "sqs": SQS, "grpc": GRPC, "kafka": KAFKA}

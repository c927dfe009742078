"""Every operation of every API goes through the gate: it declares what it needs, does no more than that, and is refused
to whoever may do nothing. The tables of the APIs are walked over, so that a new operation cannot be forgotten.
"""

import asyncio
import json
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc import StatusCode, aio
from structlog.testing import capture_logs

from goqueue.broker.gate import Gate
from goqueue.doors.grpc.door import GrpcDoor
from goqueue.doors.grpc.permissions import PERMISSIONS
from goqueue.doors.http.operation import Route
from goqueue.doors.http.routes.table import ROUTES
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.model.access import FORBIDDEN, OPEN, AllRights, Kind, NoRights, Operation, Permission, Rights
from goqueue.model.codes import Code
from goqueue.testing import broker
from goqueue.wire.kafka.apis import APIS, Api
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from goqueue.wire.kafka.notation import Message
from tests.brokers import data
from tests.unit.doors.grpc.test_garbage import METHODS, Context, Details
from tests.unit.doors.grpc.test_garbage import sample as grpc_sample
from tests.unit.doors.http.bare import TOPIC, Asked, Bare, samples
from tests.unit.doors.http.test_garbage import sqs
from tests.unit.doors.kafka.every_api import OFFERED, sample
from tests.unit.doors.kafka.test_door_fuzz import FAULTS, Guest, House, frame
from tests.unit.testing.loops import turn

SAMPLES = samples()
HTTP_LISTS = {
    "all_lags",
    "all_rebalance_stats",
    "healthz",
    "list_groups",
    "list_schedules",
    "list_schemas",
    "list_subjects",
    "list_subjects_below_schemas",
    "list_topics",
    "priority_stats",
    "readyz",
    "stats",
}
"""Lists leave out what may not be seen."""
HTTP_HIDDEN = {"delete_schedule", "describe_schedule"}
"""Found in a list, so that there is none."""
MISTAKES = (400, 422)
GRPC_LISTS = {"goqueue.v1.TopicService.ListTopics", "goqueue.v1.GroupService.ListGroups"}
GRPC_NAMELESS = {"goqueue.v1.PublishService.PublishStream", "goqueue.v1.TransactionService.InitProducer"}
"""A stream without a message, and a producer that is not for transactions: neither names anything."""
KAFKA_LISTS = {"ListGroups", "ListTransactions", "Metadata", "DescribeTopicPartitions"}


def test_every_operation_declares_what_it_needs() -> None:
    declared: dict[str, Permission] = {
        **{f"kafka {APIS[key].name}": each.permission for key, each in HANDLERS.items()},
        **{f"http {each.operation.method} {each.operation.path}": each.permission for each in ROUTES},
        **{f"sqs {name}": each.permission for name, each in ACTIONS.items()},
        **{f"grpc {each.full_name}": PERMISSIONS[each.full_name] for each in METHODS},
    }
    assert len(declared) == len(HANDLERS) + len(ROUTES) + len(ACTIONS) + len(METHODS)
    assert all(each is OPEN or each.needs for each in declared.values())
    for_strangers = {f"http {each.operation.method} {each.operation.path}" for each in ROUTES if each.is_open}
    assert for_strangers | {name for name, each in declared.items() if each is OPEN} == {
        "grpc goqueue.v1.HealthService.Check",
        "grpc goqueue.v1.HealthService.Watch",
        "grpc grpc.health.v1.Health.Check",
        "grpc grpc.health.v1.Health.List",
        "grpc grpc.health.v1.Health.Watch",
        "http GET /",
        "http GET /contexts",
        "http GET /docs",
        "http GET /health",
        "http GET /healthz",
        "http GET /livez",
        "http GET /openapi.json",
        "http GET /postman.json",
        "http GET /readyz",
        "http GET /schemas/contexts",
        "http GET /schemas/schemas/types",
        "http GET /schemas/types",
        "http GET /version",
        "kafka ApiVersions",
        "kafka SaslAuthenticate",
        "kafka SaslHandshake",
    }


# -- HTTP and SQS


async def asked_over_http(asked: Asked, rights: Rights, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Any:
    """Status and body; and what there is afterwards."""
    async with broker() as b:
        await b.create_topic(TOPIC)
        await b.publish(TOPIC, b"x")
        before = what_is_there(b.broker)
        waiting = asyncio.ensure_future(Bare(b, rights).ask(asked, headers=headers))
        for _ in range(30):
            await turn()
        if not waiting.done():
            waiting.cancel()
        answered = await waiting
        return answered.status, answered.body.decode(), what_is_there(b.broker) == before


def what_is_there(node: Any) -> Any:
    topics = node.topics.image.topics
    ends = {
        name: [node.topics.end_offset(name, one) for one in range(each.partitions)] for name, each in topics.items()
    }
    return dict(topics), ends, node.groups.page(None, 100), node.queues.page(None, 100)


@pytest.mark.parametrize("route", ROUTES, ids=lambda each: each.operation.name)
def test_an_http_operation_does_no_more_than_it_declares(route: Route) -> None:
    status, body, _ = asyncio.run(asked_over_http(SAMPLES[route.operation.name], AllRights()))
    assert status not in (403, 500), body


@pytest.mark.parametrize(
    "route", [each for each in ROUTES if each.permission is not OPEN], ids=lambda each: each.operation.name
)
def test_an_http_operation_is_refused_to_who_may_do_nothing(route: Route) -> None:
    asked = SAMPLES[route.operation.name]
    status, body, is_unchanged = asyncio.run(asked_over_http(asked, NoRights()))
    assert is_unchanged
    if route.operation.name in HTTP_LISTS:
        assert (status, TOPIC in body) == (200, False)
    elif route.operation.name in HTTP_HIDDEN:
        assert status == 404
    elif (
        status in MISTAKES or route.operation.name == "settle_all"
    ):  # whoever asks is told of a request that makes no sense
        assert asyncio.run(asked_over_http(asked, AllRights()))[:2] == (status, body)
    else:
        assert status == 403, body
        code = json.loads(body)["code"]
        assert code in {each.name for each in FORBIDDEN} or code == "FORBIDDEN"


@pytest.mark.parametrize("action", ACTIONS)
def test_an_sqs_action_does_no_more_than_it_declares(action: str) -> None:
    asked, headers = sqs(action)
    status, body, _ = asyncio.run(asked_over_http(asked, AllRights(), headers))
    assert status not in (403, 500), body


@pytest.mark.parametrize("action", ACTIONS)
def test_an_sqs_action_is_refused_to_who_may_do_nothing(action: str) -> None:
    asked, headers = sqs(action)
    status, body, is_unchanged = asyncio.run(asked_over_http(asked, NoRights(), headers))
    assert is_unchanged
    if action == "ListQueues":
        assert (status, TOPIC in body) == (200, False)
    elif status in MISTAKES:
        assert asyncio.run(asked_over_http(asked, AllRights(), headers))[:2] == (status, body)
    else:
        assert (status, "AccessDeniedException" in body) == (403, True), body


# -- gRPC


class Remembering(Context):
    def __init__(self) -> None:
        self.status: StatusCode | None = None
        self.words = ""

    async def abort(self, *why: Any) -> None:
        self.status, self.words = why[0], str(why[1])
        raise aio.AbortError


async def asked_over_grpc(method: MethodDescriptor, rights: Rights) -> tuple[StatusCode | None, str, bool]:
    async with broker() as b:
        await b.create_topic(TOPIC)
        await b.publish(TOPIC, b"x")
        before = what_is_there(b.broker)
        door = GrpcDoor(Gate(b.broker, rights))
        (served,) = (one for service, one in door._services() if service is method.containing_service)
        handlers = door._serving.handler_of(method.containing_service, served)
        handler: Any = handlers.service(Details(f"/{method.containing_service.full_name}/{method.name}"))
        behaviour = handler.unary_unary or handler.unary_stream or handler.stream_stream
        context = Remembering()
        data = grpc_sample(method.input_type, is_filled=True).SerializeToString()
        task = asyncio.ensure_future(behaviour(data, context))
        for _ in range(30):
            await turn()
        task.cancel()
        await asyncio.wait((task,))
        return context.status, context.words, what_is_there(b.broker) == before


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.full_name)
def test_a_grpc_method_does_no_more_than_it_declares(method: MethodDescriptor) -> None:
    status, words, _ = asyncio.run(asked_over_grpc(method, AllRights()))
    assert status not in (StatusCode.PERMISSION_DENIED, StatusCode.INTERNAL), words


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.full_name)
def test_a_grpc_method_is_refused_to_who_may_do_nothing(method: MethodDescriptor) -> None:
    status, words, is_unchanged = asyncio.run(asked_over_grpc(method, NoRights()))
    assert is_unchanged
    if PERMISSIONS[method.full_name] is OPEN or method.full_name in GRPC_LISTS | GRPC_NAMELESS:
        assert status is not StatusCode.INTERNAL
    elif status is StatusCode.INVALID_ARGUMENT:
        assert asyncio.run(asked_over_grpc(method, AllRights()))[:2] == (status, words)
    else:
        assert status is StatusCode.PERMISSION_DENIED, words


# -- Kafka


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


def asked_over_kafka(api: Api, version: int, rights: Rights) -> tuple[Message | None, bool]:
    house = House()
    house.door = KafkaDoor(Gate(house.broker.broker, rights))
    before = what_is_there(house.broker.broker)
    guest = Guest(house)
    with capture_logs() as logs:
        guest.send(frame(sample(api.request, version, share_session_epoch=1), version))
        house.broker.commit()
        house.settle()
    assert not [each for each in logs if each["event"] in FAULTS]
    replies = guest.replies()
    is_unchanged = what_is_there(house.broker.broker) == before
    return (decode_response(api.response, version, replies[0])[1] if replies else None), is_unchanged


REFUSALS = FORBIDDEN | {Code.UNKNOWN_TOPIC_ID}
"""Who may not touch a topic does not learn that an id stands for it."""
LATEST = [(api, api.advertised.last) for api in OFFERED]
OLDEST = [(api, api.versions.first) for api in OFFERED if api.versions.first != api.advertised.last]


@pytest.mark.parametrize(("api", "version"), LATEST + OLDEST, ids=lambda each: getattr(each, "name", each))
def test_a_kafka_api_does_no_more_than_it_declares(api: Api, version: int) -> None:
    response, _ = asked_over_kafka(api, version, AllRights())
    assert response is not None
    assert not codes_in(response) & FORBIDDEN


@pytest.mark.parametrize(("api", "version"), LATEST + OLDEST, ids=lambda each: getattr(each, "name", each))
def test_a_kafka_api_is_refused_to_who_may_do_nothing(api: Api, version: int) -> None:
    response, is_unchanged = asked_over_kafka(api, version, NoRights())
    assert is_unchanged
    if HANDLERS[api.key].permission is OPEN:
        return
    assert response is not None
    if api.name not in KAFKA_LISTS:
        assert codes_in(response) & REFUSALS, response
    assert TOPIC not in repr(response) or codes_in(response) & REFUSALS


class OnlyOrders:
    are_all = False

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool:
        return name == TOPIC


def test_a_produce_to_two_topics_is_refused_for_the_forbidden_one_alone() -> None:
    house = House()
    house.broker.create("payroll", 1)
    house.door = KafkaDoor(Gate(house.broker.broker, OnlyOrders()))
    guest, batch = Guest(house), memoryview(bytes(data(b"x")))
    topics = [TopicProduceData(name, bytes(16), [PartitionProduceData(0, batch)]) for name in ("payroll", TOPIC)]
    guest.send(frame(ProduceRequest(None, -1, 1000, topics), 9))
    house.broker.commit()
    response = decode_response(ProduceResponse, 9, guest.replies()[0])[1]
    codes = {each.name: each.partition_responses[0].error_code for each in response.responses}
    assert codes == {"payroll": Code.TOPIC_AUTHORIZATION_FAILED, TOPIC: Code.NONE}
    assert house.broker.broker.topics.end_offset("payroll", 0) == 0

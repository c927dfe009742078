"""Every operation of every API goes through the gate and declares what it needs; which are open to strangers is listed
here. That each does as it declares is in `test_role_matrix.py`.
"""

from goqueue.broker.gate import Gate
from goqueue.doors.grpc.permissions import PERMISSIONS
from goqueue.doors.http.routes.table import ROUTES
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.model.access import KNOWN, OPEN, Kind, Operation, Permission
from goqueue.model.codes import Code
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.brokers import data
from tests.unit.doors.grpc.test_garbage import METHODS
from tests.unit.doors.http.bare import TOPIC
from tests.unit.doors.kafka.test_door_fuzz import Guest, House, frame


def test_every_operation_declares_what_it_needs() -> None:
    declared: dict[str, Permission] = {
        **{f"kafka {APIS[key].name}": each.permission for key, each in HANDLERS.items()},
        **{f"http {each.operation.method} {each.operation.path}": each.permission for each in ROUTES},
        **{f"sqs {name}": each.permission for name, each in ACTIONS.items()},
        **{f"grpc {each.full_name}": PERMISSIONS[each.full_name] for each in METHODS},
    }
    assert len(declared) == len(HANDLERS) + len(ROUTES) + len(ACTIONS) + len(METHODS)
    assert all(each in (OPEN, KNOWN) or each.needs for each in declared.values())
    assert {name for name, each in declared.items() if each is KNOWN} == {"http GET /session", "http DELETE /session"}
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
        "http GET /session/callback",
        "http GET /session/oidc",
        "http GET /version",
        "http POST /session",
        "kafka ApiVersions",
        "kafka SaslAuthenticate",
        "kafka SaslHandshake",
    }


class OnlyOrders:
    are_all = False

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool:
        return name == TOPIC

    def alike(self, kind: Kind, operation: Operation) -> object:
        return object()


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

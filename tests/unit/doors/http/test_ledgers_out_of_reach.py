"""No operation reaches a log of the broker's own, whether a path or a body names it."""

from typing import Any

from goqueue.wire.rest.operations.table import OPERATIONS
from tests.unit.doors.http.door_client import Client, served

OF_TOPICS = [one for one in OPERATIONS if "{topic}" in one.path]
BODIES: dict[str, dict[str, Any]] = {
    "PATCH /topics/{topic}": {"options": {"retention.ms": "1"}},
    "POST /topics/{topic}/trim": {"before": "latest"},
    "POST /topics/{topic}/messages": {"messages": [{"key": "orders", "value": "x", "partition": 0}]},
    "POST /topics/{topic}/dlq/redrive": {},
    "PATCH /topics/{topic}/delayed/{partition}/{offset}": {"delay": "1s"},
    "POST /admin/topics/{topic}/partitions": {"count": 2},
    "POST /admin/topics/{topic}/compact": {},
    "POST /topics/{topic}/receive": {"group": "g"},
    "POST /cluster/partitions/{topic}/{partition}/elect": {"unclean": True},
}
LEDGER = "@metadata"


@served
async def test_every_operation_on_a_topic_refuses_the_name_of_a_ledger(client: Client) -> None:
    for operation in OF_TOPICS:
        name = f"{operation.method} {operation.path}"
        path = operation.path.replace("{topic}", LEDGER).replace("{partition}", "0").replace("{offset}", "0")
        body = BODIES.get(name)
        assert (operation.body_type is None) == (body is None), name
        reply = await client.http.request(operation.method, path, json=body)
        assert (reply.status_code, reply.json()["code"]) == (400, "INVALID_REQUEST"), f"{name}: {reply.text}"


@served
async def test_a_body_that_names_a_ledger_is_refused(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    await client.post("/topics", name=LEDGER, num_partitions=1, status=400)
    await client.patch("/topics/orders", options={"dead.letter.topic": LEDGER}, status=400)
    await client.post("/topics/orders/dlq/redrive", to=LEDGER, status=400)

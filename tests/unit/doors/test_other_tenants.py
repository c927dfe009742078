"""What a tenant may try with names and numbers that are not its own."""

from typing import Any

import pytest

from goqueue.broker.durable import Durable, OnConfirmed
from goqueue.broker.gate import Gate
from goqueue.broker.transactions.listing import Wanted
from goqueue.doors.http.permissions import DESCRIBES_TRANSACTIONS
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import CoordinatorFailed, GoQueueError
from goqueue.model.moves import MoveStatus
from goqueue.model.transactions import Placed, Producer
from goqueue.records.messages import NewMessage
from tests.unit.doors.http.bare import TOPIC
from tests.unit.doors.tenant_node import TenantNode, tenant_node
from tests.unit.testing.loops import in_loop


@in_loop
async def test_nobody_publishes_in_a_transaction_of_another_tenant_by_the_number_of_its_producer() -> None:
    """As a node asks that does not know whose a producer is."""
    async with tenant_node() as node:
        assert (await node.of_default("POST", "/topics", {"name": "plain", "num_partitions": 1})).status == 201
        of_acme = (await node.http("POST", "/producers/init", {"transactional_id": "shop"})).json
        of_default = (await node.of_default("POST", "/producers/init", {"transactional_id": "no~tenant"})).json
        assert (await node.http("POST", "/transactions/begin", {"transactional_id": "shop", **of_acme})).status == 200
        begun = await node.of_default("POST", "/transactions/begin", {"transactional_id": "no~tenant", **of_default})
        assert begun.status == 200
        own: tuple[Any, ...] = (of_acme, f"acme~{TOPIC}"), (of_default, "plain")
        others: tuple[Any, ...] = (of_acme, "plain"), (of_default, f"acme~{TOPIC}")
        for made, topic in own:
            assert isinstance(await published(node, made, topic), Placed)
        for made, topic in others:
            refused = await published(node, made, topic)
            assert str(refused) == f"producer {made['producer_id']} is no producer of transactions"


async def published(node: TenantNode, made: Any, topic: str) -> Placed | GoQueueError:
    told: list[Placed | GoQueueError] = []
    steps = node.b.broker.transaction_steps
    steps.publish(Producer(made["producer_id"], made["epoch"]), topic, NewMessage(b"x"), None, told.append)
    await node.b.advance("1ms")
    (placed,) = told
    return placed


@in_loop
@pytest.mark.parametrize("claimed", ["secret", "gone"])
async def test_a_forged_dead_letter_does_not_tell_whether_another_tenant_has_a_topic(claimed: str) -> None:
    async with tenant_node() as node:
        assert (await node.of_default("POST", "/topics", {"name": "secret", "num_partitions": 1})).status == 201
        options = {"name": "jobs", "num_partitions": 1, "options": {"dead.letter.topic": TOPIC}}
        made = await node.http("POST", "/topics", options)
        assert made.status == 201, made.body
        assert (await node.publish("forged", headers={"gq-dlq-topic": claimed})).status == 200
        move = node.b.broker.moves.start("sqs", f"acme~{TOPIC}", None, 0)
        await node.b.advance("1s")
        assert (move.status, move.error and code_of(move.error)) == (MoveStatus.FAILED, Code.UNKNOWN_TOPIC_OR_PARTITION)


@in_loop
async def test_a_pattern_of_transactional_ids_is_matched_with_the_names_that_a_tenant_knows() -> None:
    async with tenant_node() as node:
        for name in ("shop", "shore"):
            assert (await node.http("POST", "/producers/init", {"transactional_id": name})).status == 200
        assert (await node.of_default("POST", "/producers/init", {"transactional_id": "show"})).status == 200
        listed = Gate(node.b.broker).trusted_in("acme").view(DESCRIBES_TRANSACTIONS).transaction_list
        found = [each.transactional_id for page in listed.walking(Wanted(pattern="sho.|nobody")) for each in page]
        assert found == ["shop"]


@in_loop
async def test_what_is_out_of_service_of_others_is_told_without_a_name() -> None:
    """Groups of all tenants are kept in the same ledgers, and a listing waits for all of them."""

    def fail(_durable: Durable, _kinds: object, on_confirmed: OnConfirmed) -> None:
        on_confirmed(CoordinatorFailed("deliveries-secret-0 is out of service"))

    async with tenant_node() as node:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Durable, "confirm", fail)
            for path in ("/groups", "/leases", f"/topics/{TOPIC}/lanes?group=g"):
                told = await node.http("GET", path)
                assert (told.status, told.json["code"]) == (503, "COORDINATOR_NOT_AVAILABLE"), path
                assert "secret" not in told.json["error"], path
            assert "secret" in (await node.of_default("GET", "/groups")).json["error"]

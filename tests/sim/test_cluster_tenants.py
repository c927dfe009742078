"""Tenants of a cluster: whichever node is asked, and whichever dies."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any, cast

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.schemas import Given
from goqueue.broker.shards import shard_of_transaction
from goqueue.client.events import Event
from goqueue.client.http import Http, HttpRefused
from goqueue.client.security import Security
from goqueue.machines import accounts, controller
from goqueue.machines.controller_commands import CreateTopic, PlaceSchedule
from goqueue.machines.group_options import SetGroupOptions
from goqueue.machines.groups.commands import CommitOffsets, OffsetToCommit
from goqueue.machines.quotas import SetQuota
from goqueue.machines.tenant_commands import ChangeTenant
from goqueue.machines.transactions.commands import InitProducer
from goqueue.model.access import Kind, Operation, Rule
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import SHARE, Tenant, TenantStatus
from goqueue.records.messages import NewMessage
from goqueue.testing.simulated_node import SimulatedNode
from goqueue.testing.simulation import Simulation
from goqueue.wire.rest.operations import messages as operations
from goqueue.wire.rest.operations import transactions

GROUPS = [f"acme~readers-{number}" for number in range(6)]
"""Of several shards, which have several leaders."""


async def answer(sim: Simulation, submit: Callable[[Callable[[Any], None]], None]) -> Any:
    told: asyncio.Future[Any] = sim.loop.create_future()
    submit(told.set_result)
    return await told


async def furnish(sim: Simulation, broker: Broker) -> None:
    assert await answer(sim, lambda done: broker.tenants.create(Tenant("acme", "Acme"), done)) is None
    for topic in ("acme~orders", "acme~jobs", "orders"):
        create = partial(broker.topics.submit, CreateTopic(topic, broker.topics.new_id(), 3))
        assert (await answer(sim, create)).code is Code.NONE
    for group in (*GROUPS, "readers"):
        await answer(sim, partial(broker.groups.ask, CommitOffsets(group, (OffsetToCommit("acme~orders", 0, 0),))))
    await answer(sim, lambda done: broker.schemas.register("acme~orders-value", Given('"string"'), done))
    name = InitProducer("acme~shop", 60_000, new_producer_id=1 << 40)
    shard = broker.transactions.partition_of("acme~shop")
    made = await answer(sim, lambda done: broker.transactions.coordinators.of(shard).submit(name, done))
    assert made.code is Code.NONE
    await answer(sim, lambda done: broker.accounts.create_user("acme~anna", "pencil", ["admin"], done))


async def found(sim: Simulation, node: SimulatedNode) -> dict[str, list[str]]:
    one: dict[str, list[str]] = await answer(sim, lambda done: node.broker.tenants.find("acme", done))
    return one


def test_a_tenant_is_deleted_though_the_node_that_does_it_dies() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        first, second, third = sim.nodes
        await furnish(sim, third.broker)
        await sim.let_pass("1s")
        kinds = {"topics", "groups", "transactional ids", "subjects", "users"}
        for node in sim.nodes:
            assert (await found(sim, node)).keys() == kinds
        assert await answer(sim, lambda done: third.broker.tenants.delete("acme", done)) is None
        first.crash("kill")
        while "acme" in second.broker.tenants.all():
            await sim.let_pass("1s")
        assert await found(sim, second) == {}
        await first.start()
        await sim.let_pass("2s")
        assert [dict(node.broker.tenants.all()) for node in sim.nodes] == [{}, {}, {}]
        assert await found(sim, first) == {}
        assert [set(node.broker.topics.image.topics) for node in sim.nodes] == [{"orders"}] * 3
        assert await answer(sim, lambda done: first.broker.groups.ask(CommitOffsets("readers", ()), done))
        assert not sim.loop.exceptions

    Simulation(seed=1, nodes=3, cluster=True).run(scenario, limit="3m")


def test_nodes_that_make_topics_at_once_do_not_exceed_the_quota_of_a_tenant() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        tenants = sim.nodes[0].broker.tenants
        assert await answer(sim, partial(tenants.create, Tenant("acme", "Acme"))) is None
        assert await answer(sim, partial(tenants.change, ChangeTenant("acme", quotas={"max_topics": 4}))) is None
        await sim.let_pass("1s")

        async def make(node: SimulatedNode, number: int) -> Code:
            topics = node.broker.topics
            command = CreateTopic(f"acme~{node.name}-{number}", topics.new_id(), 1)
            code: Code = (await answer(sim, partial(topics.submit, command))).code
            return code

        codes = await asyncio.gather(*(make(node, number) for node in sim.nodes for number in range(3)))
        assert sorted(codes) == [Code.NONE] * 4 + [Code.POLICY_VIOLATION] * 5
        await sim.let_pass("1s")
        usages = [await answer(sim, partial(node.broker.tenants.usage, "acme")) for node in sim.nodes]
        assert [each.topics for each in usages] == [4, 4, 4]
        assert not sim.loop.exceptions

    Simulation(seed=2, nodes=3, cluster=True).run(scenario, limit="2m")


def test_nodes_that_place_schedules_at_once_do_not_exceed_the_quota_of_a_tenant() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        first = sim.nodes[0].broker
        assert await answer(sim, partial(first.tenants.create, Tenant("acme", "Acme"))) is None
        quotas = ChangeTenant("acme", quotas={"max_recurring_schedules": 4})
        assert await answer(sim, partial(first.tenants.change, quotas)) is None
        topic_id = first.topics.new_id()
        made = await answer(sim, partial(first.topics.submit, CreateTopic("acme~orders", topic_id, 1)))
        assert made.code is Code.NONE
        await sim.let_pass("1s")

        async def place(node: SimulatedNode, number: int) -> Code:
            store: Any = node.broker.tenants._store
            command = PlaceSchedule(f"acme~{node.name}-{number}", topic_id, 0)
            code: Code = (await answer(sim, partial(store.submit, command))).code
            return code

        codes = await asyncio.gather(*(place(node, number) for node in sim.nodes for number in range(3)))
        assert sorted(codes) == [Code.NONE] * 4 + [Code.POLICY_VIOLATION] * 5
        assert not sim.loop.exceptions

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="2m")


def test_nodes_that_make_accounts_at_once_do_not_exceed_the_quota_of_a_tenant() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        first = sim.nodes[0].broker
        assert await answer(sim, partial(first.tenants.create, Tenant("acme", "Acme"))) is None
        quotas = ChangeTenant("acme", quotas={"max_accounts": 4})
        assert await answer(sim, partial(first.tenants.change, quotas)) is None
        await sim.let_pass("1s")

        async def make(node: SimulatedNode, number: int, kind: str) -> bool:
            accounts, name = node.broker.accounts, f"{node.name}-{number}"
            if kind == "user":
                create = partial(accounts.create_user, f"acme~{name}", "pencil", [])
            elif kind == "key":
                create = partial(accounts.create_key, name, [], 0, {}, tenant="acme")
            else:
                rule = Rule(accounts.new_rule_id(), "User:a", Kind.TOPIC, name, Operation.READ, tenant="acme")
                create = partial(accounts.create_rules, [rule])
            return not isinstance(await answer(sim, create), GoQueueError)

        for kind in ("user", "key", "rule"):
            made = await asyncio.gather(*(make(node, number, kind) for node in sim.nodes for number in range(3)))
            assert sum(made) == 4, kind
        assert not sim.loop.exceptions

    Simulation(seed=4, nodes=3, cluster=True).run(scenario, limit="2m")


def test_nodes_that_make_things_at_once_do_not_exceed_the_share_of_a_tenant_without_quotas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounts, "ACCOUNTS_MAX", 4 * SHARE)
    monkeypatch.setattr(controller, "SCHEDULES_SHARED", 4 * SHARE)

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        first, stores = sim.nodes[0].broker, [cast(Any, node.broker.tenants._store) for node in sim.nodes]
        assert await answer(sim, partial(first.tenants.create, Tenant("acme", "Acme"))) is None
        await sim.let_pass("1s")

        async def taken(name: str, make: Callable[[Any, str], Any]) -> int:
            results = await asyncio.gather(
                *(
                    answer(sim, partial(store.submit, make(store, f"acme~{name}-{number}-{each}")))
                    for number, store in enumerate(stores)
                    for each in range(3)
                )
            )
            codes = [each.code for each in results]
            assert set(codes) == {Code.NONE, Code.POLICY_VIOLATION}
            return codes.count(Code.NONE)

        revision = first.accounts.image.revision
        for store in stores:
            store.mirror.machine._limits = store.mirror.machine._limits._replace(in_all=4 * SHARE)
        assert await taken("topic", lambda _, name: CreateTopic(name, first.topics.new_id(), 1)) == 4
        topic_id = next(each.id for name, each in first.topics.image.topics.items() if name.startswith("acme~"))
        assert await taken("schedule", lambda _, name: PlaceSchedule(name, topic_id, 0)) == 4
        assert first.accounts.image.revision == revision, "nobody's access has changed"
        assert await taken("user", lambda _, name: accounts.ChangeUser(name, {"SCRAM-SHA-256": b"x"}, is_new=True)) == 4
        assert not sim.loop.exceptions

    Simulation(seed=5, nodes=3, cluster=True).run(scenario, limit="2m")


def test_what_a_tenant_stores_and_its_groups_count_on_all_nodes() -> None:
    """Bytes within seconds, groups at once."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        first = sim.nodes[0]
        tenants = first.broker.tenants
        assert await answer(sim, partial(tenants.create, Tenant("acme", "Acme"))) is None
        quotas = {"max_storage_bytes": 40_000, "max_consumer_groups": 3}
        assert await answer(sim, partial(tenants.change, ChangeTenant("acme", quotas=quotas))) is None
        made = CreateTopic("acme~orders", first.broker.topics.new_id(), 3)
        assert (await answer(sim, partial(first.broker.topics.submit, made))).code is Code.NONE
        await sim.let_pass("1s")

        async def publish(partition: int, size: int) -> GoQueueError | None:
            message = NewMessage(b"x" * size, partition=partition)
            (sent,) = await answer(sim, partial(first.broker.sender.send, "acme~orders", [message]))
            error: GoQueueError | None = sent.error
            return error

        assert [await publish(number, 12_000) for number in range(3)] == [None] * 3, "no node has room for less"
        leaders = {first.broker.topics.image.leader_of("acme~orders", number) for number in range(3)}
        assert len(leaders) > 1
        await sim.let_pass("6s")
        refused = [await publish(number, 8000) for number in range(3)]
        assert all("max_storage_bytes of the tenant is 40000" in str(each) for each in refused)
        usages = [await answer(sim, partial(node.broker.tenants.usage, "acme")) for node in sim.nodes]
        (stored,) = {each.stored_bytes for each in usages}
        assert 36_000 < stored < 40_000

        async def commit(group: str) -> Any:
            offset = OffsetToCommit("acme~orders", 0, 0)
            return await answer(sim, partial(first.broker.groups.ask, CommitOffsets(f"acme~{group}", (offset,))))

        codes = [await commit(f"group-{number}") for number in range(5)]
        assert [isinstance(each, Refused) for each in codes] == [False] * 3 + [True] * 2
        assert [isinstance(await commit(f"group-{number}"), Refused) for number in range(3)] == [False] * 3
        assert [(await answer(sim, partial(each.broker.tenants.usage, "acme"))).groups for each in sim.nodes] == [3] * 3
        assert not sim.loop.exceptions

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="2m")


def test_what_other_nodes_make_for_a_tenant_while_it_is_deleted_goes_with_it_or_is_refused() -> None:
    """Options of groups, quotas of users and schedules: a node that has not heard of the end yet loses the race."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        first, *others = sim.nodes
        await furnish(sim, first.broker)
        await sim.let_pass("1s")
        topic = first.broker.topics.image.topics["acme~orders"]
        replies: list[Any] = []
        for number in range(40):
            if number == 10:
                first.broker.tenants.delete("acme", replies.append)
            for node in others:
                store: Any = node.broker.queues._store  # which takes all commands of the controller
                name = f"acme~{node.name}-{number}"
                store.submit(SetGroupOptions(name, {"lease.ms": "1000"}), replies.append)
                store.submit(SetQuota(name, None, {"producer_byte_rate": 1000.0}), replies.append)
                store.submit(PlaceSchedule(name, topic.id, 0), replies.append)
            await sim.let_pass("1ms")
        while "acme" in first.broker.tenants.all():
            await sim.let_pass("1s")
        assert len(replies) == 1 + 40 * len(others) * 3
        codes = Counter(each if isinstance(each, Code) else getattr(each, "code", Code.NONE) for each in replies)
        assert codes[Code.NONE] > 10, codes
        assert codes[Code.RESOURCE_NOT_FOUND] > 10, codes
        for node in sim.nodes:
            assert await found(sim, node) == {}
            assert not [each for each in node.broker.accounts.image.quotas if "acme~" in each]
        assert not sim.loop.exceptions

    Simulation(seed=3, nodes=3, cluster=True).run(scenario, limit="3m")


def test_following_what_other_nodes_lead_ends_once_the_tenant_is_suspended() -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        await furnish(sim, sim.nodes[0].broker)
        await sim.let_pass("1s")
        node = next(each for each in sim.nodes if not each.broker.topics.leads("acme~orders", 0))
        me = sim.process("follower")
        http = Http(node.http, security=Security(tenant="acme"), **me.ports)

        async def follow() -> Event:
            given = {"topic": "orders", "partition": 0}
            async with aclosing(http.events(operations.FOLLOW_TOPIC, given)) as events:
                return await anext(events)

        following = me.spawn(follow())
        await sim.let_pass("1s")
        suspend = ChangeTenant("acme", status=TenantStatus.SUSPENDED, reason="unpaid")
        assert await answer(sim, partial(node.broker.tenants.change, suspend)) is None
        end = await following
        assert (end.name, "unpaid" in end.data) == ("end", True)
        await http.close()

    Simulation(seed=4, nodes=3, cluster=True).run(scenario, limit="2m")


def test_topics_that_are_made_because_somebody_publishes_count_on_the_node_that_a_request_is_passed_on_to() -> None:
    """In a transaction the node that looks after it makes them."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("2s")
        first = sim.nodes[0].broker
        assert await answer(sim, partial(first.tenants.create, Tenant("acme", "Acme"))) is None
        quotas = ChangeTenant("acme", quotas={"controller_mutation_rate": 1})
        assert await answer(sim, partial(first.tenants.change, quotas)) is None
        await sim.let_pass("1s")
        home = first.topics.image.placement("@transactions", shard_of_transaction("acme~shop")).leader
        node = next(each for each in sim.nodes if each.number != home)
        me = sim.process("me")
        http = Http(node.http, security=Security(tenant="acme"), attempts_max=1, **me.ports)

        async def publish() -> list[str]:
            made = await http.call(transactions.INIT_PRODUCER, {"transactional_id": "shop"})
            who = {"transactional_id": "shop", "producer_id": made.producer_id, "epoch": made.epoch}
            await http.call(transactions.BEGIN_TRANSACTION, who)
            told = []
            for number in range(16):
                try:
                    await http.call(transactions.PUBLISH_IN_TRANSACTION, {**who, "topic": f"t{number}", "value": "x"})
                except HttpRefused as error:
                    told.append(error.code)
            return told

        assert await me.spawn(publish()) == ["THROTTLING_QUOTA_EXCEEDED"] * 4, "eleven seconds of it, and one"
        made = {name for name in first.topics.image.topics if name.startswith("acme~")}
        assert made == {f"acme~t{number}" for number in range(12)}
        await http.close()
        assert not sim.loop.exceptions

    Simulation(seed=6, nodes=3, cluster=True, default_partitions=1).run(scenario, limit="2m")

"""A crash at every operation while a tenant is deleted: the next start finishes it, nothing of the tenant is left, and
the others have what they had."""

from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from goqueue.broker.schemas.schemas import Given
from goqueue.broker.tenants.tenants import AGAIN_MS
from goqueue.machines.controller_commands import CreateTopic
from goqueue.machines.groups.commands import CommitOffsets, GroupProtocol, JoinGroup, JoinReply, OffsetToCommit
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat
from goqueue.machines.schemas.facts import SetLevel
from goqueue.machines.transactions.commands import AddPartitions, EndTogether, InitProducer
from goqueue.model.access import Kind, Operation, Rule
from goqueue.model.codes import Code
from goqueue.model.schemas import Level
from goqueue.model.tenancy import Tenant, TenantStatus
from goqueue.testing import MemoryDisk
from tests.brokers import TestBroker
from tests.layers import in_layers
from tests.sim.crashes import Trace

ROUNDS_MAX = 50


def furnish(node: TestBroker, tenant: str) -> None:
    """Something of every kind."""
    broker, prefix = node.broker, f"{tenant}~" if tenant else ""
    topic, group = f"{prefix}orders", f"{prefix}readers"
    assert node.ask(broker.topics.submit, CreateTopic(topic, topic.encode().ljust(16, b".")[:16], 1)).code is Code.NONE
    node.publish(topic, b"of " + tenant.encode())
    ask, submit = node.ask, broker.groups.submit
    ask(submit, CommitOffsets(group, (OffsetToCommit(topic, 0, 1),)))
    member = ConsumerHeartbeat(f"{prefix}members", "anna", 0, rebalance_timeout_ms=1000, owned=())
    ask(submit, msgspec.structs.replace(member, subscribed_topic_names=(topic,)))
    ask(lambda options, done: broker.queues.set_options(f"{prefix}workers", options, done), {"lease.ms": "1000"})
    ask(lambda given, done: broker.schemas.register(f"{prefix}orders-value", given, done), Given('"string"'))
    ask(broker.schemas.submit, SetLevel(f"{prefix}bare", Level.FULL))
    made = ask(broker.transactions.submit, InitProducer(f"{prefix}shop", 60_000))
    joined = AddPartitions(f"{prefix}shop", made.producer_id, made.epoch, ((topic, 0),))
    assert ask(broker.transactions.submit, joined).code is Code.NONE
    ask(broker.transactions.submit, InitProducer(f"{prefix}idle", 60_000))
    ask(broker.transactions.submit, EndTogether(f"{prefix}job", 1, commit=True))
    accounts = broker.accounts
    ask(lambda name, done: accounts.create_user(name, "pencil", ["admin"], done), f"{prefix}anna")
    ask(lambda name, done: accounts.create_key(name, [], 0, {}, done, tenant=tenant or "default"), "ci")
    rule = Rule(accounts.new_rule_id(), "User:anna", Kind.TOPIC, "orders", Operation.READ, tenant=tenant or "default")
    ask(accounts.create_rules, [rule])
    ask(lambda name, done: accounts.set_quota(name, None, {"request_rate": 5}, done), f"{prefix}anna")


def left(node: TestBroker, tenant: str) -> dict[str, list[str]]:
    found: list[Any] = []
    node.broker.tenants.find(tenant, found.append)
    node.commit()
    (one,) = found
    assert isinstance(one, dict), one
    return one


def new_node(disk: MemoryDisk) -> TestBroker:
    """With two tenants, of which one has a name that the other's begins with, and the default one."""
    node = TestBroker(disk)
    for tenant in ("acme", "acme-2"):
        assert node.ask(node.broker.tenants.create, Tenant(tenant, tenant)) is None
        furnish(node, tenant)
    furnish(node, "")
    return node


def until_gone(node: TestBroker) -> None:
    for _ in range(ROUNDS_MAX):
        node.commit()
        if "acme" not in node.broker.tenants.all():
            return
        node.clock.advance(AGAIN_MS)
    raise AssertionError(left(node, "acme"))


KINDS = {"topics", "groups", "options of groups", "transactional ids", "subjects", "users", "keys", "rules", "quotas"}


def check_others(node: TestBroker) -> None:
    other = left(node, "acme-2")
    assert other.keys() == KINDS
    assert (other["groups"], other["transactional ids"]) == (["members", "readers"], ["idle", "job", "shop"])
    assert set(node.broker.topics.image.topics) == {"acme-2~orders", "orders"}
    assert "anna" in node.broker.accounts.image.users
    assert node.broker.groups.kind_of("readers") is not None
    assert node.broker.schemas.subjects() == ["acme-2~orders-value", "orders-value"]


def test_a_tenant_is_deleted_with_all_that_it_has_and_can_be_made_again() -> None:
    node = new_node(MemoryDisk())
    assert left(node, "acme").keys() == KINDS
    told: list[Any] = []
    joining = JoinGroup("acme~classic", "", "m", 10_000, 10_000, "consumer", (GroupProtocol("range", b""),))
    node.broker.groups.submit(msgspec.structs.replace(joining, knows_member_id_required=False), told.append)
    assert node.ask(node.broker.tenants.delete, "acme") is None
    until_gone(node)
    (answer,) = told
    assert isinstance(answer, JoinReply)  # nobody waits for ever
    assert left(node, "acme") == {}
    check_others(node)
    assert node.ask(node.broker.tenants.create, Tenant("acme", "Acme")) is None
    furnish(node, "acme")
    assert left(node, "acme").keys() == KINDS


STRIDE = 6


@pytest.mark.parametrize("first", in_layers(range(STRIDE), 1))
def test_a_crash_while_a_tenant_is_deleted_is_finished_by_the_next_start(first: int) -> None:
    trace = Trace()
    disk = trace.disk
    node = new_node(disk)
    since = disk.op_count
    assert node.ask(node.broker.tenants.delete, "acme") is None
    promised = disk.op_count
    until_gone(node)
    statuses = set()
    for upto in (since, *range(since + first, disk.op_count, STRIDE), disk.op_count):
        lost = disk.unsynced(upto)
        for image in (disk.crashed(upto), *([disk.crashed(upto, lost=lost)] if lost else ())):
            with capture_logs():
                again = TestBroker(image)
                found = again.broker.tenants.all().get("acme")
                statuses.add("gone" if found is None else found.status)
                if found is not None and found.status is TenantStatus.ACTIVE:
                    assert upto < promised
                    assert left(again, "acme").keys() == KINDS
                    continue
                until_gone(again)
                assert left(again, "acme") == {}
                check_others(again)
    assert statuses == {TenantStatus.ACTIVE, TenantStatus.DELETING, "gone"}

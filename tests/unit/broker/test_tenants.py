"""How tenants come and go: names are nobody else's, and nothing is made for one that goes."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.gate import Gate
from goqueue.broker.schemas.schemas import Given
from goqueue.broker.tenants.tenants import AGAIN_MS_MAX, Usage
from goqueue.broker.tenants.walk import Walk
from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.machines.controller_commands import AddPartitions, CreateTopic
from goqueue.machines.groups.commands import CommitOffsets, OffsetToCommit
from goqueue.machines.groups.consumer.facts import ConsumerHeartbeat
from goqueue.machines.tenant_commands import ChangeTenant, ForgetTenant
from goqueue.machines.transactions.commands import InitProducer
from goqueue.model.access import EVERYBODY, Kind, Operation, Rule
from goqueue.model.codes import Code
from goqueue.model.credentials import Credentials, NotAuthenticated, Principal
from goqueue.model.errors import NotReached
from goqueue.model.listener import IN_PROCESS
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import Tenant, TenantStatus
from tests.brokers import TestBroker

ACME = Tenant("acme", "Acme")


def commit(node: TestBroker) -> Any:
    return node.ask(node.broker.groups.submit, CommitOffsets("acme~g", (OffsetToCommit("orders", 0, 1),)))


def option(node: TestBroker) -> Any:
    return node.ask(lambda given, done: node.broker.queues.set_options("acme~g", given, done), {"lease.ms": "1000"})


def transaction(node: TestBroker) -> Any:
    return node.ask(node.broker.transactions.submit, InitProducer("acme~g", 1000))


def subject(node: TestBroker) -> Any:
    return node.ask(lambda given, done: node.broker.schemas.register("acme~g", given, done), Given('"int"'))


def schedule(node: TestBroker) -> Any:
    wanted = Recurring("acme~g", "orders", "* * * * *", b"x")
    return node.ask(node.broker.recurring.store, wanted)


def quota(node: TestBroker) -> Any:
    return node.ask(lambda name, done: node.broker.accounts.set_quota(name, None, {"request_rate": 5}, done), "acme~g")


NAMING = {
    "groups": commit,
    "options of groups": option,
    "transactional ids": transaction,
    "subjects": subject,
    "schedules": schedule,
    "quotas": quota,
}


@pytest.mark.parametrize("what", NAMING)
def test_a_tenant_is_not_made_while_names_of_others_would_be_its(what: str) -> None:
    node = TestBroker()
    node.create("orders")
    NAMING[what](node)
    refused = node.ask(node.broker.tenants.create, ACME)
    assert isinstance(refused, Refused)
    assert (refused.code, f"{what} g" in str(refused)) == (Code.DUPLICATE_RESOURCE, True)
    assert node.ask(node.broker.tenants.create, Tenant("acm", "Acm")) is None
    assert node.ask(node.broker.tenants.create, Tenant("acme-2", "Acme")) is None


def going(node: TestBroker) -> None:
    """Not gone: whoever takes it apart has stopped."""
    node.broker.tenants.stop()
    assert node.ask(node.broker.tenants.delete, "acme") is None


def user(node: TestBroker) -> Any:
    return node.ask(lambda name, done: node.broker.accounts.create_user(name, "pencil", [], done), "acme~anna")


def key(node: TestBroker) -> Any:
    return node.ask(lambda name, done: node.broker.accounts.create_key(name, [], 0, {}, done, tenant="acme"), "ci")


def rule(node: TestBroker) -> Any:
    one = Rule("r1", "User:anna", Kind.TOPIC, "orders", Operation.READ, tenant="acme")
    return node.ask(node.broker.accounts.create_rules, [one])


def topic(node: TestBroker) -> Any:
    made = node.ask(node.broker.topics.submit, CreateTopic("acme~orders", b"1" * 16, 1))
    return made if made.code is Code.NONE else Refused(made.code, made.message)


@pytest.mark.parametrize("make", [user, key, rule, topic])
def test_nothing_is_made_for_a_tenant_that_goes_or_is_gone(make: Callable[[TestBroker], Any]) -> None:
    node = TestBroker()
    refused = make(node)
    assert "there is no tenant 'acme'" in str(refused)
    assert node.ask(node.broker.tenants.create, ACME) is None
    going(node)
    refused = make(node)
    assert isinstance(refused, Refused)
    assert "tenant 'acme' is being deleted" in str(refused)


def test_a_tenant_is_not_forgotten_while_a_user_would_become_one_of_the_default_tenant() -> None:
    node = TestBroker()
    assert node.ask(node.broker.tenants.create, ACME) is None
    assert user(node) is None
    forget = ForgetTenant("acme")
    assert node.ask(node.broker.tenants._store.submit, forget).code is Code.INVALID_REQUEST
    going(node)
    refused = node.ask(node.broker.tenants._store.submit, forget)
    assert "still has the user 'acme~anna'" in refused.message


def test_a_tenant_that_goes_does_not_come_back() -> None:
    node = TestBroker()
    assert node.ask(node.broker.tenants.create, ACME) is None
    going(node)
    again = node.ask(node.broker.tenants.change, ChangeTenant("acme", status=TenantStatus.ACTIVE))
    assert isinstance(again, Refused)
    assert node.ask(node.broker.tenants.delete, "acme") is None  # once more does no harm
    assert node.ask(node.broker.tenants.create, ACME).code is Code.DUPLICATE_RESOURCE


def limited(node: TestBroker, **quotas: int | None) -> None:
    assert node.ask(node.broker.tenants.change, ChangeTenant("acme", quotas=quotas)) is None


def used(node: TestBroker) -> Usage:
    usage: Usage = node.ask(node.broker.tenants.usage, "acme")
    return usage


def made(node: TestBroker, name: str, partitions: int, *, is_own: bool = False) -> Code:
    topic_id = name.encode().ljust(16, b".")[:16]
    command = CreateTopic(name, topic_id, partitions, may_collide=is_own)
    code: Code = node.ask(node.broker.topics.submit, command).code
    return code


def test_a_tenant_has_so_many_topics_and_partitions_and_others_do_not_count() -> None:
    node = TestBroker()
    for tenant in (ACME, Tenant("acme-2", "other")):
        assert node.ask(node.broker.tenants.create, tenant) is None
    limited(node, max_topics=2, max_total_partitions=5, max_partitions_per_topic=3)
    for name in ("a", "b", "c", "acme-2~a", "acme-2~b", "acme-2~c"):
        assert made(node, name, 4) is Code.NONE
    assert made(node, "acme~a", 4) is Code.POLICY_VIOLATION
    assert made(node, "acme~a", 3) is Code.NONE
    assert made(node, "acme~b", 3) is Code.POLICY_VIOLATION
    assert made(node, "acme~b", 1) is Code.NONE
    more = [node.ask(node.broker.topics.submit, AddPartitions("acme~b", count)).code for count in (3, 2)]
    assert more == [Code.POLICY_VIOLATION, Code.NONE]
    assert made(node, "acme~c", 1) is Code.POLICY_VIOLATION
    assert made(node, "acme~a.dlq", 1, is_own=True) is Code.NONE, "a dead letter has a place"
    limited(node, max_topics=1, max_total_partitions=None)
    grown = node.ask(node.broker.topics.submit, AddPartitions("acme~b", 3))
    assert grown.code is Code.NONE, "it has more topics than it may make, and they go on"
    limited(node, max_topics=None)
    assert made(node, "acme~c", 3) is Code.NONE
    usage = used(node)
    assert (usage.topics, usage.partitions) == (4, 10)
    again = TestBroker(node.disk.crashed())
    assert again.broker.tenants.all()["acme"].quotas == {"max_partitions_per_topic": 3}


def test_bytes_that_a_tenant_stores_are_counted() -> None:
    node = TestBroker()
    assert node.ask(node.broker.tenants.create, ACME) is None
    assert made(node, "acme~a", 2) is Code.NONE
    assert made(node, "a", 1) is Code.NONE
    before = used(node).stored_bytes
    node.publish("a", b"x" * 1000)
    assert used(node).stored_bytes == before
    node.publish("acme~a", b"x" * 1000, partition=1)
    assert 1000 < used(node).stored_bytes - before < 1200


@pytest.mark.parametrize("principal", ["User:acme~anna", "Key:aaaaaaaaaaaa"])
def test_who_was_of_a_tenant_that_is_gone_is_nobody_of_the_default_tenant(principal: str) -> None:
    """Certificates name such users; and nodes tell each other of users and keys which one of them may not know."""
    node = TestBroker()
    everybody = Rule("r", EVERYBODY, Kind.TOPIC, "*", Operation.ALL)
    assert node.ask(node.broker.accounts.create_rules, [everybody]) is None
    gate = Gate(node.broker, logins=Logins(node.broker.accounts, node.clock, node.broker.dice, b"x"), is_closed=True)
    with pytest.raises(NotAuthenticated):
        gate.admit(Credentials("http", principal=principal))
    with pytest.raises(NotAuthenticated):
        gate.access(Principal(principal), IN_PROCESS)
    for other in ("User:anna", "User:CN=a~b", "User:~"):
        assert gate.admit(Credentials("http", principal=other)).tenancy.is_default


@pytest.mark.parametrize("regex", ["x)|(?:.*", "(", ")|("])
def test_an_expression_of_a_tenant_is_one_by_itself(regex: str) -> None:
    """It is kept inside of another, where what is wrong may look right."""
    node = TestBroker()
    assert node.ask(node.broker.tenants.create, ACME) is None
    assert made(node, "acme~a", 1) is made(node, "treasure", 1) is Code.NONE
    view = Gate(node.broker).trusted_in("acme").view(HANDLERS[68].permission)
    beat = ConsumerHeartbeat("g", "m", 0, rebalance_timeout_ms=1000, subscribed_topic_regex=regex, owned=())
    assert node.ask(view.groups.submit, beat).code is Code.INVALID_REGULAR_EXPRESSION
    good = node.ask(view.groups.submit, replace(beat, subscribed_topic_regex="a|(treasure)"))
    assert [len(each.partitions) for each in good.assignment] == [1]


def test_a_node_that_does_not_answer_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    node = TestBroker()
    assert node.ask(node.broker.tenants.create, ACME) is None
    node.commit()
    asked: list[str] = []

    def fail(tenant_id: str) -> Walk[bool]:
        asked.append(tenant_id)
        yield lambda done: done(NotReached("node 2 does not answer"))
        return True

    belongings = node.broker.tenants._belongings
    with monkeypatch.context() as patched, capture_logs():
        patched.setattr(belongings, "forget", fail)
        node.ask(node.broker.tenants.delete, "acme")
        for number in range(10):  # users come and go meanwhile, and each is a reason to look
            node.ask(lambda name, done: node.broker.accounts.create_user(name, "secret", (), done), f"user{number}")
        node.clock.advance(60_000)
        assert 5 < len(asked) < 40
    node.clock.advance(AGAIN_MS_MAX)
    node.commit()
    assert not node.broker.tenants.all()

"""Quotas: what holds for whom, what it comes to over a minute, and that they outlive a crash."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from goqueue.broker.accounts.quotas import DELAY_MS_MAX, KEPT_MAX, Quotas, TokenBucket
from goqueue.model.accounts import AccessImage
from goqueue.model.codes import Code
from goqueue.model.quotas import CONSUMED, DEFAULT, PRODUCED, REQUESTS, TIME, Quota, QuotaExceeded, quota_id
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import Tenant
from goqueue.testing import MemoryBroker, broker
from tests.unit.testing.loops import in_loop


class Node:
    """Quotas, and a clock that the test moves."""

    def __init__(self, *quotas: Quota) -> None:
        self.now_s = 100.0
        self.throttled: list[tuple[str, int]] = []
        self.quotas = Quotas(lambda: self.now_s, lambda key, ms: self.throttled.append((key, ms)))
        self.set(*quotas)

    def set(self, *quotas: Quota) -> None:
        self.quotas.renew(AccessImage(1, quotas={each.quota_id: each for each in quotas}))

    def rate(self, user: str, client_id: str) -> float:
        """What is left of the first second before its client has to wait, in tenths."""
        allowance = self.quotas.of(user, client_id)
        taken = 0
        while allowance is not None and allowance.take(PRODUCED, 1) == 0:
            taken += 1
        return taken


def produced(user: str | None, client_id: str | None, rate: float) -> Quota:
    return Quota(user, client_id, {PRODUCED: rate})


def test_the_most_specific_quota_holds_as_in_kafka() -> None:
    order = [
        ("alice", "app"),
        ("alice", DEFAULT),
        ("alice", None),
        (DEFAULT, "app"),
        (DEFAULT, DEFAULT),
        (DEFAULT, None),
        (None, "app"),
        (None, DEFAULT),
    ]
    known = [produced(user, client, 10.0 + number) for number, (user, client) in enumerate(order)]
    for number in range(len(order)):
        assert Node(*known[number:]).rate("alice", "app") == 10 + number
    assert Node(*known).rate("bob", "other") == 14
    assert Node(produced("alice", None, 5), produced(None, "app", 7)).quotas.of("bob", "other") is None


def test_a_limit_that_the_specific_quota_lacks_comes_from_the_next() -> None:
    node = Node(produced("alice", None, 10), Quota(DEFAULT, None, {CONSUMED: 20.0, PRODUCED: 1.0}))
    allowance = node.quotas.of("alice", "app")
    assert allowance is not None
    assert (allowance.take(PRODUCED, 10), allowance.take(CONSUMED, 20)) == (0, 0)
    assert (allowance.take(PRODUCED, 1), allowance.take(CONSUMED, 1)) == (100, 50)


def test_clients_of_a_user_share_its_quota_and_a_default_is_for_each() -> None:
    shared = Node(produced("alice", None, 10))
    assert (shared.rate("alice", "one"), shared.rate("alice", "two")) == (10, 0)
    each = Node(produced("alice", DEFAULT, 10))
    assert (each.rate("alice", "one"), each.rate("alice", "two")) == (10, 10)
    users = Node(produced(DEFAULT, None, 10))
    assert (users.rate("alice", "one"), users.rate("alice", "two"), users.rate("bob", "one")) == (10, 0, 10)


def test_over_a_minute_a_client_that_waits_as_it_is_told_gets_its_rate() -> None:
    node = Node(produced("alice", None, 100_000))
    allowance = node.quotas.of("alice", "")
    assert allowance is not None
    begun_s, sent = node.now_s, 0
    for number in range(10_000):
        size = 16_384 if number % 2 else 700
        sent += size
        node.now_s += allowance.take(PRODUCED, size) / 1000
        if node.now_s - begun_s >= 60:
            break
    expected = 100_000 * (node.now_s - begun_s)
    assert abs(sent / expected - 1) < 0.02, "beside the burst of the first second"


def test_a_clock_that_goes_backwards_gives_nothing() -> None:
    bucket = TokenBucket(10, 100.0)
    assert bucket.take(10, 100.0) == 0
    assert bucket.take(1, 50.0) == 100
    assert bucket.take(1, 50.0) == 200


def test_nobody_waits_longer_than_half_a_minute_at_once_and_what_is_owed_stays() -> None:
    bucket = TokenBucket(1, 0.0)
    assert bucket.take(101, 0.0) == DELAY_MS_MAX
    assert bucket.take(0, 30.0) == DELAY_MS_MAX
    assert bucket.take(0, 99.0) == 1000
    assert bucket.take(0, 100.0) == 0


def test_a_request_is_refused_while_anything_is_owed_and_costs_nothing_then() -> None:
    node = Node(Quota("alice", None, {REQUESTS: 2.0, PRODUCED: 10.0}))
    allowance = node.quotas.of("alice", "")
    assert allowance is not None
    allowance.admit(PRODUCED)
    allowance.use(PRODUCED, 30)
    for _ in range(3):
        with pytest.raises(QuotaExceeded) as refused:
            allowance.admit(PRODUCED)
        assert (refused.value.retry_ms, refused.value.code) == (2000, Code.THROTTLING_QUOTA_EXCEEDED)
    allowance.admit(CONSUMED)
    node.now_s += 2
    allowance.admit(PRODUCED)
    assert node.throttled == [(PRODUCED, 2000)] * 3


def test_another_rate_counts_at_once_and_other_changes_forgive_nothing() -> None:
    node = Node(produced("alice", None, 10))
    assert node.rate("alice", "app") == 10
    node.set(produced("alice", None, 10))
    assert node.rate("alice", "app") == 0
    node.set(produced("alice", None, 20))
    assert node.rate("alice", "app") == 20
    node.set()
    assert node.quotas.of("alice", "app") is None


def test_clients_that_invent_names_do_not_fill_the_memory() -> None:
    node = Node(produced(None, DEFAULT, 10))
    for number in range(KEPT_MAX + 100):
        assert node.quotas.of("alice", f"app-{number}") is not None
    assert len(node.quotas._buckets) == len(node.quotas._allowances) == KEPT_MAX
    node.now_s += 2
    node.quotas.of("alice", "one more")
    assert len(node.quotas._kept) < KEPT_MAX, "those that are as new ones go"


def test_who_is_pushed_out_by_invented_names_has_no_burst_for_it() -> None:
    node = Node(produced("alice", None, 10), produced(DEFAULT, DEFAULT, 10))
    allowance = node.quotas.of("alice", "app")
    assert allowance is not None
    assert allowance.take(PRODUCED, 30) == 2000
    for number in range(2 * KEPT_MAX):
        other = node.quotas.of("bob", f"app-{number}")
        assert other is not None
        other.take(PRODUCED, 15)
    again = node.quotas.of("alice", "app")
    assert again is not None
    assert again is not allowance
    assert again.take(PRODUCED, 0) == 2000, "the bucket that somebody has is the one"
    del again, allowance
    for number in range(2 * KEPT_MAX):
        other = node.quotas.of("carol", f"app-{number}")
        assert other is not None
        other.take(PRODUCED, 15)
    assert node.rate("alice", "app") == 0, "and one that is made anew begins empty"


@pytest.mark.parametrize(
    ("user", "client_id", "limits"),
    [
        (None, None, {PRODUCED: 1.0}),
        ("alice", None, {"connection_creation_rate": 1.0}),
        ("alice", None, {PRODUCED: 0.0}),
        ("alice", None, {PRODUCED: -1.0}),
        ("alice", None, {PRODUCED: 1.5}),
        ("alice", None, {REQUESTS: float("nan")}),
        ("alice", None, {REQUESTS: float("inf")}),
        ("x" * 256, None, {REQUESTS: 1.0}),
    ],
)
def test_what_makes_no_sense_is_refused(user: str | None, client_id: str | None, limits: dict[str, float]) -> None:
    @in_loop
    async def scenario() -> None:
        async with broker() as b:
            with pytest.raises(Refused) as refused:
                await changed(b, lambda done: b.broker.accounts.set_quota(user, client_id, limits, done))
            assert refused.value.code is Code.INVALID_REQUEST
            assert b.broker.accounts.image.quotas == {}

    scenario()


async def changed(b: MemoryBroker, submit: Callable[[Callable[[Any], None]], object]) -> None:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    submit(done.set_result)
    reply = await done
    if isinstance(reply, Exception):
        raise reply


@in_loop
async def test_quotas_are_there_after_a_power_cut_and_gone_when_they_were_taken_away() -> None:
    async with broker() as b:
        entities: list[tuple[str | None, str | None]] = [("alice", None), (DEFAULT, "app/1"), (None, DEFAULT)]
        for entity in entities:
            await changed(b, partial(b.broker.accounts.set_quota, *entity, {PRODUCED: 7.0}))
        await changed(b, lambda done: b.broker.accounts.set_quota("alice", None, {REQUESTS: 2.5}, done))
        await changed(b, lambda done: b.broker.accounts.delete_quota(None, DEFAULT, done))
        with pytest.raises(Refused):
            await changed(b, lambda done: b.broker.accounts.delete_quota(None, DEFAULT, done))
        await b.crash("power")
        await b.restart()
        assert {key: each.limits for key, each in b.broker.accounts.image.quotas.items()} == {
            "=alice/-": {PRODUCED: 7.0, REQUESTS: 2.5},
            "*/=app%2F1": {PRODUCED: 7.0},
        }
        await changed(
            b, lambda done: b.broker.accounts.set_quota("alice", None, {PRODUCED: None, REQUESTS: None}, done)
        )
        await b.crash("power")
        await b.restart()
        assert list(b.broker.accounts.image.quotas) == [quota_id(DEFAULT, "app/1")]


def test_all_users_of_a_tenant_share_its_rate_beside_their_own() -> None:
    node = Node()
    acme = Tenant("acme", "Acme", quotas={"publish_bytes_rate_limit": 1000, "max_topics": 1})
    own = produced("acme~anna", None, 400)
    node.quotas.renew(AccessImage(2, quotas={own.quota_id: own}, tenants={"acme": acme, "beta": Tenant("beta", "B")}))
    anna, bob = (node.quotas.of(name, "app", "acme") for name in ("acme~anna", "acme~bob"))
    assert anna is not None
    assert bob is not None
    assert (anna.take(PRODUCED, 400), anna.take(PRODUCED, 100)) == (0, 250), "her own is used up"
    assert (bob.take(PRODUCED, 500), bob.take(PRODUCED, 100)) == (0, 100), "together they have used what there is"
    assert anna.take(PRODUCED, 0) == 250, "the longer wait counts"
    assert bob.take(CONSUMED, 10**6) == 0
    assert node.quotas.of("carl", "app", "beta") is None
    assert node.quotas.of("carl", "app") is None
    node.now_s += 1
    assert (bob.take(PRODUCED, 900), bob.take(PRODUCED, 0)) == (0, 0)


def test_a_bucket_of_a_tenant_is_made_anew_when_its_limit_changes_and_not_before() -> None:
    node = Node()

    def renew(revision: int, rate: int, topics: int) -> int:
        quotas = {"publish_bytes_rate_limit": rate, "max_topics": topics}
        node.quotas.renew(AccessImage(revision, tenants={"acme": Tenant("acme", "Acme", quotas=quotas)}))
        found = node.quotas.of("anna", "", "acme")
        assert found is not None
        return found.take(PRODUCED, 1000)

    assert renew(1, 1000, 5) == 0
    assert renew(2, 1000, 5) == 1000
    assert renew(3, 2000, 5) == 0


def test_messages_of_a_tenant_are_counted_beside_their_bytes() -> None:
    node = Node()
    acme = Tenant("acme", "Acme", quotas={"publish_rate_limit": 10, "consume_rate_limit": 5})
    node.quotas.renew(AccessImage(2, tenants={"acme": acme}))
    one, other = node.quotas.of("one", "", "acme"), node.quotas.of("other", "", "acme")
    assert one is not None
    assert other is not None
    assert (one.take_messages(PRODUCED, 10), other.take_messages(PRODUCED, 10)) == (0, 1000)
    with pytest.raises(QuotaExceeded, match="publish_rate_limit"):
        one.admit(PRODUCED)
    one.admit(CONSUMED)
    one.take_messages(CONSUMED, 6)
    assert (one.owed_ms(CONSUMED), one.owed_ms(PRODUCED), one.owed_ms(REQUESTS)) == (200, 1000, 0)
    assert node.throttled == [("publish_rate_limit", 1000), ("publish_rate_limit", 1000), ("consume_rate_limit", 200)]


def test_an_address_gets_as_many_connections_as_its_quota_says_and_those_refused_cost_nothing() -> None:
    rate = {"connection_creation_rate": 2.0}
    node = Node(Quota(None, None, rate, "10.0.0.1"), Quota(None, None, {"connection_creation_rate": 1.0}, ""))
    assert [node.quotas.connect("10.0.0.1") for _ in range(5)] == [0, 0, 0, 500, 500]
    assert [node.quotas.connect("::ffff:10.0.0.1"), node.quotas.connect("::1")] == [500, 0]  # it is the same address
    assert not node.quotas.are_set, "nothing else is limited"
    took = 0
    for _ in range(600):  # whoever tries ten times a second for a minute
        node.now_s += 0.1
        took += node.quotas.connect("10.0.0.1") == 0
    assert 118 <= took <= 122
    assert Node(produced("alice", None, 1)).quotas.connect("10.0.0.1") == 0


def test_time_is_given_in_percent() -> None:
    node = Node(Quota("alice", None, {TIME: 50.0}))
    allowance = node.quotas.of("alice", "")
    assert allowance is not None
    assert (allowance.take_time(0.5), allowance.take_time(0.25)) == (0, 500)
    node.now_s += 1
    assert allowance.take_time(0.1) == 0
    other = Node(produced("alice", None, 1)).quotas.of("alice", "")
    assert other is not None
    assert other.take_time(100) == 0

"""`Admin` against the real HTTP door, in process and in virtual time."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from goqueue.broker.gate import Gate
from goqueue.client import Admin, Backoff, ConnectionLost, HttpRefused, InvalidArgument, sync
from goqueue.doors.http.app import HttpApp
from goqueue.testing import MemoryBroker, broker
from goqueue.wire.rest.operations import delays, infrastructure, schemas, topics
from tests.unit.testing.loops import in_loop


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Admin, MemoryBroker]]:
    async with broker() as b, Admin(transport=httpx.ASGITransport(HttpApp(Gate(b.broker)))) as admin:
        yield admin, b


@in_loop
async def test_topics() -> None:
    async with served() as (admin, _):
        assert (await admin.create_topic("orders", 2, lease_ms=500)).partitions == 2
        assert await admin.topics() == ["orders"]
        assert (await admin.set_options("orders", lease_ms=None, attempts_max=7)).options == {"attempts.max": "7"}
        assert (await admin.add_partitions("orders", 3)).new_partition_count == 3
        assert (await admin.topic("orders")).partitions == 3
        await admin.delete_topic("orders")
        assert await admin.topics() == []


@in_loop
async def test_what_is_refused_says_why() -> None:
    async with served() as (admin, _):
        await admin.create_topic("orders")
        with pytest.raises(HttpRefused) as refusal:
            await admin.create_topic("orders")
        assert (refusal.value.status, refusal.value.code) == (409, "TOPIC_ALREADY_EXISTS")
        with pytest.raises(HttpRefused) as refusal:
            await admin.topic("../escape")
        assert refusal.value.status in (400, 404)


@in_loop
async def test_groups_and_lag() -> None:
    async with served() as (admin, b):
        await admin.create_topic("orders", 1)
        await b.publish_many("orders", [b"a", b"b", b"c"])
        (first, *_) = await b.receive("orders", "packers")
        await first.ack()
        assert [each.id for each in await admin.groups()] == ["packers"]
        lag = await admin.lag("packers")
        assert lag.group == "packers"
        assert await admin.lags() == [lag]
        assert await admin.set_group_options("packers", lease_ms=100) == {"lease.ms": "100"}
        await admin.delete_group("packers", force=True)
        assert await admin.groups() == []


@in_loop
async def test_dead_letters_go_back_to_work() -> None:
    async with served() as (admin, b):
        await admin.create_topic("orders", 1)
        await b.publish_many("orders", [b"%d" % number for number in range(5)])
        for message in await b.receive("orders"):
            await message.reject("no such customer")
        letters = [letter async for letter in admin.dead_letters("orders", reason="rejected")]
        assert [letter.value for letter in letters] == ["0", "1", "2", "3", "4"]
        assert (await admin.redrive("orders", filter={"contains": "3"}, dry_run=True)).redriven == 1
        assert (await admin.redrive("orders", filter={"contains": "3"})).redriven == 1
        assert [each.value for each in await b.receive("orders")] == [b"3"]
        assert await admin.purge_dead_letters("orders") == 5
        assert [letter async for letter in admin.dead_letters("orders")] == []


@in_loop
async def test_reading_again() -> None:
    async with served() as (admin, b):
        await admin.create_topic("orders", 1)
        await b.publish_many("orders", [b"a", b"b"])
        for message in await b.receive("orders"):
            await message.ack()
        assert (await admin.replay("workers", "orders", "earliest", dry_run=True)).messages == 2
        assert (await admin.replay("workers", "orders", 1, fork_as="trial")).messages == 1
        assert [each.value for each in await b.receive("orders", "trial")] == [b"b"]
        assert not (await admin.compare("workers", "trial")).is_equal
        (fork,) = await admin.forks("workers")
        assert (fork.fork, fork.only_group, fork.only_fork) == ("trial", 1, 0)
        await admin.drop_fork("workers", "trial")
        await admin.fork("workers", "second")
        await admin.promote("workers", "second")
        assert (await admin.seek("workers", "orders", "earliest")).partitions[0].after == 0
        assert [each.value for each in await b.receive("orders")] == [b"a", b"b"]


@in_loop
async def test_what_waits_for_its_time() -> None:
    async with served() as (admin, b):
        await admin.create_topic("orders", 1)
        sent = await b.publish("orders", b"later", delay="1h")
        (waiting,) = await admin.delayed("orders")
        assert waiting.deliver_at == "2026-01-01T01:00:00Z"
        await admin.reschedule("orders", sent.partition, sent.offset, delay="5m")
        await b.advance("5m")
        assert [each.value for each in await b.receive("orders")] == [b"later"]
        sent = await b.publish("orders", b"never", delay="1h")
        await admin.cancel("orders", sent.partition, sent.offset)
        assert await admin.delayed("orders") == []
        with pytest.raises(InvalidArgument):
            await admin.reschedule("orders", 0, 0)
        made = await admin.schedule("nightly", "orders", "wake up", cron="0 7 * * *", timezone="Europe/Berlin")
        assert made.next_run == "2026-01-01T06:00:00Z"
        assert [each.name for each in await admin.schedules()] == ["nightly"]
        await admin.delete_schedule("nightly")
        assert await admin.schedules() == []


@in_loop
async def test_offsets_are_told_and_reset() -> None:
    async with served() as (admin, b):
        await admin.create_topic("orders", 1)
        await b.publish_many("orders", [b"a", b"b"])
        await admin.reset_offsets("readers", "orders", "latest")
        assert await admin.offsets("readers") == {"orders": {"0": 2}}
        await admin.reset_offsets("readers", "orders", 1)
        assert await admin.offsets("readers", "orders") == {"orders": {"0": 1}}
        await admin.reset_offsets("readers", "orders", "-10m")
        assert await admin.offsets("readers", "orders") == {"orders": {"0": 0}}


class Flaky(httpx.AsyncBaseTransport):
    """Fails a number of times, then answers."""

    def __init__(self, failures: list[int | Exception]) -> None:
        self.failures = failures
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return httpx.Response(failure, json={"error": "not now", "status": failure, "code": "X"})
        return httpx.Response(200, json={"topics": ["a"]})


BRIEF = Backoff(1, 1)


@in_loop
async def test_what_is_safe_is_asked_again() -> None:
    flaky = Flaky([503, httpx.ConnectError("no"), 429])
    async with Admin(transport=flaky, backoff=BRIEF) as admin:
        assert await admin.topics() == ["a"]
    assert flaky.requests == 4


@in_loop
async def test_what_may_have_been_done_is_not_asked_again() -> None:
    flaky = Flaky([httpx.ReadError("gone")])
    async with Admin(transport=flaky, backoff=BRIEF) as admin:
        with pytest.raises(ConnectionLost):
            await admin.create_topic("orders")
    assert flaky.requests == 1


@in_loop
async def test_in_the_end_it_gives_up() -> None:
    flaky = Flaky([503] * 10)
    async with Admin(transport=flaky, backoff=BRIEF) as admin:
        with pytest.raises(HttpRefused):
            await admin.topics()
    assert flaky.requests == 5


def test_the_sync_face_has_all_calls() -> None:
    assert {name for name, _ in inspect.getmembers(Admin, callable) if not name.startswith("_")} <= set(dir(sync.Admin))


def test_an_address_is_one() -> None:
    with pytest.raises(InvalidArgument):
        Admin("ftp://example")


def test_without_async() -> None:
    async def serve(is_up: asyncio.Event, url: list[str], done: asyncio.Event) -> None:
        async with broker(clock="real", http=True) as b:
            url.append(b.http)
            is_up.set()
            await done.wait()

    async def inside() -> None:
        is_up, done, url = asyncio.Event(), asyncio.Event(), list[str]()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve(is_up, url, done))
            await is_up.wait()
            await asyncio.to_thread(use, url[0])
            done.set()

    def use(url: str) -> None:
        with sync.Admin(url) as admin:
            admin.create_topic("orders", 1)
            assert admin.topics() == ["orders"]
            assert list(admin.dead_letters("orders")) == []
            assert admin.health().status == "pass"

    asyncio.run(inside())


@in_loop
async def test_any_operation_of_the_table_can_be_called() -> None:
    async with served() as (admin, b):
        await admin.call(topics.CREATE_TOPIC, name="orders", num_partitions=1)
        await b.publish("orders", b"x", delay="1h")
        (waiting,) = (await admin.call(delays.LIST_DELAYED, topic="orders", limit=5)).messages
        place = {"topic": "orders", "partition": waiting.partition, "offset": waiting.offset}
        assert (await admin.call(delays.LOOK_AT_DELAYED, **place)).value == "x"
        assert (await admin.call(delays.CANCEL_DELAYED, **place)).cancelled
        assert "goqueue_" in await admin.call(infrastructure.METRICS), "an answer that is no JSON"


@in_loop
async def test_a_call_with_a_name_that_the_operation_does_not_take_is_not_sent() -> None:
    async with Admin(transport=httpx.MockTransport(lambda request: pytest.fail("was sent"))) as admin:
        with pytest.raises(
            InvalidArgument, match="list_delayed takes no 'limmit'; it takes limit, skip, cursor, topic"
        ):
            await admin.call(delays.LIST_DELAYED, topic="orders", limmit=5)
        with pytest.raises(InvalidArgument, match="list_delayed needs 'topic'"):
            await admin.call(delays.LIST_DELAYED, topic=None)


def test_a_name_of_the_path_is_meant_there() -> None:
    """`version` of a schema that is checked against one, and `subject` of versions that are listed."""
    assert schemas.CHECK_COMPATIBILITY_WITH.places["version"].part == "path"
    assert schemas.LIST_VERSIONS.places["subject"].part == "path"


def test_the_page_names_every_call() -> None:
    page = (Path(__file__).parents[3] / "docs" / "client.md").read_text("utf-8").partition("| about | calls |")[2]
    named = re.findall(r"`(\w+)`", page.partition("\n\n")[0])
    made = [name for name in dir(Admin) if not name.startswith("_") and name not in ("start", "close")]
    assert sorted(named) == sorted(made)

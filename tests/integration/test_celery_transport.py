"""What kombu asks of our transport, without Celery's own worker: options, threads, and consumers that are cancelled."""

import asyncio
import fcntl
import os
import resource
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from kombu import Connection, Consumer, Queue

import goqueue.integrations.celery  # noqa: F401  makes goqueue:// known
from goqueue.client import Closed, ConnectionLost, InvalidArgument, Security
from goqueue.integrations.celery import link as link_module
from goqueue.integrations.celery.link import Arrival, Link, LinkOptions, Tap
from goqueue.integrations.celery.transport import link_options
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node, wait_until

OPTIONS = LinkOptions(("127.0.0.1:9092",), "celery", None, "1h", None, "celery")
SELECT_MAX = 1024


def test_what_a_cancelled_consumer_was_about_to_get_goes_to_others(node: Node, make_topic: CreateTopic) -> None:
    """Its fetch is under way when it is cancelled, and may still bring something; the connection stays open."""
    queue = make_topic(1)
    got: list[str] = []
    taken: list[Any] = []

    def take(body: Any, message: Any) -> None:
        got.append(body)
        taken.append(message)

    with Connection(f"goqueue://{node.address}") as first, Connection(f"goqueue://{node.address}") as second:
        sender = second.Producer()
        sender.publish("one", routing_key=queue)
        consumer = Consumer(first.channel(), [Queue(queue)], callbacks=[take])
        consumer.consume()
        first.drain_events(timeout=DEADLINE_S)
        consumer.cancel()
        sender.publish("two", routing_key=queue)
        with Consumer(second.channel(), [Queue(queue)], callbacks=[take]):
            second.drain_events(timeout=DEADLINE_S)
            for message in taken:
                message.ack()
    assert got == ["one", "two"]


def test_what_waits_while_its_connection_is_lost_is_not_done_twice(node: Node, make_topic: CreateTopic) -> None:
    """As behind a long task, with Celery's solo pool."""
    queue = make_topic(1)
    got: list[tuple[str, bool]] = []

    def take(body: Any, message: Any) -> None:
        got.append((body, message.delivery_info["redelivered"]))

    with Connection(f"goqueue://{node.address}") as connection:
        channel = connection.channel()
        for each in ("one", "two"):
            connection.Producer().publish(each, routing_key=queue)
        with Consumer(channel, [Queue(queue)], callbacks=[take]):
            connection.drain_events(timeout=DEADLINE_S)
            link = connection.transport.link
            wait_until(lambda: len(link._arrivals) == 1, "the second message")
            link.run(lose_connections(channel._taps[-1]))
            for _ in range(2):
                connection.drain_events(timeout=DEADLINE_S)
    assert got[0] == ("one", False)
    assert sorted(got[1:]) == [("one", True), ("two", True)]


async def lose_connections(tap: Tap) -> None:
    for session in tap._worker._jobs._sessions.values():
        session.give_up(ConnectionLost("cut"))


class Loop:
    """Counts how often it is told that there is something to settle."""

    def __init__(self) -> None:
        self.told = 0

    def call_soon_threadsafe(self, callback: Any) -> None:
        self.told += 1


def test_two_threads_that_settle_at_once_are_both_heard() -> None:
    """As with a pool of threads: one comes between what the other adds and where it looks."""
    link, loop = Link(OPTIONS), Loop()

    class Interrupted(deque[Any]):
        def append(self, each: Any) -> None:
            super().append(each)
            if len(self) == 1:
                other = threading.Thread(target=link.settle, args=("second", None))
                other.start()
                other.join()

    link._loop = loop  # type: ignore[assignment]
    link._to_settle = Interrupted()
    link.settle("first", None)  # type: ignore[arg-type]
    assert [job for job, _ in link._to_settle] == ["first", "second"]
    assert loop.told >= 1


def test_streams_wait_for_who_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "STREAMED_MAX", 4)
    asyncio.run(fill(Link(OPTIONS)))


async def fill(link: Link) -> None:
    link._loop = asyncio.get_running_loop()
    for _ in range(4):
        await link.room()
        link.arrive(Arrival(None, "", None))
    waiting = asyncio.create_task(link.room())
    for _ in range(2):
        _, unfinished = await asyncio.wait([waiting], timeout=0)
        assert unfinished
        assert link.next() is not None
    assert link.next() is not None
    async with asyncio.timeout(DEADLINE_S):
        await waiting


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, 2 * SELECT_MAX)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_it_waits_in_a_process_with_more_files_than_select_takes(node: Node, many_files: None) -> None:
    with Connection(f"goqueue://{node.address}") as connection:
        connection.connect()
        link = connection.transport.link
        high = fcntl.fcntl(link._reader, fcntl.F_DUPFD_CLOEXEC, SELECT_MAX + 1)
        os.close(link._reader)
        link._reader = high
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=0.01)


def test_a_connection_that_was_closed_says_so(node: Node) -> None:
    connection = Connection(f"goqueue://{node.address}")
    transport = connection.connection
    connection.release()
    with pytest.raises(Closed):
        transport.drain_events(transport, timeout=0.01)
    assert transport.link.next() is None


def options(url: str = "goqueue://a:1", **given: Any) -> LinkOptions:
    return link_options(Connection(url, **given))


def test_options_that_are_understood() -> None:
    assert options("goqueue://a:1;goqueue://b:2").servers == ("a:1", "b:2")
    assert options("goqueue://a:1//").security is None
    assert options(transport_options={"security": Security(tls=True)}).security == Security(tls=True)
    assert options("goqueue://u:p@a:1", ssl=True).security == Security(user="u", password="p", tls=True)
    files = {"ca_certs": "ca", "certfile": "cert", "keyfile": "key", "cert_reqs": "required"}
    said = options(ssl=files).security
    assert said == Security(tls=True, ca_file="ca", cert_file="cert", key_file="key")


@pytest.mark.parametrize(
    ("url", "given", "problem"),
    [
        ("goqueue://a:1/shop", {}, "no virtual hosts"),
        ("goqueue://a:1", {"ssl": {"ssl_ca_certs": "ca"}}, "ssl_ca_certs; known are ca_certs"),
        ("goqueue://a:1", {"ssl": {"cert_reqs": 0}}, "always checked"),
        ("goqueue://a:1", {"ssl": True, "transport_options": {"security": Security()}}, "broker_use_ssl"),
        ("goqueue://u:p@a:1", {"transport_options": {"security": Security(tls=True)}}, "credentials in the URL"),
    ],
)
def test_options_that_would_be_ignored_are_refused(url: str, given: dict[str, Any], problem: str) -> None:
    """Whoever asks for TLS, or for a virtual host, and does not get it, would not know."""
    with pytest.raises(InvalidArgument, match=problem):
        options(url, **given)

"""Taskiq, Dramatiq and FastAPI with GoQueue behind them: their own workers and applications, in this process."""

import asyncio
import re
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import dramatiq
import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from taskiq import AckableMessage, AsyncBroker
from taskiq.api import run_receiver_task
from taskiq.receiver import Receiver

from goqueue.client import Closed, InvalidArgument
from goqueue.client.sync import Admin, Consumer, Worker
from goqueue.integrations.dramatiq import GoQueueBroker as DramatiqBroker
from goqueue.integrations.fastapi import Job, Lifespan, Producer
from goqueue.integrations.taskiq import GoQueueBroker as TaskiqBroker
from tests.integration.process import DEADLINE_S, Node, wait_until

DELAY_S = 0.5
PAGE = Path(__file__).parents[2] / "docs" / "task-queues.md"


def test_taskiq(node: Node) -> None:
    """Delays are the broker's; a task that was cut off before its end is done again."""
    asyncio.run(use_taskiq(node))


async def use_taskiq(node: Node) -> None:
    broker = TaskiqBroker(node.address, "taskiq-tests", prefetch=2)
    seen: list[tuple[str, float]] = []
    everything, is_stuck = asyncio.Event(), asyncio.Event()

    @broker.task
    async def note(name: str) -> None:
        seen.append((name, time.time()))
        if name == "stuck" and not is_stuck.is_set():
            is_stuck.set()
            await asyncio.Event().wait()
        if len(seen) == 4:
            everything.set()

    await broker.startup()
    begun_s = time.time()
    await note.kicker().with_labels(delay=DELAY_S).kiq("late")
    await note.kiq("stuck")
    await cut_off(broker, is_stuck)
    await note.kiq("soon")
    receiver = asyncio.create_task(run_receiver_task(broker))
    async with asyncio.timeout(DEADLINE_S):
        await everything.wait()
    assert sorted(name for name, _ in seen) == ["late", "soon", "stuck", "stuck"]
    assert dict(seen)["late"] >= begun_s + DELAY_S
    receiver.cancel()
    await asyncio.wait([receiver])
    await broker.shutdown()


async def cut_off(broker: AsyncBroker, is_stuck: asyncio.Event) -> None:
    """A receiver that takes a task and ends in the middle of it, with its connection."""
    receiver = asyncio.create_task(run_receiver_task(broker))
    async with asyncio.timeout(DEADLINE_S):
        await is_stuck.wait()
    receiver.cancel()
    await asyncio.wait([receiver])
    assert isinstance(broker, TaskiqBroker)
    await broker.shutdown()
    await broker.startup()


class Watched(TaskiqBroker):
    """Tells when a receiver has stopped to listen."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(*arguments)
        self.has_stopped = asyncio.Event()

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        try:
            async with aclosing(super().listen()) as messages:
                async for message in messages:
                    yield message
        finally:
            self.has_stopped.set()


def test_a_task_that_runs_while_taskiq_stops_is_done_once(node: Node) -> None:
    asyncio.run(stop_taskiq(node))


async def stop_taskiq(node: Node) -> None:
    broker = Watched(node.address, "taskiq-stops")
    seen: list[str] = []
    has_begun, may_end, is_over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @broker.task
    async def note(name: str) -> None:
        seen.append(name)
        has_begun.set()
        await may_end.wait()
        if name == "last":
            is_over.set()

    await broker.startup()
    await note.kiq("held")
    finish = asyncio.Event()
    listening = asyncio.create_task(Receiver(broker, max_async_tasks=2, run_startup=False).listen(finish))
    async with asyncio.timeout(DEADLINE_S):
        await has_begun.wait()
    finish.set()
    async with asyncio.timeout(DEADLINE_S):
        await broker.has_stopped.wait()
        may_end.set()
        await listening
    await broker.shutdown()
    await broker.startup()
    await note.kiq("last")
    receiver = asyncio.create_task(run_receiver_task(broker))
    async with asyncio.timeout(DEADLINE_S):
        await is_over.wait()
    receiver.cancel()
    await asyncio.wait([receiver])
    await broker.shutdown()
    assert seen == ["held", "last"]


def test_what_taskiq_knows_nothing_of_is_a_dead_letter(node: Node) -> None:
    """Taskiq itself would acknowledge it: a new task that an old worker takes would be gone."""
    asyncio.run(give_taskiq_strange_messages(node))
    with Admin(node.url) as admin:
        wait_until(lambda: len(list(admin.dead_letters("taskiq-strange"))) == 2, "the dead letters")


async def give_taskiq_strange_messages(node: Node) -> None:
    newer, older = TaskiqBroker(node.address, "taskiq-strange"), TaskiqBroker(node.address, "taskiq-strange")
    is_over = asyncio.Event()

    @newer.task(task_name="brand-new")
    async def brand_new() -> None: ...

    @older.task(task_name="known")
    async def known() -> None:
        is_over.set()

    await newer.startup()
    await older.startup()
    assert newer._producer is not None
    await newer._producer.send("taskiq-strange", b"{not of Taskiq")
    await brand_new.kiq()
    await known.kiq()
    receiver = asyncio.create_task(run_receiver_task(older))
    async with asyncio.timeout(DEADLINE_S):
        await is_over.wait()
    receiver.cancel()
    await asyncio.wait([receiver])
    await older.shutdown()
    await newer.shutdown()


def test_dramatiq(node: Node) -> None:
    """Results of an actor, a delay, a retry by Dramatiq itself, and a message that is given up."""
    broker = DramatiqBroker(node.address, prefix="dramatiq-tests.")
    seen: list[tuple[str, float]] = []

    @dramatiq.actor(broker=broker, max_retries=1, min_backoff=10)
    def note(name: str) -> None:
        seen.append((name, time.time()))
        if name == "bad" or (name == "again" and len([each for each, _ in seen if each == "again"]) == 1):
            raise ValueError(name)

    worker = dramatiq.Worker(broker, worker_threads=2, worker_timeout=100)
    worker.start()
    begun_s = time.time()
    note.send_with_options(args=("late",), delay=round(DELAY_S * 1000))
    for name in ("one", "again", "bad"):
        note.send(name)
    wait_until(lambda: sorted(name for name, _ in seen) == ["again", "again", "bad", "bad", "late", "one"], "all of it")
    assert dict(seen)["late"] >= begun_s + DELAY_S
    with Admin(node.url) as admin:
        wait_until(lambda: len(list(admin.dead_letters("dramatiq-tests.default"))) == 1, "the dead letter")
    worker.stop()
    broker.close()


def test_what_dramatiq_held_goes_back_as_it_was_and_a_late_word_is_no_connection_error(node: Node) -> None:
    """Dramatiq says a word again until no ConnectionClosed is raised: a thread of its worker would do that for ever."""
    broker = DramatiqBroker(node.address, prefix="dramatiq-back.")
    broker.declare_queue("q")
    broker.enqueue(dramatiq.Message("q", "note", (), {}, {}))
    for _ in range(2):
        consumer = broker.consume("q", timeout=round(DEADLINE_S * 1000))
        message: Any = next(consumer)
        assert message.job.attempt == 1
        consumer.requeue([message])
        consumer.close()
        consumer.ack(message)
        consumer.nack(message)
    broker.close()


def test_dramatiq_is_told_what_can_never_be_sent(node: Node) -> None:
    broker = DramatiqBroker(node.address, prefix="dramatiq-bad.")
    broker.declare_queue("q")
    with pytest.raises(InvalidArgument):
        broker.enqueue(dramatiq.Message("q", "note", (), {}, {"broker_priority": "soon"}))
    broker.close()


def test_fastapi(node: Node) -> None:
    """A request publishes, and a worker of the same application does the work; both end with it."""
    queue, done = Lifespan(node.address), threading.Event()
    seen: list[bytes | None] = []

    @queue.worker("fastapi-tests", group="packers")
    async def pack(job: Job) -> None:
        seen.append(job.value)
        done.set()

    app = FastAPI(lifespan=queue)

    @app.post("/orders")
    async def order(text: str, producer: Annotated[Producer, Depends(queue.producer)]) -> dict[str, Any]:
        return {"partition": (await producer.send("fastapi-tests", text.encode())).partition}

    with TestClient(app) as client:
        assert client.post("/orders", params={"text": "apples"}).status_code == 200
        assert done.wait(DEADLINE_S)
    assert seen == [b"apples"]
    with pytest.raises(Exception, match="does not run"):
        queue.producer()


def test_an_application_that_failed_has_no_producer(node: Node) -> None:
    queue = Lifespan(node.address)

    async def fail() -> None:
        async with queue(None):
            assert queue.producer() is not None
            raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        asyncio.run(fail())
    with pytest.raises(Closed, match="does not run"):
        queue.producer()


def test_the_example_of_faststream(own_node: Node) -> None:
    """As it stands on the page, and then a message that fails once, and one with a delay for a worker of ours."""
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (example,) = [each for each in examples if "faststream" in each]
    names: dict[str, Any] = {}
    exec(compile(example.replace("127.0.0.1:9092", own_node.address), str(PAGE), "exec"), names)
    with Admin(own_node.url) as admin:
        for topic in ("faststream-orders", "faststream-parcels", "faststream-fails", "faststream-delays"):
            admin.create_topic(topic, partitions=1)
    seen: list[str] = []
    begun_s = time.time()
    asyncio.run(use_faststream(names["app"], names["broker"], names["AckPolicy"], seen))
    assert seen[:3] == ["bad", "bad", "good"]
    with Consumer(own_node.address, "faststream-parcels") as consumer:
        assert next(consumer).value == b"a parcel with apples"
    with Worker(own_node.address, "faststream-delays", group="late") as worker:
        job = worker.next(round(DEADLINE_S * 1000))
        assert job is not None
        assert time.time() >= begun_s + DELAY_S
        job.ack()


async def use_faststream(app: Any, broker: Any, policy: Any, seen: list[str]) -> None:
    has_parcel, is_over = asyncio.Event(), asyncio.Event()

    async def post(parcel: str) -> None:
        has_parcel.set()

    async def fail_once(name: str) -> None:
        seen.append(name)
        if len(seen) == 1:
            raise ValueError(name)
        if name == "good":
            is_over.set()

    oldest: dict[str, Any] = {"auto_offset_reset": "earliest"}
    broker.subscriber("faststream-parcels", group_id="senders", **oldest)(post)
    broker.subscriber("faststream-fails", group_id="testers", ack_policy=policy.NACK_ON_ERROR, **oldest)(fail_once)
    await app.start()
    await broker.publish("bad", "faststream-fails")
    await broker.publish("good", "faststream-fails")
    await broker.publish("late", "faststream-delays", headers={"gq-delay-ms": str(round(DELAY_S * 1000))})
    async with asyncio.timeout(DEADLINE_S):
        await has_parcel.wait()
        await is_over.wait()
    await app.stop()

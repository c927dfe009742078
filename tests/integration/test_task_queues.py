"""Taskiq, Dramatiq and FastAPI with GoQueue behind them: their own workers and applications, in this process."""

import asyncio
import threading
import time
from typing import Annotated, Any

import dramatiq
import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from taskiq import AsyncBroker
from taskiq.api import run_receiver_task

from goqueue.client.sync import Admin
from goqueue.integrations.dramatiq import GoQueueBroker as DramatiqBroker
from goqueue.integrations.fastapi import Job, Lifespan, Producer
from goqueue.integrations.taskiq import GoQueueBroker as TaskiqBroker
from tests.integration.process import DEADLINE_S, Node, wait_until

DELAY_S = 0.5


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

"""Real Celery with GoQueue as its broker: its own worker command, killed and asked as its users do."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chain, chord, group

from goqueue.client.sync import Admin
from goqueue.integrations.celery.words import topic_name, wishes
from tests.integration.process import DEADLINE_S, Node, wait_until

ETA_TASKS = 300
DELAY_S = 8.0
EARLY_S = 0.001
"""Celery counts in microseconds, GoQueue in milliseconds."""
StartWorker = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_worker(own_node: Node, tmp_path: Path) -> Iterator[StartWorker]:
    """`celery worker` with two processes for tasks; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str, **variables: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "celery", "-A", "tests.integration.celery_app", "worker"]
        command += ["-c", "2", "-n", f"{name}@here", "-l", "INFO", *arguments]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GOQUEUE_")}
        clean |= {"TASKS_BROKER": f"goqueue://{own_node.address}", "TASKS_PLACE": str(tmp_path), **variables}
        log = tmp_path / f"worker-{name}"
        with log.open("w") as said:
            worker = subprocess.Popen(command, env=clean, stdout=said, stderr=said, start_new_session=True)
        started.append(worker)
        wait_until(lambda: " ready." in log.read_text() or worker.poll() is not None, "the start of a worker")
        assert worker.poll() is None, log.read_text()
        return worker

    yield start
    for worker in started:
        kill(worker)


def kill(worker: "subprocess.Popen[bytes]") -> None:
    """-9, and all of its processes at once."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(DEADLINE_S)


@pytest.fixture
def tasks(own_node: Node, tmp_path: Path) -> Iterator[Celery]:
    """The application, as a program that sends tasks has it."""
    from tests.integration import celery_app

    app = celery_app.app
    app.conf.update(broker_url=f"goqueue://{own_node.address}", result_backend=f"file://{tmp_path}")
    app._pool = app.__dict__.pop("amqp", None) and None
    app.__dict__.pop("backend", None)
    yield app
    app.close()


def task(app: Celery, name: str) -> Any:
    return app.tasks[f"tests.integration.celery_app.{name}"]


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_canvas_retries_remote_control_and_events(
    start_worker: StartWorker, tasks: Celery, own_node: Node, tmp_path: Path
) -> None:
    """One worker for what needs no trouble: chains, groups, chords, retries, `inspect ping`, events, purge, size."""
    start_worker("a", "-E")
    add, total = task(tasks, "add"), task(tasks, "total")
    seen: list[str] = []
    with tasks.connection_for_read() as connection:
        receiver = tasks.events.Receiver(connection, handlers={"*": lambda event: seen.append(event["type"])})
        with receiver.consumer_context(wakeup=False) as (listening, _channel, _consumers):
            assert chain(add.s(1, 2), add.s(3), add.s(4)).apply_async().get(timeout=DEADLINE_S) == 10
            assert group(add.s(n, n) for n in range(5)).apply_async().get(timeout=DEADLINE_S) == [0, 2, 4, 6, 8]
            assert chord((add.s(n, n) for n in range(5)), total.s()).apply_async().get(timeout=DEADLINE_S) == 20
            assert task(tasks, "again").delay("r").get(timeout=DEADLINE_S) == 2
            while seen.count("task-succeeded") < 3 + 5 + 6 + 1:
                listening.drain_events(timeout=DEADLINE_S)
    assert tasks.control.inspect(timeout=DEADLINE_S, limit=1).ping() == {"a@here": {"ok": "pong"}}
    active = tasks.control.inspect(["a@here"], timeout=DEADLINE_S).active_queues()
    assert [queue["name"] for queue in active["a@here"]] == ["celery"]
    add.apply_async((1, 1), queue="nobody")
    add.apply_async((1, 1), queue="nobody")
    with tasks.connection_for_write() as connection:
        assert connection.default_channel.queue_purge("nobody") == 2
        assert connection.default_channel.queue_purge("nobody") == 0
    with Admin(own_node.url) as admin:
        assert {"celery", "celery.pidbox", "celeryev", "nobody"} <= set(admin.topics())


def test_a_worker_that_is_killed_and_leases_that_are_short(
    start_worker: StartWorker, tasks: Celery, own_node: Node, tmp_path: Path
) -> None:
    """What waits for its eta waits in the broker. What a worker held that was killed has another one at once, though
    the lease lasts ten minutes: leases end with their connection. What takes longer than its lease runs once."""
    note, hold = task(tasks, "note"), task(tasks, "hold")
    due_s = time.time() + DELAY_S
    for number in range(ETA_TASKS):
        note.apply_async(("eta", str(number)), countdown=due_s - time.time())
    with Admin(own_node.url) as admin:
        assert len(list(admin.all_delayed("celery"))) == ETA_TASKS or time.time() > due_s
    first = start_worker("a", TASKS_LEASE="10m")
    hold.delay("x")
    wait_until(lambda: len(lines(tmp_path / "x-begun")) == 1, "the begin of the task")
    kill(first)
    start_worker("b", TASKS_LEASE="1s")
    wait_until(lambda: len(lines(tmp_path / "x-begun")) == 2, "the second begin of the task")
    begun_s = time.time()
    wait_until(lambda: len(lines(tmp_path / "eta")) == ETA_TASKS, "all tasks with an eta")
    wait_until(lambda: time.time() > begun_s + 3, "the end of several leases")
    (tmp_path / "x-go").touch()
    wait_until((tmp_path / "x-done").exists, "the end of the task")
    assert lines(tmp_path / "x-begun") == ["False", "True"]
    assert lines(tmp_path / "x-done") == ["done"]
    done = [line.split() for line in lines(tmp_path / "eta")]
    assert sorted(int(number) for number, _ in done) == list(range(ETA_TASKS))
    assert min(float(at_s) for _, at_s in done) >= due_s - EARLY_S


def test_urgent_tasks_overtake_and_a_restart_of_the_broker_loses_none(
    start_worker: StartWorker, tasks: Celery, own_node: Node, tmp_path: Path
) -> None:
    note = task(tasks, "note")
    for number, priority in enumerate([0, None, 9, 5, 0, 9]):
        note.apply_async(("order", str(number)), priority=priority)
    worker = start_worker("a", "-c", "1", TASKS_PREFETCH="1")
    wait_until(lambda: len(lines(tmp_path / "order")) == 6, "all tasks")
    assert [line.split()[0] for line in lines(tmp_path / "order")] == ["2", "5", "3", "0", "1", "4"]
    for number in range(50):
        note.delay("restart", str(number))
    own_node.kill()
    own_node.start()
    for number in range(50, 100):
        note.delay("restart", str(number))
    wait_until(lambda: len({line.split()[0] for line in lines(tmp_path / "restart")}) == 100, "all tasks")
    assert worker.poll() is None


@pytest.mark.parametrize(
    ("queue", "topic"),
    [("celery", "celery"), ("a.b-c_D", "a.b-c_D"), ("me@host", "me_host-"), ("", "-"), ("x" * 300, "x" * 200 + "-")],
)
def test_a_queue_of_any_name_has_a_topic(queue: str, topic: str) -> None:
    made = topic_name(queue)
    assert made == topic or (topic.endswith("-") and made.startswith(topic) and len(made) == len(topic) + 8)
    assert topic_name(queue, "p.") != made


def test_what_a_message_says_becomes_wishes() -> None:
    eta = "2030-01-01T00:00:00"
    message = {"headers": {"eta": eta}, "properties": {"priority": 9, "expiration": "1500"}}
    assert wishes(message) == {"priority": "critical", "at": 1_893_456_000_000, "ttl": 1500}
    assert wishes({"headers": {"eta": f"{eta}+01:00"}, "properties": {"priority": 0}}) == {
        "priority": "background",
        "at": 1_893_452_400_000,
    }
    assert wishes({"headers": {}, "properties": {}}) == {}

"""An application of Celery, as workers of the tests run it. What its tasks did is told by files and results."""

import os
import time
from pathlib import Path
from threading import Event
from typing import Any

from celery import Celery

import goqueue.integrations.celery  # noqa: F401  makes goqueue:// known

PLACE = Path(os.environ.get("TASKS_PLACE", "."))
PAUSE_S = 0.02

app = Celery(
    "tests",
    broker=os.environ.get("TASKS_BROKER", "goqueue://127.0.0.1:9092"),
    backend=f"file://{PLACE.absolute()}",
)
app.conf.broker_transport_options = {"lease": os.environ.get("TASKS_LEASE", "30s")}
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_prefetch_multiplier = int(os.environ.get("TASKS_PREFETCH", "4"))
app.conf.result_chord_retry_interval = 0.1


@app.task
def add(left: int, right: int) -> int:
    return left + right


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def note(name: str, line: str) -> None:
    """One line, in one write: many may write to the same file."""
    with (PLACE / name).open("a") as file:
        file.write(f"{line} {time.time()}\n")


@app.task(bind=True, acks_late=True)
def hold(self: Any, name: str) -> None:
    """Tells that it has begun, and ends when somebody allows it."""
    with (PLACE / f"{name}-begun").open("a") as file:
        file.write(f"{self.request.delivery_info['redelivered']}\n")
    while not (PLACE / f"{name}-go").exists():
        Event().wait(PAUSE_S)
    with (PLACE / f"{name}-done").open("a") as file:
        file.write("done\n")


@app.task(bind=True, max_retries=3)
def again(self: Any, name: str) -> int:
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return int(self.request.retries)

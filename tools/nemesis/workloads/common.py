"""What all workloads share: where nodes are, when to stop, and an HTTP call that tells "surely not done" from "may be".

A workload asks until `is_ending`, then workers go on until nothing is left, and then it reads everything once more.
"""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import httpx

from tools.nemesis.history import Asking, Book

ANSWER_S_MAX = 10.0
DRAIN_S_MAX = 90.0
REFUSED_FROM, BROKEN_FROM = 400, 500


@dataclass
class Run:
    """One run of all workloads."""

    book: Book
    kafka: tuple[str, ...]
    http: tuple[str, ...]
    grpc: tuple[str, ...]
    seed: int = 0
    is_ending: threading.Event = field(default_factory=threading.Event)
    """Nothing new is asked for any more; what is there is finished."""
    notes: list[str] = field(default_factory=list)
    """What clients were told that no operation of the history has."""
    given_up: list[str] = field(default_factory=list)
    """Clients that did not return from a call, for who looks for the reason."""
    problems: list[str] = field(default_factory=list)
    """Workloads that could not do their part: a run with one proves nothing."""

    @property
    def bootstrap(self) -> str:
        return ",".join(self.kafka)

    def dice(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")  # noqa: S311  no secrets here


class Workload(Protocol):
    name: str

    def prepare(self, run: Run) -> None:
        """Make topics and queues."""

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        """What is done at once, by the names of processes in the history."""

    def finish(self, run: Run) -> None:
        """When all is healed and all threads are over: the last reading."""


class NotDone(Exception):
    """Surely not: it was refused, or never sent."""


class Unanswered(Exception):
    """It may have been done."""


class Http:
    """To one node; to the next one when that does not answer."""

    def __init__(self, run: Run, first: int = 0) -> None:
        self._urls = itertools.cycle(run.http[first % len(run.http) :] + run.http[: first % len(run.http)])
        self._client = self._next()

    def _next(self) -> httpx.Client:
        return httpx.Client(base_url=next(self._urls) + "/v1", timeout=ANSWER_S_MAX, trust_env=False)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        try:
            answer = self._client.request(method, path, json=body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._turn()
            raise NotDone(str(error)) from error
        except httpx.HTTPError as error:
            self._turn()
            raise Unanswered(repr(error)) from error
        if answer.status_code >= BROKEN_FROM:
            self._turn()
            raise Unanswered(f"{answer.status_code} {answer.text[:150]}")
        if answer.status_code >= REFUSED_FROM:
            raise NotDone(f"{answer.status_code} {answer.text[:150]}")
        return answer.json() if answer.content else None

    def _turn(self) -> None:
        self._client.close()
        self._client = self._next()

    def asked(self, asking: Asking, method: str, path: str, body: Any = None) -> Any:
        """None: it was not done, or nobody knows; the history has it."""
        try:
            return self.ask(method, path, body)
        except NotDone as error:
            asking.fail(error)
        except Unanswered as error:
            asking.unknown(error)
        return None


def make_topic(run: Run, name: str, partitions: int, **options: str | int) -> None:
    """Tried again for a while: a cluster that has just begun may not have all its nodes yet."""
    http = Http(run)
    body = {"name": name, "num_partitions": partitions}
    chosen = {option.replace("_", "."): str(value) for option, value in options.items()}
    give_up = time.monotonic() + DRAIN_S_MAX
    pause = threading.Event()
    while True:
        try:
            http.ask("POST", "/topics", body | {"options": chosen})
        except (NotDone, Unanswered) as error:
            if "TOPIC_ALREADY_EXISTS" in str(error):
                return
            if time.monotonic() > give_up:
                raise
            pause.wait(0.5)
        else:
            return

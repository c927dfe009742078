"""Queues over HTTP: a publisher, and workers that mostly acknowledge, sometimes give back, sometimes forget."""

import threading
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from tools.nemesis.workloads.common import DRAIN_S_MAX, Http, NotDone, Run, Unanswered, make_topic

PER_S = 10
LEASE_S = 6
WORKERS = 2
QUIET_S = 2 * LEASE_S + 5
"""Nothing came for so long: all leases are over, and nothing is left."""
HTTP_DOOR, SQS_DOOR = "http", "sqs"


class HttpQueue:
    """A group that reads a topic as a queue."""

    name = "queue"
    door = HTTP_DOOR
    queue = "nemesis-queue"
    done = "ack"
    """How a message is settled for good."""
    may_forget = True

    def prepare(self, run: Run) -> None:
        make_topic(run, self.queue, 3, attempts_max=0)

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        found: dict[str, Callable[[], None]] = {
            f"{self.door}-publisher": partial(self._publish, run, f"{self.door}-publisher")
        }
        for number in range(WORKERS):
            name = f"{self.door}-worker-{number}"
            found[name] = partial(self._work, run, name, number)
        return found

    def finish(self, run: Run) -> None:
        """Workers have found nothing more."""

    def _publish(self, run: Run, name: str) -> None:
        client = self._client(run, 0)
        for number in range(1_000_000):
            if run.is_ending.wait(1 / PER_S):
                return
            asking = run.book.begin(name, "publish", queue=self.queue, id=f"{number}", door=self.door)
            try:
                self._send(client, f"{number}")
            except NotDone as error:
                asking.fail(error)
            except Unanswered as error:
                asking.unknown(error)
            else:
                asking.ok()

    def _work(self, run: Run, name: str, number: int) -> None:
        client, dice = self._client(run, number), run.dice(name)
        last_s = time.monotonic()
        ends_s: float | None = None
        pause = threading.Event()
        while True:
            if run.is_ending.is_set():
                ends_s = ends_s or time.monotonic() + DRAIN_S_MAX
                if time.monotonic() - last_s > QUIET_S:
                    return
                if time.monotonic() > ends_s:
                    run.problems.append(f"{name} did not come to an end of {self.queue}")
                    return
            asking = run.book.begin(name, "receive", queue=self.queue, door=self.door)
            try:
                messages = self._receive(client)
            except NotDone as error:
                asking.fail(error)
                pause.wait(0.2)
                continue
            except Unanswered as error:
                asking.unknown(error)
                last_s = time.monotonic()  # it may have leased something
                pause.wait(0.2)
                continue
            asking.ok(messages=[{"id": one[0], "receipt": one[1], "lease_ms": LEASE_S * 1000} for one in messages])
            for message_id, receipt in messages:
                last_s = time.monotonic()
                self._settle_one(run, client, name, message_id, receipt, dice)

    def _settle_one(self, run: Run, client: Any, name: str, message_id: str, receipt: str, dice: Random) -> None:
        how = self.choose(run, dice)
        if how is None:
            return
        asking = run.book.begin(
            name, "settle", queue=self.queue, id=message_id, receipt=receipt, how=how, door=self.door
        )
        try:
            self._settle(client, receipt, how)
        except NotDone as error:
            asking.fail(error)
        except Unanswered as error:
            asking.unknown(error)
        else:
            asking.ok()

    def choose(self, run: Run, dice: Random) -> str | None:
        """How a message is settled. None: it is forgotten, and comes again when its lease is over."""
        chance = 1.0 if run.is_ending.is_set() else dice.random()
        if chance < 0.04 and self.may_forget:
            return None
        return "nack" if chance < 0.1 else self.done

    # -- the door

    def _client(self, run: Run, first: int) -> Any:
        return Http(run, first)

    def _send(self, client: Http, message_id: str) -> None:
        told = client.ask("POST", f"/topics/{self.queue}/messages", {"messages": [{"value": message_id}]})
        error = told["results"][0].get("error")
        if error:
            raise Unanswered(error)

    def _receive(self, client: Http) -> list[tuple[str, str]]:
        body = {"group": "nemesis", "max_messages": 5, "wait": "500ms", "lease": f"{LEASE_S}s"}
        told = client.ask("POST", f"/topics/{self.queue}/receive", body)
        return [(each["value"], each["receipt_handle"]) for each in told["messages"]]

    def _settle(self, client: Http, receipt: str, how: str) -> None:
        body = {"receipt_handle": receipt} | ({"delay": "200ms"} if how == "nack" else {})
        client.ask("POST", f"/messages/{how}", body)

"""Messages for later, some of them cancelled, and a reader that sees when they come."""

import time
from collections.abc import Callable
from functools import partial

from tools.nemesis.workloads import kafka
from tools.nemesis.workloads.common import Http, Run, make_topic

PER_S = 5
DELAY_S_MAX = 20.0
DOOR = "http"


class Delays:
    name = "delays"

    def __init__(self, topic: str = "nemesis-delays", partitions: int = 2) -> None:
        self._topic, self._partitions = topic, partitions
        self._last_due = 0.0

    def prepare(self, run: Run) -> None:
        make_topic(run, self._topic, self._partitions)

    def threads(self, run: Run) -> dict[str, Callable[[], None]]:
        return {"delayer": partial(self._delay, run), "delay-reader": partial(self._watch, run)}

    def _delay(self, run: Run) -> None:
        http, dice = Http(run), run.dice("delayer")
        for number in range(1_000_000):
            if run.is_ending.wait(1 / PER_S):
                return
            due_ms = int((time.time() + dice.uniform(0.5, DELAY_S_MAX)) * 1000)
            self._last_due = max(self._last_due, due_ms / 1000)
            asked = {"topic": self._topic, "id": f"{number}"}
            asking = run.book.begin("delayer", "delay", **asked, due=due_ms / 1000, door=DOOR)
            message = {"value": f"{number}", "deliver_at": due_ms, "partition": number % self._partitions}
            told = http.asked(asking, "POST", f"/topics/{self._topic}/messages", {"messages": [message]})
            if told is None:
                continue
            place = told["results"][0]
            if place.get("error"):
                asking.unknown(place["error"])
                continue
            asking.ok()
            if dice.random() < 0.1:
                asking = run.book.begin("delayer", "cancel", **asked, door=DOOR)
                path = f"/topics/{self._topic}/delayed/{place['partition']}/{place['offset']}"
                told = http.asked(asking, "DELETE", path)
                if told is not None:
                    asking.ok()

    def _watch(self, run: Run) -> None:
        """Until the last one is due."""
        consumer = kafka.reader(run, self._topic, [0] * self._partitions)
        while not run.is_ending.is_set() or time.time() < self._last_due + 5:
            records, _ = kafka.portion(consumer, 0.1)
            self._note(run, records, "delay-reader")
        consumer.close()

    def _note(self, run: Run, records: kafka.Records, process: str) -> None:
        for number, several in records.items():
            for offset, value in several:
                answer = {"topic": self._topic, "id": value, "at": time.time(), "place": f"{number}/{offset}"}
                run.book.begin(process, "arrived", door="kafka").ok(**answer)

    def finish(self, run: Run) -> None:
        for number, records in kafka.read_all(run, self._topic, self._partitions):
            self._note(run, {number: records}, "delay-end")

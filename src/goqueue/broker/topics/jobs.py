"""Topics whose partitions are being made or removed. Each step is done aside, so that nobody else waits for the disk,
and topics take turns: three partitions do not wait for another topic's thousand.
"""

from collections import deque
from collections.abc import Callable, Generator

from goqueue.runtime.aside import Aside, Work, at_once
from goqueue.telemetry.logs import get_logger

events = get_logger("broker")

ATTEMPTS_MAX = 3
"""How often a topic's job may raise, which is a fault of ours, before it is left alone until the next start."""

Steps = Generator[Work, BaseException | None, None]
"""Runs in the owner's thread; what it yields is done aside, and it is sent what that raised."""


class TopicJobs:
    """Invariant: one job for a topic, and one step at a time."""

    def __init__(self, on_end: Callable[[str], None]) -> None:
        self.aside: Aside = at_once
        self._on_end = on_end
        self._waiting: deque[tuple[str, Steps, BaseException | None]] = deque()
        self._names: set[str] = set()
        self._faults: dict[str, int] = {}
        self._has_step = False
        self._is_going = False
        self._is_stopped = False

    def stop(self) -> None:
        """What is under way is the last of it: a job goes on with the next start of the node."""
        self._is_stopped = True

    def __contains__(self, topic: str) -> bool:
        return topic in self._names

    @property
    def names(self) -> set[str]:
        """Topics that something is done for."""
        return set(self._names)

    @property
    def given_up(self) -> list[str]:
        """Topics that nothing is done for any more."""
        return [topic for topic, faults in self._faults.items() if faults >= ATTEMPTS_MAX]

    def begin(self, topic: str, steps: Steps) -> None:
        """`on_end` is called with the topic when it is over, perhaps at once. Nothing happens for one given up."""
        if self._faults.get(topic, 0) >= ATTEMPTS_MAX:
            return
        self._names.add(topic)
        self._waiting.append((topic, steps, None))
        self._go_on()

    def _go_on(self) -> None:
        """A loop and not a chain of calls, since a step may be done before its call returns."""
        if self._is_going:
            return
        self._is_going = True
        try:
            while self._waiting and not self._has_step:
                self._step(*self._waiting.popleft())
        finally:
            self._is_going = False

    def _step(self, topic: str, steps: Steps, error: BaseException | None) -> None:
        try:
            work = steps.send(error)
        except StopIteration:
            self._names.discard(topic)
            self._on_end(topic)
            return
        except Exception as fault:  # noqa: BLE001  one topic's trouble must not end the jobs of the others
            self._names.discard(topic)
            self._faults[topic] = self._faults.get(topic, 0) + 1
            events.error("topic job failed", topic=topic, attempt=self._faults[topic], exc_info=fault)
            self._on_end(topic)
            return
        if self._is_stopped:
            steps.close()
            return
        self._has_step = True

        def done(error: BaseException | None) -> None:
            self._has_step = False
            self._waiting.append((topic, steps, error))
            self._go_on()

        self.aside(work, done)

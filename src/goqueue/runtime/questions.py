"""What may be asked of a coordinator: its life, and the state of its machine while it has one. Whoever is told of the
state is told what a loss of power cannot take back.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from goqueue.machines.machine import Fact, Machine
from goqueue.model.errors import CoordinatorLoading, GoQueueError, NotCoordinator, NotTaken
from goqueue.runtime.clock import Clock, Timer
from goqueue.runtime.ledger import Ledger
from goqueue.runtime.life import Life

M = TypeVar("M", bound=Machine)
T = TypeVar("T")
_ACTIVE = Life.ACTIVE  # looking up enum members costs


class Questions(Generic[M]):
    def __init__(self, name: str, ledger: Ledger, clock: Clock) -> None:
        self.name = name
        self._machine: M | None = None
        self._ledger = ledger
        self._clock = clock
        self._life = Life.UNLOADED
        self.loads = 0
        """How often it became active: each time with a machine of its own."""
        self._failure: GoQueueError | None = None
        self._retry: Timer | None = None
        """Of a load that waits, or of the commands that wait for one."""

    @property
    def has_given_up(self) -> bool:
        """It is out of service until the node is restarted."""
        return self._life is Life.FAILED and self._retry is None

    def _stop_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        self._retry = None

    @property
    def life(self) -> Life:
        return self._life

    @property
    def is_active(self) -> bool:
        return self._life is _ACTIVE

    def refusal(self) -> GoQueueError:
        """Why it decides nothing now."""
        if self._failure is not None:
            return self._failure
        if self._life is Life.LOADING:
            return CoordinatorLoading(f"{self.name} is being loaded: ask again")
        return NotCoordinator(f"{self.name} is not in service on this node")

    def not_taken(self) -> GoQueueError:
        """The same, to who asked for something that nobody has begun to decide."""
        error = self.refusal()
        return NotTaken(str(error)) if isinstance(error, NotCoordinator) else error

    def stale(self) -> NotCoordinator:
        """What is said instead of an answer that no committed write stands for, while another node may lead."""
        return NotCoordinator(f"this node was cut off: another one may have {self.name} by now")

    @property
    def failure(self) -> GoQueueError | None:
        """Why it is out of service, if so. One that is being loaded, or is not wanted here, is not."""
        if self._life is Life.FAILED:
            return self._failure
        return self._ledger.failure if self._life is _ACTIVE else None

    @property
    def skipped_facts(self) -> int:
        """How much of its ledger could not be read or applied when it was loaded."""
        return self._ledger.unread.count

    @property
    def skipped_facts_total(self) -> int:
        """The same of all its loads."""
        return self._ledger.unread.total

    def peek(self) -> M:
        """The machine as it is now, for questions; it must not be kept. For what is told to nobody, or together with
        `confirm`: its state is ahead of the disk. The refusal: it is not active.
        """
        return self._machine if self._machine is not None else self._refuse()

    def _refuse(self) -> M:
        raise self.refusal()

    def ask(self, question: Callable[[M], T], on_answer: Callable[[T | GoQueueError], None]) -> None:
        """The answer to a question about the state, given when all that it may rest on is durable."""
        if self._machine is None:
            on_answer(self.refusal())
            return
        answer = question(self._machine)
        self.confirm(lambda error: on_answer(answer if error is None else error))

    def now_ms(self) -> int:
        """As its machine is told: to be compared with what that says."""
        return self._clock.now_ms()

    def read_fact(self, ledger_offset: int) -> Fact | None:
        """What the machine was told lies there."""
        return self._ledger.read_fact(ledger_offset)

    def read_facts(self, ledger_offsets: Iterable[int]) -> dict[int, Fact]:
        """Many at once; what is gone or damaged is left out."""
        return self._ledger.read_facts(ledger_offsets)

    def make_durable(self) -> None:
        """All that was decided so far, here and now: for a start, before anybody is served."""
        self._ledger.make_durable()

    def when_durable(self, call: Callable[[], None]) -> None:
        """Call once all that was decided so far is durable; never, if it will not be, or if the coordinator was loaded
        anew by then: that asks what is due."""
        loads = self.loads
        self._ledger.when_durable(lambda: call() if self._ledger.failure is None and self._is_still(loads) else None)

    def _is_still(self, loads: int) -> bool:
        """It has the machine that it had after so many loads. Who waits does not hold the machine itself: it may go and
        be freed meanwhile."""
        return self._machine is not None and self.loads == loads

    @property
    def is_durable(self) -> bool:
        """Whether its state is what a restart would find; if not, `confirm` tells when it is."""
        return self._life is _ACTIVE and self._ledger.is_durable

    def confirm(self, on_confirmed: Callable[[GoQueueError | None], None]) -> None:
        """Call once all that was decided so far is durable; with an error, if it will not be, or if there is no state
        any more. For whoever has read the state and is about to tell of it.
        """
        if self._machine is None:
            on_confirmed(self.refusal())
            return
        loads = self.loads

        def reached() -> None:
            failure = self._ledger.failure
            if failure is None and not self._is_still(loads):
                failure = (
                    self.refusal() if self._machine is None else CoordinatorLoading(f"{self.name} was loaded anew")
                )
            elif failure is None and self._ledger.is_stale:
                failure = self.stale()
            on_confirmed(failure)

        self._ledger.when_durable(reached)

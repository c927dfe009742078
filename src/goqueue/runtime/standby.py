"""A follower's machine: it is told what is committed in the ledger as that comes, so that whoever begins to lead has to
read no more than the rest of the log, and not a snapshot and all that came after it.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from goqueue.machines.machine import Machine, clear_gathered
from goqueue.model.errors import GoQueueError
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock
from goqueue.runtime.freeing import Freeing
from goqueue.runtime.ledger import Ledger, Reading
from goqueue.runtime.slices import Slices
from goqueue.telemetry.logs import get_logger

RETRY_MS = 1000
"""A log that could not be read is tried again, after a pause."""

BEHIND_FACTS = 10_000
"""A standby that lacks more than this is behind: to lead, it would have to apply them first, about 60 ms of CPU."""

events = get_logger("runtime")


class StandbyCounts(NamedTuple):
    """Of the standbys of a node, in figures: there is one for each ledger that it follows."""

    standbys: int = 0
    behind: int = 0
    """Those that are still being built, or lack many facts."""
    lag_max: int = 0
    """How many facts the one lacks that lacks most."""


M = TypeVar("M", bound=Machine)
_DONE = object()


class Standby(Generic[M]):
    """Invariant: its machine knows nothing that is not committed, and nothing that its log has lost.
    Invariant: one slice of work per turn of the loop, of all standbys of the node together.
    """

    def __init__(
        self,
        name: str,
        make_machine: Callable[[], M],
        replica: Replica,
        ledger: Ledger,
        clock: Clock,
        freeing: Freeing | None = None,
        slices: Slices | None = None,
    ) -> None:
        self.name = name
        self.ledger = ledger
        self._make_machine = make_machine
        self._replica = replica
        self._clock = clock
        self._freeing = freeing or Freeing(clock.call_soon)
        self._slices = slices or Slices(clock.call_soon)
        self._machine = make_machine()
        self._reading = Reading(replica.high_watermark)
        self._work: Iterator[None] | None = None
        """Slices that are under way."""
        self._is_built = False
        self._is_over = False
        self._builds = 0
        """Whatever belongs to an earlier one is nobody's any more."""
        replica.watch(self, self._look)
        replica.on_cut[self] = self._cut
        self._build()

    @property
    def lag(self) -> int:
        """How many offsets are committed and not applied yet."""
        return max(0, self._replica.high_watermark - self._reading.position) if self._is_built else self._held

    @property
    def _held(self) -> int:
        return max(0, self._replica.high_watermark - self._replica.start_offset)

    @property
    def is_behind(self) -> bool:
        """It could not lead at once."""
        return not self._is_built or self.lag > BEHIND_FACTS

    @property
    def is_built(self) -> bool:
        """It has read its snapshot and follows the log."""
        return self._is_built

    def peek(self) -> M | None:
        """For questions that committed facts alone answer; None: it is still being built. It must not be kept."""
        return self._machine if self._is_built else None

    def stop(self) -> None:
        """Nobody follows any more. Stopping twice is fine."""
        if not self._is_over:
            self._freeing.free(self._machine)  # but if it was taken
        self._is_over = True
        self._work = None
        self._builds += 1
        self._replica.unwatch(self)
        self._replica.on_cut.pop(self, None)
        self.ledger.abandon_snapshot()

    def take(self) -> tuple[M, Reading] | None:
        """This node leads now: its machine, and how far that was told; the standby is over. None: it was not built yet,
        so that a load is as quick."""
        machine, reading, work, is_built = self._machine, self._reading, self._work, self._is_built
        if work is not None and is_built:
            with suppress(GoQueueError):  # a batch of which a part was applied is applied to its end; there are few
                reading.until = reading.position
                for _ in work:
                    pass
        self.stop()
        return (machine, reading) if is_built else None

    # -- from the beginning

    def _build(self) -> None:
        self._builds += 1
        self._freeing.free(self._machine)
        self._machine, self._is_built, self._work = self._make_machine(), False, None
        self._reading = Reading(self._replica.high_watermark)
        build = self._builds

        def ready(slices: Iterator[None]) -> None:
            if build == self._builds and not self._is_over:
                self._work = slices
                self._slices.later(lambda: self._turn(build))

        self.ledger.abandon_snapshot()
        self.ledger.replay_in_slices(self._machine, self._clock.now_ms(), ready, self._reading)

    def _cut(self, offset: int) -> None:
        """The log has lost all from there on."""
        if self._reading.position > offset or not self._is_built:
            events.info("standby built anew", standby=self.name, lost_from=offset, known_to=self._reading.position)
            self._build()
        else:
            self._reading.until = min(self._reading.until, offset)

    # -- what is committed

    def _look(self) -> None:
        """The high watermark may have risen."""
        if self._work is None and self._is_built and self._replica.high_watermark > self._reading.until:
            self._reading.until = self._replica.high_watermark
            self._work = self.ledger.read_on(self._machine, self._reading)
            build = self._builds
            self._slices.later(lambda: self._turn(build))

    def _turn(self, build: int) -> None:
        if self._is_over or build != self._builds or self._work is None:
            return
        try:
            is_done = next(self._work, _DONE) is _DONE
        except GoQueueError as error:
            events.error("standby does not follow", standby=self.name, reason=str(error))
            self._clock.call_after(RETRY_MS, lambda: self._again(build))
            return
        clear_gathered(self._machine)
        if not is_done:
            self._slices.later(lambda: self._turn(build))
            return
        assert self._reading.position <= self._replica.high_watermark, (self.name, self._reading.position)
        self._work, self._is_built = None, True
        self.ledger.maybe_snapshot(self._machine, self._clock.now_ms(), self._reading.position)
        self._look()

    def _again(self, build: int) -> None:
        if build == self._builds and not self._is_over:
            self._build()

"""What became of messages since this node started, in numbers: acknowledged, tried again, given up."""

from collections.abc import Generator
from typing import NamedTuple

from goqueue.broker.dead_letters.writing import DeadLetterWriter
from goqueue.broker.queues.queues import Queues

PER_TURN = 100
"""Places of groups."""


class Reliability(NamedTuple):
    leased: int
    acked: int
    nacked: int
    rejected: int
    lapsed: int
    """Leases that ended unsettled."""
    retried: int
    extended: int
    died: int
    in_flight: int
    """Leased now."""
    waiting: int
    """For their next delivery, now."""
    dead_letters: int
    """Written, as all below."""
    dead_by_reason: dict[str, int]
    dead_by_topic: dict[str, int]
    create_errors: int
    publish_errors: int


class Reliabilities:
    def __init__(self, queues: Queues, writer: DeadLetterWriter) -> None:
        self._queues = queues
        self._writer = writer

    def summing(self) -> Generator[None, None, Reliability]:
        """Some places of groups at a time, so that others have their turns in between."""
        in_flight = waiting = 0
        for number, (_, measure) in enumerate(self._queues.measured(), 1):
            in_flight += sum(measure.leased)
            waiting += measure.waiting
            if number % PER_TURN == 0:
                yield
        tally, writer = self._queues.tally(), self._writer
        return Reliability(
            leased=tally.leased,
            acked=tally.acked,
            nacked=tally.nacked,
            rejected=tally.rejected,
            lapsed=tally.lapsed,
            retried=tally.retried,
            extended=tally.extended,
            died=tally.died,
            in_flight=in_flight,
            waiting=waiting,
            dead_letters=writer.written,
            dead_by_reason=dict(writer.written_by_reason),
            dead_by_topic=dict(writer.written_by_topic),
            create_errors=writer.create_errors,
            publish_errors=writer.publish_errors,
        )

"""What the delay machine of a partition can be told and what it answers.

A schedule is a record that waits for its time. Its identity is the place that was kept free for it in its partition
when it was published: topic, partition, offset. When it is due it is published to the same partition, at its end.
Bodies lie in the ledger; the machine keeps only where.
"""

from typing import NamedTuple

import msgspec

from goqueue.machines.machine import Command
from goqueue.model.codes import Code

NO_PRODUCER = -1
NO_EPOCH = -1
NO_SEQUENCE = -1
RECURRING = -1
"""No place was kept free for a run of a recurring schedule."""


class ScheduleKey(NamedTuple):
    topic: str
    partition: int
    offset: int


class NewSchedule(NamedTuple):
    offset: int
    due_ms: int
    body: bytes
    """The record, as the broker will read it back; opaque here."""
    is_delay: bool = False
    """It waits for so long, and not for a time: it goes on to do so if the clock is set back."""


class Schedule(Command["ScheduleReply"], frozen=True):
    """Keep these records until they are due. Repeating it is harmless: what was scheduled once is not again, even
    after it fired or was cancelled (offsets of one partition come in rising order).
    """

    schedules: tuple[NewSchedule, ...]
    producer_id: int = NO_PRODUCER
    """Given: part of this producer's transaction; they wait for its end before they wait for their time."""
    producer_epoch: int = -1
    epoch: int = NO_EPOCH
    """Of the leader that wrote the batch: two batches may have had the same offsets, if the first was lost."""


class FollowHost(Command[bool], frozen=True):
    """What a start finds in the log of a partition, which may have lost its end while the ledger kept what it says of
    it, or the other way round. Replies with True if it has to be asked again: there was too much to be done at once.
    """

    end_offset: int
    """Where the epoch of the highest known place ends in the log: what was known there and beyond is lost."""
    epoch: int
    """Of the leader that goes on from here."""
    next_sequence: int = NO_SEQUENCE
    """Which our own producer must go on with there; NO_SEQUENCE: it may begin with any."""
    unkept: tuple[int, ...] = ()
    """Free places in batches that may be sent again; those above the highest known place count."""
    repeated_from: int = 0
    """No batch below this offset will be sent again."""


class ScheduleReply(msgspec.Struct, frozen=True):
    code: Code
    message: str = ""


class CancelSchedule(Command["ScheduleReply"], frozen=True):
    """INVALID_REQUEST if there is none: fired, cancelled or never there. NONE: never fires. A schedule that is being
    fired cannot be cancelled any more.
    """

    offset: int


class Reschedule(Command["ScheduleReply"], frozen=True):
    """`body` as it was stored (the broker reads it back: the ledger keeps one record per schedule, the newest)."""

    offset: int
    due_ms: int
    body: bytes


class EndTransactionSchedules(Command["ScheduleReply"], frozen=True):
    """The transaction ended: what it scheduled here starts to wait for its time, or is dropped."""

    producer_id: int
    producer_epoch: int
    is_commit: bool


class TakeProducer(Command["ScheduleReply"], frozen=True):
    """The producer id under which due records are published, so that a repeated publish is known as such."""

    producer_id: int
    producer_epoch: int


class FiringDone(Command["ScheduleReply"], frozen=True):
    """The batch of this job is durable in its partition (or its topic is gone)."""

    number: int


class FoundSchedule(NamedTuple):
    key: ScheduleKey
    due_ms: int
    ledger_offset: int
    body_bytes: int
    waits_for_transaction: bool


class StoreRecurring(Command["RecurringReply"], frozen=True):
    """Publish `body` whenever `cron` says so in `timezone`. Replaces one of the same name. Its runs are firing jobs
    like any other, with RECURRING as the offset of their key and the body where this fact lies.
    """

    name: str
    cron: str
    timezone: str
    body: bytes
    is_held: bool = False
    """It does not run before ReleaseRecurring: nobody knows yet that it lives here."""
    owner: str = ""
    owner_host: str = ""


class HoldRecurring(Command["RecurringReply"], frozen=True):
    """It does not run before ReleaseRecurring: the metadata does not say that it lives here, or whoever has stored it
    may not write to its topic any more."""

    name: str


class ReleaseRecurring(Command["RecurringReply"], frozen=True):
    name: str


class PauseRecurring(Command["RecurringReply"], frozen=True):
    """It does not run any more until somebody says that it shall."""

    name: str
    is_paused: bool = True


class DropRecurring(Command["RecurringReply"], frozen=True):
    name: str


class RecurringReply(msgspec.Struct, frozen=True):
    code: Code
    message: str = ""
    next_ms: int = -1


class FoundRecurring(NamedTuple):
    name: str
    topic: str
    cron: str
    timezone: str
    next_ms: int
    last_ms: int
    """-1: never fired yet."""
    partition: int
    ledger_offset: int
    """Where its body lies."""
    owner: str = ""
    owner_host: str = ""
    is_paused: bool = False


class DelayMeasure(NamedTuple):
    pending: int
    waiting_for_transaction: int
    firing: int
    fired: int
    """Since the start."""
    cancelled: int
    next_due_ms: int
    """-1: nothing pending."""
    by_level: tuple[int, ...]
    """Pending by wheel level, the last one for what lies beyond the wheel."""

"""Appending what another log holds: with its offsets, its epochs and its gaps, so that the two are the same bytes."""

from collections.abc import Sequence
from typing import Protocol

from goqueue.model.errors import CorruptBatch, DiskFull, StaleEpoch
from goqueue.records.batch import LENGTH_END, NO_EPOCH, Batch
from goqueue.records.walk import Expected
from goqueue.storage.disk import Disk
from goqueue.storage.options import MIB
from goqueue.storage.segments import SegmentList
from goqueue.storage.state import LogState

STATE_ROOM_BYTES = MIB
"""A state takes a block, and logs may save theirs at the same time."""


class Copied(Protocol):
    """What this needs of its log."""

    disk: Disk
    state: LogState
    segments: SegmentList
    end_offset: int

    def save_state(self) -> None: ...


def check_order(log: Copied, batches: Sequence[Batch]) -> int:
    """How many bytes they are. CorruptBatch or StaleEpoch: the log takes none of them."""
    offset, epoch, size = log.end_offset, log.state.epochs.at(log.end_offset - 1), 0
    for batch in batches:
        first = batch.base_offset
        if first != offset and (first < offset or first > log.state.gaps_to):
            raise CorruptBatch(f"the batch has offset {first}, but {offset} is next")
        if batch.leader_epoch < epoch:
            raise StaleEpoch(f"the batch at {offset} is of epoch {batch.leader_epoch}, but one of {epoch} came before")
        offset, epoch = first + batch.last_offset_delta + 1, batch.leader_epoch
        size += batch.length
    return size + len(batches) * LENGTH_END


def begin_epochs(log: Copied, batches: Sequence[Batch]) -> None:
    """An epoch that began here and wrote nothing is forgotten: the leader may send what an earlier one wrote."""
    epochs = log.state.epochs
    if batches[-1].leader_epoch == epochs.latest == epochs.at(log.end_offset - 1):
        return  # as nearly always: all of them are of the epoch that wrote last
    before = epochs.entries()
    epochs.truncate(log.end_offset)
    first: int | None = None
    for batch in batches:
        if batch.leader_epoch > epochs.latest:
            first = batch.leader_epoch if first is None else first
            epochs.begin(batch.leader_epoch, batch.base_offset)
    if epochs.entries() != before:
        keep_epochs(log, before, NO_EPOCH if first is None else first)


def keep_epochs(log: Copied, before: list[tuple[int, int]], first: int) -> None:
    """Epochs have begun, from `first` on. They become durable with the next sync, before anything that they wrote is
    acknowledged: after a fail-over a thousand logs begin one, and the thread that serves must not wait for a disk.

    What a crash leaves of their batches meanwhile tells of them, and recovery takes their word for it, but only for an
    epoch above all that the state knows. Where it knows a later one (which wrote nothing here, and was forgotten) the
    state is durable before the first batch. So it is on a disk that is nearly full: then the append is refused, and no
    sync fails for want of room."""
    if first > log.state.kept_epoch and log.disk.free_bytes() >= STATE_ROOM_BYTES:
        log.state.save_later()
        return
    try:
        log.save_state()
    except DiskFull:
        log.state.epochs.replace(before)
        raise


def allow_gaps(log: Copied, to_offset: int) -> None:
    """Durable before the first batch behind a gap: else recovery would take it for lost data."""
    before = log.state.gaps_to
    if to_offset <= before:
        return
    log.state.gaps_to = to_offset
    try:
        log.save_state()
    except DiskFull:
        log.state.gaps_to = before
        raise
    active = log.segments.active
    if log.state.has_gaps(active.base_offset):
        active.expect(Expected(log.state.epochs, has_gaps=True))

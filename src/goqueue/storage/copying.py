"""Appending what another log holds: with its offsets, its epochs and its gaps, so that the two are the same bytes."""

from collections.abc import Sequence
from typing import Protocol

from goqueue.model.errors import CorruptBatch, DiskFull, StaleEpoch
from goqueue.records.batch import LENGTH_END, Batch
from goqueue.records.walk import Expected
from goqueue.storage.segments import SegmentList
from goqueue.storage.state import LogState


class Copied(Protocol):
    """What this needs of its log."""

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
    """Durable before the first batch of an epoch: recovery checks every batch's epoch against the history. An epoch
    that began here and wrote nothing is forgotten: the leader may send what an earlier one wrote."""
    epochs = log.state.epochs
    if batches[-1].leader_epoch == epochs.latest == epochs.at(log.end_offset - 1):
        return  # as nearly always: all of them are of the epoch that wrote last
    before = epochs.entries()
    epochs.truncate(log.end_offset)
    for batch in batches:
        if batch.leader_epoch > epochs.latest:
            epochs.begin(batch.leader_epoch, batch.base_offset)
    if epochs.entries() == before:
        return
    try:
        log.save_state()
    except DiskFull:
        epochs.replace(before)
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

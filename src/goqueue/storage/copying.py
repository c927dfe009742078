"""Appending what another log holds: with its offsets, its epochs and its gaps, so that the two are the same bytes."""

from collections.abc import Sequence
from typing import Protocol

from goqueue.model.errors import CorruptBatch, DiskFull, StaleEpoch
from goqueue.records.batch import Batch
from goqueue.records.walk import Expected
from goqueue.storage.segments import SegmentList
from goqueue.storage.state import LogState


class Copied(Protocol):
    """What this needs of its log."""

    state: LogState
    segments: SegmentList
    end_offset: int

    def save_state(self) -> None: ...


def check_order(log: Copied, batches: Sequence[Batch]) -> None:
    """CorruptBatch or StaleEpoch: the log takes none of them."""
    offset, epoch = log.end_offset, log.state.epochs.latest
    for batch in batches:
        is_gap = batch.base_offset > offset
        if batch.base_offset < offset or (is_gap and batch.base_offset > log.state.gaps_to):
            raise CorruptBatch(f"the batch has offset {batch.base_offset}, but {offset} is next")
        if batch.leader_epoch < epoch:
            raise StaleEpoch(f"the batch at {offset} is of epoch {batch.leader_epoch}, but one of {epoch} came before")
        offset, epoch = batch.next_offset, batch.leader_epoch


def begin_epochs(log: Copied, batches: Sequence[Batch]) -> None:
    """Durable before the first batch of an epoch: recovery checks every batch's epoch against the history."""
    epochs = log.state.epochs
    before = epochs.entries()
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

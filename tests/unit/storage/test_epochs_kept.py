"""A log that begins an epoch does not wait for its disk: the next sync saves the history, and then the batches."""

import errno

import pytest

from goqueue.model.errors import DiskFull
from goqueue.storage.inspection import inspect
from goqueue.storage.log import Log
from goqueue.storage.state import LogState
from goqueue.testing import MemoryDisk
from tests.logs import DIRECTORY, SMALL, append, batch, numbered, open_log, stored, stored_batches

EPOCH_AT = 12
"""In a batch: the bytes of its leader epoch."""


def saved_epochs(disk: MemoryDisk) -> list[tuple[int, int]]:
    return LogState.load(disk, DIRECTORY).epochs.entries()


def led_once() -> tuple[MemoryDisk, Log]:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a"), epoch=1)
    log.sync()
    return disk, log


def test_a_new_epoch_costs_the_one_who_appends_no_sync_and_is_saved_with_the_next() -> None:
    disk, log = led_once()
    syncs = disk.faults.add("sync", errno.EIO)
    append(log, batch(b"b"), epoch=2)
    assert syncs.hits == 0
    disk.faults.clear()
    assert saved_epochs(disk) == [(1, 0)]
    log.sync()
    assert saved_epochs(disk) == [(1, 0), (2, 1)]


def test_a_copied_epoch_is_saved_with_the_next_sync_too() -> None:
    _, source = led_once()
    append(source, batch(b"b"), epoch=2)
    disk = MemoryDisk()
    target = open_log(disk)
    syncs = disk.faults.add("sync", errno.EIO)
    target.append_as_is(list(stored_batches(source)), 0)
    assert syncs.hits == 0
    disk.faults.clear()
    target.sync()
    assert saved_epochs(disk) == [(1, 0), (2, 1)]


def test_a_killed_process_leaves_batches_that_tell_of_their_epoch() -> None:
    disk, log = led_once()
    append(log, batch(b"b"), epoch=2)
    append(log, batch(b"c"), epoch=3)
    assert inspect(disk, DIRECTORY).is_whole
    again = open_log(disk)
    assert stored(again) == numbered([b"a", b"b", b"c"])
    assert again.state.epochs.entries() == [(1, 0), (2, 1), (3, 2)]
    assert not again.report.damage
    assert saved_epochs(disk) == [(1, 0), (2, 1), (3, 2)]


def test_an_epoch_that_a_later_batch_falls_below_is_not_believed() -> None:
    disk, log = led_once()
    append(log, batch(b"b"), epoch=1)
    append(log, batch(b"c"), epoch=1)
    first, second, _ = stored_batches(log)
    disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", (first.size + EPOCH_AT) * 8 + 3)
    again = open_log(disk)
    assert stored(again) == [(0, b"a"), (2, b"c")]
    assert [damage.first_offset for damage in again.report.damage] == [second.base_offset]
    assert again.state.epochs.entries() == [(1, 0)]


def test_an_epoch_that_the_log_has_synced_is_not_learned_from_a_rotten_batch() -> None:
    disk, log = led_once()
    append(log, batch(b"b"), epoch=1)
    log.sync()  # which saves an index, too: all below it is known
    last = list(stored_batches(log))[-1]
    disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", (last.size + EPOCH_AT) * 8 + 3)
    again = open_log(disk)
    assert again.state.epochs.entries() == [(1, 0)]


def test_an_epoch_below_one_that_wrote_nothing_is_durable_before_its_first_batch() -> None:
    disk = MemoryDisk()
    target = Log.open(disk, DIRECTORY, SMALL, 0, first_epoch=5)
    _, source = led_once()
    target.append_as_is(list(stored_batches(source)), 0)
    assert saved_epochs(disk) == [(1, 0)]
    assert stored(open_log(disk)) == numbered([b"a"])


def test_a_full_disk_refuses_the_first_batch_of_an_epoch_and_changes_nothing() -> None:
    disk, log = led_once()
    disk.capacity_bytes = 0
    with pytest.raises(DiskFull):
        append(log, batch(b"b"), epoch=2)
    assert log.failure is None
    assert log.state.epochs.entries() == [(1, 0)]
    disk.capacity_bytes = None
    append(log, batch(b"b"), epoch=2)
    log.sync()
    assert saved_epochs(disk) == [(1, 0), (2, 1)]


def test_a_log_that_was_deleted_saves_nothing_into_one_that_has_its_name_since() -> None:
    disk, log = led_once()
    append(log, batch(b"b"), epoch=2)
    log.abandon()
    log.state.save_wanted(disk, DIRECTORY)
    assert saved_epochs(disk) == [(1, 0)]


def test_what_was_saved_at_once_is_not_replaced_by_what_was_left_to_a_sync() -> None:
    disk, log = led_once()
    append(log, batch(b"b"), epoch=2)
    log.state.is_doubtful = True
    log.save_state()
    log.sync()
    state = LogState.load(disk, DIRECTORY)
    assert (state.is_doubtful, state.epochs.entries()) == (True, [(1, 0), (2, 1)])

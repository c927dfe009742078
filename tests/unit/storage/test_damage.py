"""Damage costs the damaged batch, is reported with its offset and counted; everything else is served."""

import errno
from dataclasses import replace

import pytest

from goqueue.model.errors import LogPoisoned, ReadFailed
from goqueue.testing.memory_disk import MemoryDisk
from tests.layers import in_layers
from tests.logs import DIRECTORY, SMALL, append, batch, numbered, open_log, stored

FIRST = f"{DIRECTORY}/{0:020d}.log"
VALUES = [b"%02d" % number for number in range(100)]
PER_BATCH = 5


def closed_log(*, cleanly: bool) -> MemoryDisk:
    """A hundred records in twenty batches, all synced."""
    disk = MemoryDisk()
    log = open_log(disk, replace(SMALL, segment_bytes=100_000, checkpoint_bytes=1 if cleanly else 10**9))
    for first in range(0, 100, PER_BATCH):
        append(log, batch(*VALUES[first : first + PER_BATCH]))
    log.sync()
    if cleanly:
        log.close()
    return disk.crashed()


PARTS = 15
"""No divisor of 8: each part has bits of every place in a byte."""


@pytest.mark.parametrize("part", in_layers(range(PARTS), first=1))
def test_every_single_bit_flip_is_detected_and_costs_one_batch(part: int) -> None:
    disk = closed_log(cleanly=True)
    size = disk.open(FIRST).size()
    batch_bytes = size // 20
    for bit in range(part, size * 8, PARTS):
        image = disk.crashed()
        image.flip_bit(FIRST, bit)
        log = open_log(image)
        hit = bit // 8 // batch_bytes * PER_BATCH
        expected = [row for row in numbered(VALUES) if not hit <= row[0] < hit + PER_BATCH]
        assert stored(log, max_bytes=500) == expected, f"bit {bit}"
        assert log.damaged_batches == 1
        assert log.end_offset == 100


@pytest.mark.parametrize("part", in_layers(range(3), first=1))
def test_a_bit_flip_after_a_crash_costs_one_batch_too(part: int) -> None:
    """Recovery truncates only a torn tail. Nothing vouches for this segment: it is scanned from its start."""
    disk = closed_log(cleanly=False)
    batch_bytes = batch(*VALUES[:PER_BATCH]).size
    for bit in range(7 * part, batch_bytes * 19 * 8, 3 * 7):
        image = disk.crashed()
        image.flip_bit(FIRST, bit)
        log = open_log(image)
        hit = bit // 8 // batch_bytes * PER_BATCH
        assert stored(log) == [row for row in numbered(VALUES) if not hit <= row[0] < hit + PER_BATCH], f"bit {bit}"
        assert [damage.first_offset for damage in log.report.damage] == [hit]


def test_damage_is_reported_with_its_offset(capfd: pytest.CaptureFixture[str]) -> None:
    disk = closed_log(cleanly=True)
    disk.flip_bit(FIRST, 8 * 300)
    log = open_log(disk)
    stored(log)
    out, err = capfd.readouterr()
    assert "damaged batch" in out + err
    (damage,) = log.segments.active.damage.values()
    assert f"{damage.first_offset}" in out + err


def test_a_reader_at_a_damaged_offset_goes_on_behind_it() -> None:
    disk = closed_log(cleanly=True)
    size = disk.open(FIRST).size() // 20
    disk.flip_bit(FIRST, 8 * (size * 4 + 70))
    log = open_log(disk)
    for offset in range(20, 25):
        piece = log.read(offset, 100)
        assert piece is not None
        assert piece.first_offset == 25
    before = log.read(15, 10**6)
    assert before is not None
    assert before.next_offset == 25


def test_a_reader_that_was_just_before_new_damage_goes_on_behind_it() -> None:
    """Where its last read ended is remembered; what stands there is checked again."""
    disk = MemoryDisk()
    log = open_log(disk)
    for number in range(6):
        append(log, batch(b"%d" % number))
    segment = log.segments.active
    disk.flip_bit(FIRST, 8 * (segment.boundaries[3] + 65))
    segment.expect(segment.expected)
    assert [offset for offset, _ in stored(log)] == [0, 1, 2, 4, 5]
    for limit in (4, 5):
        piece = log.read(3, 1000, limit)
        assert piece is None if limit == 4 else (piece is not None and piece.first_offset == 4)


def test_damage_at_the_very_end_leaves_the_end_where_it_was() -> None:
    disk = closed_log(cleanly=True)
    disk.flip_bit(FIRST, disk.open(FIRST).size() * 8 - 20)
    log = open_log(disk)
    assert stored(log) == numbered(VALUES)[:95]
    assert log.read(95, 100) is None
    assert append(log, batch(b"next")) == 100
    assert stored(log) == [*numbered(VALUES)[:95], (100, b"next")]


def test_damage_is_still_passed_over_after_more_appends_and_restarts() -> None:
    disk = closed_log(cleanly=True)
    disk.flip_bit(FIRST, 8 * 30)
    for life in range(3):
        log = open_log(disk)
        append(log, batch(b"more"))
        assert stored(log) == numbered([*VALUES, *[b"more"] * (life + 1)])[5:]
        log.close()


def test_a_torn_tail_is_cut_off_and_the_log_goes_on() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"kept"))
    log.sync()
    append(log, batch(b"torn" * 200))
    write = disk.op_count - 1
    image = disk.crashed(torn=(write, disk.sector_cuts(write)[0]))
    log = open_log(image)
    assert stored(log) == [(0, b"kept")]
    assert log.report.truncated_bytes > 0
    assert not log.report.damage
    assert append(log, batch(b"next")) == 1


def test_good_batches_behind_a_hole_are_put_aside_not_deleted() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a" * 600))
    hole = disk.op_count - 1
    log.roll(now_ms=0)
    append(log, batch(b"b" * 600))
    image = disk.crashed(lost=[hole])
    log = open_log(image)
    assert stored(log) == []
    assert f"{1:020d}.log.quarantine-1" in image.list(DIRECTORY)


def test_a_batch_that_was_just_read_and_is_damaged_since_is_not_served_again() -> None:
    """Where it lies is remembered for whoever takes one record at a time, until somebody finds the damage."""
    disk = MemoryDisk()
    log = open_log(disk)
    for first in range(0, 10, PER_BATCH):
        append(log, batch(*VALUES[first : first + PER_BATCH]))
    for offset in (1, 2):
        piece = log.read(offset, 1)
        assert piece is not None
        assert piece.first_offset == 0
    disk.flip_bit(FIRST, 8 * 70)
    log.segments.active.check_again()
    piece = log.read(3, 1)
    assert piece is not None
    assert piece.first_offset == PER_BATCH


def test_an_unreadable_sector_costs_only_its_readers() -> None:
    disk = closed_log(cleanly=True)
    fault = disk.faults.add("read", errno.EIO, suffix=".log")
    log = open_log(disk)
    with pytest.raises(ReadFailed, match=FIRST):
        stored(log)
    assert fault.hits == 1
    assert stored(log) == numbered(VALUES)


@pytest.mark.parametrize("kind", ["open", "stat", "read", "view", "truncate", "sync", "list"])
def test_an_error_while_opening_is_an_answer_or_changes_nothing(kind: str) -> None:
    for nth in range(1, 30):
        disk = closed_log(cleanly=False)
        fault = disk.faults.add(kind, errno.EIO, nth=nth)  # type: ignore[arg-type]
        try:
            log = open_log(disk)
        except (LogPoisoned, ReadFailed) as error:
            assert DIRECTORY in str(error)
            disk.faults.clear()
            log = open_log(disk)
        disk.faults.clear()
        assert stored(log) == numbered(VALUES)
        if not fault.hits:
            break
    assert nth > 1

"""What a log promises to whoever appends and reads."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from goqueue.model.errors import BatchTooLarge, LogClosed, OffsetOutOfRange, StaleEpoch
from goqueue.records.batch import Codec, check_batch, split
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import decode
from goqueue.storage import segment_reads
from goqueue.storage.log import Log
from goqueue.storage.options import MIB, LogOptions
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.segment import Segment
from goqueue.testing.memory_disk import MemoryDisk
from tests.logs import DIRECTORY, SMALL, append, batch, numbered, open_log, stored


def values(count: int, size: int = 100) -> list[bytes]:
    return [f"{number}".encode().ljust(size, b".") for number in range(count)]


def filled(disk: MemoryDisk, count: int = 50, options: LogOptions = SMALL) -> Log:
    log = open_log(disk, options)
    for value in values(count):
        append(log, batch(value))
    return log


def names(disk: MemoryDisk, suffix: str) -> list[str]:
    return [name for name in disk.list(DIRECTORY) if name.endswith(suffix)]


def test_offsets_rise_by_one_per_record() -> None:
    log = open_log(MemoryDisk())
    assert append(log, batch(b"a")) == 0
    assert append(log, batch(b"b", b"c"), batch(b"d")) == 1
    assert append(log, batch(b"e")) == 4
    assert stored(log) == numbered([b"a", b"b", b"c", b"d", b"e"])


def test_an_append_of_nothing_changes_nothing() -> None:
    log = open_log(MemoryDisk())
    assert append(log) == 0
    assert log.end_offset == 0


def test_a_batch_is_stored_byte_for_byte_but_for_offset_and_epoch() -> None:
    sent = build_batch([(5, b"k", b"v" * 50, [("h", b"x")])], codec=Codec.ZSTD)
    log = open_log(MemoryDisk())
    append(log, batch(b"before"))
    append(log, check_batch(memoryview(bytearray(sent))), epoch=7)
    piece = log.read(1, 10_000)
    assert piece is not None
    (found,) = split(piece.view())
    assert (found.base_offset, found.leader_epoch) == (1, 7)
    assert found.data[16:] == sent[16:]


@pytest.mark.parametrize("max_bytes", [1, 171, 400, 1000, 10**6])
def test_reads_of_any_size_give_every_record_once(max_bytes: int) -> None:
    log = filled(MemoryDisk())
    for offset in range(51):
        assert stored(log, offset, max_bytes) == numbered(values(50))[offset:]


def test_a_read_gives_at_least_one_batch_and_else_keeps_to_its_limit() -> None:
    log = filled(MemoryDisk())
    size = batch(values(1)[0]).size
    for limit, count in [(1, 1), (size, 1), (2 * size, 2), (3 * size - 1, 2)]:
        piece = log.read(3, limit)
        assert piece is not None
        assert (piece.length, piece.next_offset) == (count * size, 3 + count)


def test_a_read_stops_below_the_limit_offset() -> None:
    log = open_log(MemoryDisk())
    append(log, batch(b"a"), batch(b"b", b"c"), batch(b"d"))
    piece = log.read(0, 10_000, limit_offset=2)
    assert piece is not None
    assert piece.next_offset == 1  # the batch of 1 and 2 is not wholly below 2
    assert log.read(1, 10_000, limit_offset=2) is None
    assert log.read(4, 10_000) is None


def test_readers_at_the_end_need_not_search_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several at once, each up to what was acknowledged, which is less than what was written."""
    log = open_log(MemoryDisk(), replace(SMALL, segment_bytes=100_000))
    searches: list[int] = []
    search = segment_reads._heads

    def counted(segment: Segment, block: int) -> Iterator[segment_reads.Head]:
        searches.append(block)
        return search(segment, block)

    monkeypatch.setattr(segment_reads, "_heads", counted)
    for number in range(200):
        append(log, batch(b"%d" % number))
        if number:
            for _ in range(3):
                piece = log.read(number - 1, 1000, number)
                assert piece is not None
                assert [check_batch(piece.view()).base_offset, piece.next_offset] == [number - 1, number]
    assert len(searches) < 20, "in 600 reads"


@pytest.mark.parametrize("offset", [-1, 51, 10**12])
def test_an_offset_outside_the_log_is_refused(offset: int) -> None:
    with pytest.raises(OffsetOutOfRange, match=str(offset)):
        filled(MemoryDisk()).read(offset, 100)


def test_a_segment_is_sealed_and_another_begun_before_the_limit_is_passed() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    size = batch(values(1)[0]).size
    per_segment = SMALL.segment_bytes // size
    assert names(disk, ".log") == [f"{base:020d}.log" for base in range(0, 50, per_segment)]
    assert [segment.sealed for segment in log.segments] == [True] * (len(log.segments) - 1) + [False]
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)


def test_a_segment_is_sealed_when_it_is_old() -> None:
    disk = MemoryDisk()
    log = open_log(disk, replace(SMALL, segment_ms=1000))
    for now_ms in (0, 999, 1000, 1999, 2000):
        append(log, batch(b"x"), now_ms=now_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_a_batch_over_the_limit_is_refused_and_nothing_of_its_append_is_kept() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, batch_bytes_max=300))
    with pytest.raises(BatchTooLarge, match="at most 300"):
        append(log, batch(b"small"), batch(b"x" * 300))
    assert log.end_offset == 0
    assert log.read(0, 100) is None


def test_the_disk_is_allocated_ahead_and_given_back_when_sealed() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"x"))
    file = disk.open(f"{DIRECTORY}/{0:020d}.log")
    assert file.size() == SMALL.segment_bytes
    log.roll(now_ms=0)
    assert file.size() == batch(b"x").size


def test_a_log_survives_a_restart() -> None:
    disk = MemoryDisk()
    filled(disk).close()
    log = open_log(disk)
    assert stored(log) == numbered(values(50))
    assert append(log, batch(b"next")) == 50
    assert not log.report.needed_work


def test_a_clean_start_reads_no_data() -> None:
    disk = MemoryDisk()
    filled(disk).close()
    disk.faults.add("read", 5, suffix=".log", forever=True)
    disk.faults.add("view", 5, suffix=".log", forever=True)
    assert open_log(disk).end_offset == 50


def test_a_start_after_a_crash_scans_only_what_no_index_vouches_for() -> None:
    disk = MemoryDisk()
    log = filled(disk, 11)
    log.sync()
    synced_bytes = log.segments.active.size
    append(log, batch(b"behind"))
    image = disk.crashed()
    again = open_log(image)
    assert again.end_offset == 12
    assert again.report.scanned_bytes == SMALL.segment_bytes - synced_bytes


def test_recovery_twice_is_recovery_once() -> None:
    disk = MemoryDisk()
    filled(disk)
    once = disk.crashed()
    first = open_log(once)
    second = open_log(once)
    assert stored(first) == stored(second) == numbered(values(50))
    assert not second.report.needed_work


def test_truncation_removes_the_offset_and_all_behind_it_for_good() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.truncate(17)
    assert stored(log) == numbered(values(17))
    append(log, batch(b"other"), epoch=2)
    log.sync()
    assert stored(open_log(disk.crashed())) == [*numbered(values(17)), (17, b"other")]


def test_a_slice_stays_readable_while_its_segment_is_truncated_deleted_or_closed(tmp_path: Path) -> None:
    """A reader in flight must see the bytes it was promised, and no SIGBUS."""
    log = Log.open(RealDisk(tmp_path), DIRECTORY, LogOptions(disk_reserve_bytes=0), 0)
    big = b"z" * 300_000
    append(log, batch(big), batch(big))
    piece = log.read(0, 10**6)
    assert piece is not None
    view = piece.view()
    log.truncate(1)
    log.advance_start(1)
    log.close()
    assert [record.value for one in split(view) for record in decode(one)] == [big, big]


def test_the_start_moves_forward_and_whole_segments_below_it_go() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.advance_start(25)
    assert stored(log) == numbered(values(50))[25:]
    assert log.segments.of(0).base_offset == 22
    with pytest.raises(OffsetOutOfRange):
        log.read(24, 100)
    for bad in (24, 51):
        with pytest.raises(OffsetOutOfRange):
            log.advance_start(bad)
    again = open_log(disk.crashed())
    assert (again.start_offset, stored(again)) == (25, numbered(values(50))[25:])


def test_an_emptied_log_goes_on_where_it_was() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.advance_start(50)
    log.close()
    log = open_log(disk)
    assert (log.start_offset, log.end_offset, log.read(50, 100)) == (50, 50, None)
    assert append(log, batch(b"next")) == 50


def test_epochs_are_stored_and_survive_a_crash() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for epoch in (1, 1, 4, 6):
        append(log, batch(b"x"), epoch=epoch)
    log.sync()
    log = open_log(disk.crashed())
    assert [log.epoch_end(epoch) for epoch in (1, 3, 4, 5, 6, 7)] == [(1, 2), (1, 2), (4, 3), (4, 3), (6, 4), (-1, -1)]
    with pytest.raises(StaleEpoch):
        append(log, batch(b"x"), epoch=5)


def test_a_log_whose_state_is_lost_is_read_from_its_batches() -> None:
    """One damaged side file does not keep a log from being opened."""
    for damage in ("remove", "flip"):
        disk = MemoryDisk()
        log = open_log(disk)
        for epoch in (1, 3):
            append(log, batch(b"x"), epoch=epoch)
        log.close()
        if damage == "remove":
            disk.remove(f"{DIRECTORY}/state")
        else:
            disk.flip_bit(f"{DIRECTORY}/state", 100)
        log = open_log(disk)
        assert stored(log) == numbered([b"x", b"x"])
        assert log.epoch_end(1) == (1, 1)
        log.close()
        assert open_log(disk).epoch_end(1) == (1, 1)


def test_a_closed_log_says_so_and_closes_again() -> None:
    log = filled(MemoryDisk())
    log.close()
    log.close()
    for call in (lambda: append(log, batch(b"x")), lambda: log.read(0, 1), log.sync, lambda: log.truncate(0)):
        with pytest.raises(LogClosed):
            call()


def test_files_that_are_not_ours_are_left_alone() -> None:
    disk = MemoryDisk()
    filled(disk).close()
    for name in ("notes.txt", "7.log", "00000000000000000000.log.bak"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    assert stored(open_log(disk)) == numbered(values(50))
    assert {"notes.txt", "7.log", "00000000000000000000.log.bak"} <= set(disk.list(DIRECTORY))


def test_a_million_messages_are_read_back_exactly(tmp_path: Path) -> None:
    per_batch, batches = 500, 2000
    log = Log.open(RealDisk(tmp_path), DIRECTORY, LogOptions(segment_bytes=16 * MIB, disk_reserve_bytes=0), 0)
    for number in range(batches):
        records: list[NewRecord] = [(number, None, b"%09d" % (number * per_batch + n), []) for n in range(per_batch)]
        append(log, check_batch(memoryview(build_batch(records))))
    log.close()
    log = Log.open(RealDisk(tmp_path), DIRECTORY, LogOptions(), 0)
    due = 0
    while (piece := log.read(due, MIB)) is not None:
        for one in split(piece.view()):
            found = [(record.offset, record.value) for record in decode(one)]
            assert found == [(at, b"%09d" % at) for at in range(due, due + per_batch)]
            due += per_batch
    assert due == per_batch * batches
    log.close()


@pytest.mark.parametrize("seed", range(5))
def test_batches_are_read_one_by_one_in_any_order_while_more_come(seed: int) -> None:
    """A segment remembers where the small batches behind the last one lie."""
    dice = Random(seed)
    log, bounds = open_log(MemoryDisk(), replace(SMALL, segment_bytes=4096)), list[tuple[int, int]]()
    for _ in range(60):
        records = [b"v" * dice.choice((1, 10, 300)) for _ in range(dice.choice((1, 1, 1, 5)))]
        first = append(log, batch(*records))
        bounds.append((first, first + len(records)))
        offset = dice.randrange(log.end_offset)
        limit = dice.randrange(offset + 1, log.end_offset + 1)
        begin, end = next(each for each in bounds if each[0] <= offset < each[1])
        for wanted in (offset, begin, *range(begin, min(end, begin + 3))):
            piece = log.read(wanted, 1, limit)
            found = None if piece is None else (piece.first_offset, piece.next_offset)
            assert found == ((begin, end) if end <= limit and wanted < limit else None), (bounds, wanted, limit)
            if piece is not None:
                (read,) = split(piece.view())
                assert (read.base_offset, read.next_offset) == (begin, end)

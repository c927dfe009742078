"""Compaction keeps the last value of each key at its old offset, and whatever readers still need beside it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.records.batch import Batch, Codec, check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.records.decode import decode
from goqueue.records.encode import sign
from goqueue.storage.compaction import Plan, compact, install, plan, seal_overdue
from goqueue.storage.compaction_process import compact_in_process
from goqueue.storage.log import Log
from goqueue.storage.options import DAY_MS, Cleanup, LogOptions
from goqueue.storage.real_disk import RealDisk
from goqueue.testing.memory_disk import MemoryDisk
from tests.logs import DIRECTORY, SMALL, append, open_log, stored_batches

OPTIONS = replace(SMALL, cleanup=Cleanup.COMPACT, segment_bytes=1000, dirty_ratio_min=0.01)
NOW_MS = 10 * DAY_MS

Pair = tuple[bytes | None, bytes | None]


def keyed(*pairs: Pair, producer: int = -1, transactional: bool = False, codec: Codec = Codec.NONE) -> Batch:
    records: list[NewRecord] = [(NOW_MS, key, value, []) for key, value in pairs]
    data = build_batch(
        records,
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        transactional=transactional,
    )
    return check_batch(memoryview(data))


def marker(kind: ControlKind, producer: int) -> Batch:
    data = build_control(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS)
    return check_batch(memoryview(data))


def run(log: Log, now_ms: int = NOW_MS) -> bool:
    """Seal what there is and compact it."""
    log.roll(now_ms)
    log.sync()
    work = plan(log, now_ms)
    if work is None:
        return False
    manifest = compact(log.disk, Plan.from_json(work.to_json()))
    return manifest is not None and install(log, manifest)


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    batches = [one for one in stored_batches(log) if not one.is_control]
    return [(record.offset, record.key, record.value) for one in batches for record in decode(one)]


def markers(log: Log) -> list[int]:
    return [one.base_offset for one in stored_batches(log) if one.is_control]


def test_the_last_value_of_each_key_stays_at_its_offset() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((b"a", b"1"), (b"b", b"2")), keyed((b"a", b"3")), keyed((b"c", b"4"), (b"b", b"5")))
    assert run(log)
    assert contents(log) == [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", b"5")]
    assert log.end_offset == 5


@pytest.mark.parametrize("codec", Codec)
def test_compressed_batches_are_compacted_and_stay_compressed(codec: Codec) -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((b"a", b"1"), (b"b", b"2"), codec=codec), keyed((b"a", b"3"), codec=codec))
    assert run(log)
    assert contents(log) == [(1, b"b", b"2"), (2, b"a", b"3")]
    assert {one.codec for one in stored_batches(log)} == {codec}


def test_records_without_a_key_stay() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((None, b"1")), keyed((None, b"2")), keyed((b"a", b"3")), keyed((b"a", b"4")))
    assert run(log)
    assert contents(log) == [(0, None, b"1"), (1, None, b"2"), (3, b"a", b"4")]


def test_a_deletion_is_readable_for_a_day_and_then_gone() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((b"a", b"1")), keyed((b"a", None)), keyed((b"b", b"2")))
    assert run(log)
    assert contents(log) == [(1, b"a", None), (2, b"b", b"2")]
    append(log, keyed((b"c", b"3")))
    assert run(log, NOW_MS + DAY_MS - 1)
    assert contents(log) == [(1, b"a", None), (2, b"b", b"2"), (3, b"c", b"3")]
    append(log, keyed((b"d", b"4")))
    assert run(log, NOW_MS + DAY_MS)
    assert contents(log) == [(2, b"b", b"2"), (3, b"c", b"3"), (4, b"d", b"4")]


def test_a_compaction_is_made_when_half_the_log_is_dirty() -> None:
    log = open_log(MemoryDisk(), replace(OPTIONS, dirty_ratio_min=LogOptions().dirty_ratio_min))
    append(log, *(keyed((b"%d" % n, b"x" * 50)) for n in range(20)))
    assert run(log)
    clean_bytes = sum(segment.size for segment in log.segments.sealed)
    append(log, keyed((b"new", b"x" * 50)))
    assert not run(log)
    while plan(log, NOW_MS) is None:
        append(log, keyed((b"new", b"x" * 50)))
        log.roll(NOW_MS)
        log.sync()
    total_bytes = sum(segment.size for segment in log.segments.sealed)
    assert 0.5 <= (total_bytes - clean_bytes) / total_bytes < 0.55
    assert run(log)


def test_records_younger_than_the_least_lag_are_not_compacted() -> None:
    lag_ms = 60_000
    log = open_log(MemoryDisk(), replace(OPTIONS, compaction_lag_ms_min=lag_ms))
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    assert not run(log, NOW_MS + lag_ms - 1)
    assert [offset for offset, _, _ in contents(log)] == [0, 1]
    assert run(log, NOW_MS + lag_ms)
    assert contents(log) == [(1, b"a", b"2")]


def test_records_older_than_the_most_lag_are_compacted_however_little_is_dirty_and_though_nobody_writes() -> None:
    lag_ms = 60_000
    log = open_log(MemoryDisk(), replace(OPTIONS, dirty_ratio_min=1.0, compaction_lag_ms_max=lag_ms))
    append(log, keyed(*((b"%d" % n, b"x" * 50) for n in range(15))), now_ms=NOW_MS)
    assert run(log)
    append(log, keyed((b"1", b"new")), keyed((b"1", b"newer")), now_ms=NOW_MS)

    def upkeep(now_ms: int) -> bool:
        seal_overdue(log, now_ms)
        log.sync()
        work = plan(log, now_ms)
        manifest = compact(log.disk, work) if work else None
        return manifest is not None and install(log, manifest)

    assert not upkeep(NOW_MS + lag_ms - 1)
    assert upkeep(NOW_MS + lag_ms)
    assert [(key, value) for _, key, value in contents(log) if key == b"1"] == [(b"1", b"newer")]
    assert not upkeep(NOW_MS + 2 * lag_ms), "nothing is dirty any more"


def test_a_log_that_compacts_begins_a_segment_before_its_records_are_too_old() -> None:
    log = open_log(MemoryDisk(), replace(OPTIONS, compaction_lag_ms_max=1000))
    append(log, keyed((b"a", b"1")), now_ms=NOW_MS)
    append(log, keyed((b"a", b"2")), now_ms=NOW_MS + 999)
    assert len(log.segments) == 1
    append(log, keyed((b"a", b"3")), now_ms=NOW_MS + 1000)
    assert len(log.segments) == 2


def test_a_hundred_thousand_updates_of_a_thousand_keys_leave_a_thousand_records(tmp_path: Path) -> None:
    log = Log.open(RealDisk(tmp_path), DIRECTORY, LogOptions(cleanup=Cleanup.COMPACT, disk_reserve_bytes=0), 0)
    for first in range(0, 100_000, 1000):
        append(log, keyed(*((b"%d" % n, b"%d" % (first + n)) for n in range(1000))))
    before = log.segments.size_bytes
    assert run(log)
    assert contents(log) == [(99_000 + n, b"%d" % n, b"%d" % (99_000 + n)) for n in range(1000)]
    assert log.segments.size_bytes < before / 50
    log.close()


def test_small_compacted_segments_become_one() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    for n in range(60):
        append(log, keyed((b"k", b"%d" % n)))
    assert len(log.segments) > 4
    assert run(log)
    append(log, *(keyed((b"j", b"y" * 200)) for n in range(8)))
    assert run(log)
    assert len(log.segments) <= 3
    assert [(key, value) for _, key, value in contents(log)] == [(b"k", b"59"), (b"j", b"y" * 200)]


def test_records_of_an_aborted_transaction_go_and_committed_ones_stay() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((b"a", b"good")), keyed((b"a", b"bad"), producer=7, transactional=True))
    append(log, keyed((b"b", b"good"), producer=8, transactional=True))
    append(log, marker(ControlKind.ABORT, 7), marker(ControlKind.COMMIT, 8))
    assert run(log)
    assert contents(log) == [(0, b"a", b"good"), (2, b"b", b"good")]


def test_nothing_at_or_behind_an_open_transaction_is_touched() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")))
    log.roll(NOW_MS)
    append(log, keyed((b"a", b"3"), producer=7, transactional=True), keyed((b"a", b"4")))
    log.roll(NOW_MS)
    append(log, keyed((b"a", b"5")))
    assert run(log)
    assert [offset for offset, _, _ in contents(log)] == [1, 2, 3, 4]
    append(log, marker(ControlKind.ABORT, 7))
    assert run(log)
    assert [offset for offset, _, _ in contents(log)] == [4]


def test_a_marker_stays_as_long_as_its_records_and_then_a_day() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((b"a", b"1"), producer=7, transactional=True), marker(ControlKind.COMMIT, 7))
    append(log, keyed((b"b", b"1"), producer=8, transactional=True), marker(ControlKind.ABORT, 8))
    assert run(log)
    assert markers(log) == [1, 3]
    late = NOW_MS + DAY_MS
    append(log, keyed((b"z", b"x" * 800)))
    assert run(log, late)
    assert markers(log) == [1], "the committed record is still there, the aborted one is not"


def test_a_producers_last_batch_leaves_its_header_for_a_day() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, keyed((b"a", b"1"), producer=7), keyed((b"a", b"2")))
    assert run(log)
    assert [(one.base_offset, one.producer_id, one.record_count) for one in stored_batches(log)] == [
        (0, 7, 0),
        (1, -1, 1),
    ]
    append(log, keyed((b"z", b"x" * 800)))
    assert run(log, NOW_MS + DAY_MS)
    assert [one.base_offset for one in stored_batches(log)] == [1, 2]


def test_a_damaged_segment_is_left_as_it_is() -> None:
    disk = MemoryDisk()
    log = open_log(disk, OPTIONS)
    append(log, keyed((b"a", b"1")), keyed((b"a", b"2")), keyed((b"a", b"3")))
    log.roll(NOW_MS)
    append(log, keyed((b"a", b"4")), keyed((b"a", b"5")))
    log.close()
    damaged = disk.open(f"{DIRECTORY}/{0:020d}.log").read(0, 10**6)
    disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", 8 * (len(damaged) - 20))
    log = open_log(disk, OPTIONS)
    assert run(log)
    assert [offset for offset, _, _ in contents(log)] == [0, 1, 4]
    assert log.damaged_batches == 1


def test_a_batch_that_its_producer_filled_with_nonsense_is_kept() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    nonsense = bytearray(keyed((b"a", b"1")).data)
    nonsense[61:] = b"\xff" * (len(nonsense) - 61)
    sign(memoryview(nonsense))
    append(log, check_batch(memoryview(nonsense)), keyed((b"a", b"2")), keyed((b"a", b"3")))
    assert run(log)
    assert [one.base_offset for one in stored_batches(log)] == [0, 2]


def test_a_log_that_changed_meanwhile_is_not_compacted() -> None:
    disk = MemoryDisk()
    log = open_log(disk, OPTIONS)
    append(log, *(keyed((b"a", b"%d" % n * 100)) for n in range(10)))
    log.roll(NOW_MS)
    log.sync()
    work = plan(log, NOW_MS)
    assert work is not None
    manifest = compact(disk, work)
    assert manifest is not None
    log.truncate(2)
    assert not install(log, manifest)
    assert [offset for offset, _, _ in contents(log)] == [0, 1]
    assert disk.list(f"{DIRECTORY}/cleaned") == []


def test_a_reader_goes_on_across_a_compaction() -> None:
    log = open_log(MemoryDisk(), OPTIONS)
    append(log, *(keyed((b"%d" % (n % 3), b"%d" % n)) for n in range(30)))
    piece = log.read(0, 300)
    assert piece is not None
    assert run(log)
    assert len(piece.read()) == piece.length
    left = [offset for offset, _, _ in contents(log)]
    assert left == [27, 28, 29]
    following = log.read(piece.next_offset, 300)
    assert following is not None
    assert following.first_offset == 27


@given(
    batches=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c", None]), st.sampled_from([b"x", b"y" * 200, None]))),
            st.sampled_from([-1, 7, 8]),
            st.sampled_from(["plain", "open", "commit", "abort"]),
        ),
        max_size=25,
    ),
    again=st.integers(0, 25),
)
@settings(max_examples=200)
def test_a_compacted_log_ends_in_the_same_table(
    batches: list[tuple[list[tuple[bytes | None, bytes | None]], int, str]], again: int
) -> None:
    """Whoever reads all committed records into a table gets the same table, before and after, and after a crash."""
    disk = MemoryDisk()
    log = open_log(disk, OPTIONS)
    for number, (pairs, producer, end) in enumerate(batches):
        if pairs:
            append(log, keyed(*pairs, producer=producer, transactional=end != "plain" and producer >= 0))
        if producer >= 0 and end in ("commit", "abort"):
            append(log, marker(ControlKind[end.upper()], producer))
        if number == again:
            run(log)
    before = table(log)
    end_offset = log.end_offset
    run(log)
    assert table(log) == before
    assert log.end_offset == end_offset
    log.sync()
    crashed = open_log(disk.crashed(lost=disk.unsynced()), OPTIONS)
    assert table(crashed) == before
    assert not crashed.report.damage


def table(log: Log) -> dict[bytes, tuple[int, bytes]]:
    """Committed records only, as a read-committed reader sees them."""
    rows: dict[bytes, tuple[int, bytes]] = {}
    pending: dict[int, list[Batch]] = {}
    committed: list[Batch] = []
    for one in stored_batches(log):
        if one.is_control:
            transaction = pending.pop(one.producer_id, [])
            (record,) = decode(one)
            if record.key is not None and record.key[3] == ControlKind.COMMIT:
                committed += transaction
        elif one.is_transactional:
            pending.setdefault(one.producer_id, []).append(one)
        else:
            committed.append(one)
    for one in sorted(committed, key=lambda batch: batch.base_offset):
        for record in decode(one):
            if record.key is not None:
                rows.pop(record.key, None)
                if record.value is not None:
                    rows[record.key] = (record.offset, record.value)
    return rows


async def in_process(log: Log, root: Path) -> bool:
    work = plan(log, NOW_MS)
    assert work is not None
    manifest = await compact_in_process(root, work)
    return manifest is not None and install(log, manifest)


def test_the_work_is_done_by_another_process(tmp_path: Path) -> None:
    log = Log.open(RealDisk(tmp_path), DIRECTORY, OPTIONS, 0)
    append(log, *(keyed((b"%d" % (n % 3), b"%d" % n)) for n in range(30)))
    log.roll(NOW_MS)
    log.sync()
    assert asyncio.run(in_process(log, tmp_path))
    assert [offset for offset, _, _ in contents(log)] == [27, 28, 29]
    log.close()


def test_a_failed_compaction_leaves_the_log_as_it_was(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log.open(RealDisk(tmp_path), DIRECTORY, OPTIONS, 0)
    append(log, *(keyed((b"%d" % (n % 3), b"%d" % n)) for n in range(30)))
    log.roll(NOW_MS)
    log.sync()
    work = plan(log, NOW_MS)
    assert work is not None
    missing = replace(work, directory="logs/nowhere/0")
    assert asyncio.run(compact_in_process(tmp_path, missing)) is None
    assert "compaction failed" in "".join(capfd.readouterr())
    assert len(contents(log)) == 30
    log.close()

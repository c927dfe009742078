"""What a log once had and has no more is told, and the offsets of it are not given to others."""

from collections.abc import Callable

import pytest

from goqueue.storage.compaction import compact, install, plan
from goqueue.storage.inspection import inspect
from goqueue.storage.log import Log
from goqueue.storage.options import Cleanup, LogOptions
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.testing.memory_disk import MemoryDisk
from tests.logs import SMALL, append, batch, stored

DIRECTORY = "logs/orders/0"


def opened(disk: MemoryDisk, options: LogOptions = SMALL) -> Log:
    return Log.open(disk, DIRECTORY, options, 0, first_epoch=0)


def written(segments: int = 3, *, is_closed: bool = True, options: LogOptions = SMALL) -> MemoryDisk:
    """One record in each segment."""
    disk = MemoryDisk()
    log = opened(disk, options)
    for number in range(segments):
        if number:
            log.roll(0)
        append(log, batch(b"%d" % number, key=b"k%d" % number))
    log.sync()
    if is_closed:
        log.close()
    return disk


def files(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list(DIRECTORY) if name.endswith(".log")]


def remove(disk: MemoryDisk, base: int, *suffixes: str) -> None:
    for suffix in suffixes or (".log",):
        disk.remove(f"{DIRECTORY}/{base:020d}{suffix}")


ALL = (".log", ".index", ".timeindex")


def test_a_whole_log_misses_nothing() -> None:
    for disk in (written(), written(is_closed=False).crashed()):
        assert inspect(disk, DIRECTORY).is_whole
        log = opened(disk)
        assert (log.report.missing, log.end_offset) == ([], 3)


@pytest.mark.parametrize("suffixes", [(".log",), ALL])
@pytest.mark.parametrize("base", [0, 1])
def test_a_segment_that_is_gone_is_told(base: int, suffixes: tuple[str, ...]) -> None:
    disk = written()
    remove(disk, base, *suffixes)
    before = disk.op_count
    found = inspect(disk, DIRECTORY)
    assert (found.missing, found.is_whole, found.is_short) == ([(base, base)], False, False)
    assert f"offsets {base} to {base} are missing" in found.words()
    assert disk.op_count == before, "an inspection changes nothing"
    for time in range(2):
        log = opened(disk)
        if time == 0:
            assert (log.report.missing, log.report.missing_offsets) == ([(base, base)], 1)
        assert log.end_offset == 3
        assert stored(log) == [(number, b"%d" % number) for number in range(3) if number != base]
        log.close()


def cut_short(disk: MemoryDisk) -> None:
    file = disk.open(f"{DIRECTORY}/{2:020d}.log")
    file.truncate(30)
    file.close()


def emptied(disk: MemoryDisk) -> None:
    file = disk.open(f"{DIRECTORY}/{2:020d}.log")
    file.truncate(0)
    file.close()


LOST_ENDS: dict[str, Callable[[MemoryDisk], None]] = {
    "the file is gone, its index is there": lambda disk: remove(disk, 2),
    "the file is cut": cut_short,
    "the file is empty": emptied,
}


@pytest.mark.parametrize("how", LOST_ENDS)
def test_an_end_that_is_gone_is_told_and_its_offsets_are_not_given_again(how: str) -> None:
    disk = written()
    LOST_ENDS[how](disk)
    found = inspect(disk, DIRECTORY)
    assert (found.is_short, found.end_offset, found.reached) == (True, 2, 3)
    assert "it ends at offset 2, though it once reached 3" in found.words()
    log = opened(disk)
    assert (log.report.missing, log.start_offset, log.end_offset) == ([(2, 2)], 0, 3)
    assert log.damaged_batches == 1
    append(log, batch(b"new"))
    assert stored(log) == [(0, b"0"), (1, b"1"), (3, b"new")]
    log.sync()
    for image in (disk.crashed(), disk):
        again = opened(image)
        assert stored(again) == [(0, b"0"), (1, b"1"), (3, b"new")]
        append(again, batch(b"newer"))
        again.close()
        assert not inspect(image, DIRECTORY).is_short


def test_a_snapshot_knows_how_far_the_log_was() -> None:
    disk = written()
    SnapshotFiles(disk, DIRECTORY, "producers").save(3, 0, [])
    remove(disk, 2, *ALL)
    assert inspect(disk, DIRECTORY).is_short
    log = opened(disk)
    assert (log.report.missing, log.end_offset) == ([(2, 2)], 3)


def test_a_log_without_any_segment_goes_on_where_it_was() -> None:
    disk = written()
    for base in range(3):
        remove(disk, base)
    found = inspect(disk, DIRECTORY)
    assert (found.has_segments, found.words()) == (False, "it has no segment, though it once reached 3")
    log = opened(disk)
    assert (log.report.missing, log.start_offset, log.end_offset) == ([(0, 2)], 0, 3)
    append(log, batch(b"new"))
    log.sync()
    again = opened(disk.crashed())
    assert (stored(again), again.report.missing) == ([(3, b"new")], [(0, 2)])


def test_a_log_that_was_just_made_misses_nothing() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    assert log.report.missing == []
    log.close()
    remove(disk, 0)
    assert inspect(disk, DIRECTORY).is_whole, "nothing was ever in it"


def test_what_retention_took_is_not_missing() -> None:
    disk = written(is_closed=False)
    log = opened(disk.crashed())
    log.advance_start(2)
    log.close()
    assert inspect(log.disk, DIRECTORY).is_whole
    assert Log.open(log.disk, DIRECTORY, SMALL, 0).report.missing == []


def test_a_compacted_segment_that_is_gone_is_told_and_gaps_are_not() -> None:
    options = LogOptions(cleanup=Cleanup.COMPACT, segment_bytes=1, disk_reserve_bytes=0)
    disk = MemoryDisk()
    log = opened(disk, options)
    for number in range(9):
        if number:
            log.roll(0)
        append(log, batch(b"%d" % number, key=b"same" if number % 3 else b"k%d" % number))
    log.sync()
    planned = plan(log, 0, is_asked_for=True)
    assert planned is not None
    manifest = compact(disk, planned)
    assert manifest is not None
    assert install(log, manifest)
    log.close()
    assert inspect(disk, DIRECTORY).is_whole
    assert opened(disk, options).report.missing == []
    bases = [int(name[:20]) for name in files(disk)]
    remove(disk, bases[1], *[suffix for suffix in ALL if disk.exists(f"{DIRECTORY}/{bases[1]:020d}{suffix}")])
    assert inspect(disk, DIRECTORY).missing == [(bases[1], bases[2] - 1)]
    assert opened(disk, options).report.missing == [(bases[1], bases[2] - 1)]

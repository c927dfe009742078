"""A log that copies another: the same bytes at the same offsets, and nothing that does not follow."""

import pytest

from goqueue.model.errors import CorruptBatch, OffsetOutOfRange, StaleEpoch
from goqueue.records.batch import Batch
from goqueue.storage.compaction import compact, install, plan
from goqueue.storage.log import Log
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.testing import MemoryDisk
from tests.logs import DIRECTORY, SMALL, append, batch, open_log, stored, stored_batches
from tests.unit.storage.test_compaction import NOW_MS, OPTIONS, keyed


def copy(source: Log, target: Log) -> None:
    """A few batches at a time, as a follower would."""
    batches = [one for one in stored_batches(source) if one.base_offset >= target.end_offset]
    for first in range(0, len(batches), 3):
        target.append_as_is(batches[first : first + 3], 0)


def raw(log: Log) -> list[tuple[int, int, bytes]]:
    return [(one.base_offset, one.leader_epoch, bytes(one.data)) for one in stored_batches(log)]


def leader_with_epochs() -> Log:
    log = open_log(MemoryDisk())
    for epoch in (1, 1, 2, 2, 5, 5, 5):
        append(log, batch(b"%d" % epoch * 150, b"b"), batch(b"c"), epoch=epoch)
    return log


def test_a_copy_has_the_offsets_the_epochs_and_the_bytes_of_its_source() -> None:
    source, target = leader_with_epochs(), open_log(MemoryDisk())
    copy(source, target)
    target.sync()
    assert raw(target) == raw(source)
    assert target.state.epochs.entries() == source.state.epochs.entries()
    assert (target.end_offset, target.synced_offset) == (source.end_offset, source.end_offset)
    again = open_log(target.disk.crashed())  # type: ignore[attr-defined]
    assert raw(again) == raw(source)
    assert not again.report.damage
    assert not again.report.missing


def test_a_copied_batch_may_be_read_at_once_and_its_successor_goes_on_behind_it() -> None:
    source, target = leader_with_epochs(), open_log(MemoryDisk())
    copy(source, target)
    end = target.end_offset
    append(target, batch(b"own"), epoch=6)
    assert stored(target)[-1] == (end, b"own")


def placed(base_offset: int, epoch: int, value: bytes = b"x") -> Batch:
    """As it stands in a leader's log."""
    log = open_log(MemoryDisk())
    if base_offset:
        log.restart(base_offset)
    append(log, batch(value), epoch=epoch)
    return next(stored_batches(log))


@pytest.mark.parametrize("offset", [0, 2, 5, 100])
def test_a_batch_that_does_not_follow_is_refused_and_changes_nothing(offset: int) -> None:
    log = open_log(MemoryDisk())
    append(log, batch(b"a", b"b", b"c"), epoch=4)
    before = raw(log)
    with pytest.raises(CorruptBatch):
        log.append_as_is([placed(offset, 4)], 0)
    with pytest.raises(CorruptBatch):
        log.append_as_is([placed(3, 4), placed(offset, 4)], 0)
    assert raw(log) == before


def test_a_batch_of_an_older_epoch_is_refused() -> None:
    log = open_log(MemoryDisk())
    append(log, batch(b"a"), epoch=4)
    with pytest.raises(StaleEpoch):
        log.append_as_is([placed(1, 3)], 0)
    log.append_as_is([placed(1, 7)], 0)
    assert log.state.epochs.entries() == [(4, 0), (7, 1)]


def compacted() -> Log:
    log = open_log(MemoryDisk(), OPTIONS)
    for number in range(14):
        append(log, keyed((b"%d" % (number % 3), b"%d" % number * 100)))
    log.roll(NOW_MS)
    log.sync()
    work = plan(log, NOW_MS)
    assert work is not None
    manifest = compact(log.disk, work)
    assert manifest is not None
    assert install(log, manifest)
    append(log, keyed((b"new", b"new")))
    return log


def test_the_gaps_of_a_compacted_log_are_copied_once_they_are_allowed() -> None:
    source, target = compacted(), open_log(MemoryDisk(), OPTIONS)
    with pytest.raises(CorruptBatch):
        copy(source, target)
    target.allow_gaps(source.state.compacted_to)
    copy(source, target)
    target.sync()
    assert raw(target) == raw(source)
    again = open_log(target.disk.crashed(), OPTIONS)  # type: ignore[attr-defined]
    assert raw(again) == raw(source)
    assert not again.report.damage
    assert not again.report.missing


def test_a_log_begins_anew_and_empty_at_an_offset_and_is_doubtful() -> None:
    for at in (0, 3, 500):
        log = leader_with_epochs()
        log.sync()
        SnapshotFiles(log.disk, log.directory, "producers").save(log.end_offset, 0, [(b"k", b"v")])
        log.restart(at)
        for each in (log, open_log(log.disk.crashed())):  # type: ignore[attr-defined]
            assert (each.start_offset, each.end_offset, stored(each)) == (at, at, [])
            assert each.state.is_doubtful
            assert each.state.epochs.entries() == []
            assert SnapshotFiles(each.disk, each.directory, "producers").latest(up_to=1 << 60) is None
        append(log, batch(b"next"), epoch=9)
        assert stored(log) == [(at, b"next")]


def test_a_log_cannot_begin_before_zero() -> None:
    with pytest.raises(OffsetOutOfRange):
        open_log(MemoryDisk()).restart(-1)


def test_no_snapshot_knows_more_than_a_truncated_log() -> None:
    log = open_log(MemoryDisk())
    kinds = [SnapshotFiles(log.disk, DIRECTORY, kind) for kind in ("producers", "groups")]
    for number in range(6):
        append(log, batch(b"%d" % number))
        log.sync()
        for files in kinds:
            files.save(log.end_offset, 0, [(b"at", b"%d" % log.end_offset)])
    log.truncate(5)
    for files in kinds:
        latest = files.latest(up_to=1 << 60)
        assert latest is not None
        assert latest.offset == 5
    again = open_log(log.disk.crashed(), SMALL)  # type: ignore[attr-defined]
    assert (again.end_offset, again.report.missing) == (5, [])


def test_a_copy_that_led_once_and_wrote_nothing_takes_what_an_earlier_leader_wrote() -> None:
    log = open_log(MemoryDisk())
    append(log, batch(b"a"), epoch=3)
    log.sync()
    log.reserve([batch(b"never written")], 5, 0)
    log.save_state()  # as a sync may that comes between
    again = open_log(log.disk.crashed())  # type: ignore[attr-defined]
    assert again.state.epochs.latest == 5
    again.append_as_is([placed(1, 4)], 0)
    assert again.state.epochs.entries() == [(3, 0), (4, 1)]
    again.sync()
    last = open_log(again.disk.crashed())  # type: ignore[attr-defined]
    assert [offset for offset, _ in stored(last)] == [0, 1]
    assert not last.report.damage


@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_copy_that_is_made_doubtful_is_doubtful_wherever_a_crash_comes(is_lazy: bool) -> None:
    def make(disk: MemoryDisk) -> Log:
        return Log.open(disk, DIRECTORY, SMALL, 0, is_doubtful=True, is_lazy=is_lazy)

    disk = MemoryDisk()
    make(disk).sync()
    for upto in range(disk.op_count + 1):
        unsynced = disk.unsynced(upto)
        for lost in ([], unsynced, *([one] for one in unsynced), *(unsynced[:n] for n in range(len(unsynced)))):
            again = make(disk.crashed(upto, lost=lost))
            assert again.state.is_doubtful, (upto, lost)
            again.sync()
            assert make(again.disk.crashed()).state.is_doubtful  # type: ignore[attr-defined]

"""Every crash point of what changes a log that is already there: truncation, deletion, compaction. Before or after,
never between."""

from collections.abc import Callable

import pytest

from goqueue.model.errors import GoQueueError
from goqueue.storage.committer import Committer
from goqueue.storage.compaction import compact, install, plan
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.log import Log
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.testing.memory_disk import MemoryDisk
from tests.directories import open_directory
from tests.logs import SMALL, append, batch, numbered, open_log, stored, stored_batches
from tests.sim.crashes import Trace, images
from tests.unit.storage.test_compaction import NOW_MS, OPTIONS, contents, keyed

VALUES = [b"%d" % number * 200 for number in range(12)]


Contents = dict[tuple[str, int], list[tuple[int, bytes | None]]]
Looks = tuple[int, int, list[tuple[int, bytes | None]], bool]
"""Start, end, what is stored, whether it is doubtful."""
EMPTY: Contents = {("made", 3): []}
MADE: Contents = {("made", 3): [(0, b"made")]}


def written(disk: MemoryDisk) -> Log:
    log = open_log(disk)
    for value in VALUES:
        append(log, batch(value))
    log.sync()
    return log


def check_all(trace: Trace, since: int, check: Callable[[MemoryDisk, bool], None]) -> None:
    """`check(image, is_done)` for every crash from operation `since` on."""
    for upto in range(since, trace.disk.op_count + 1):
        for label, image in images(trace.disk, upto):
            try:
                check(image, trace.last_promise(upto) == "done")
                check(image.crashed(), trace.last_promise(upto) == "done")
            except BaseException:
                print(label, *trace.disk.trace()[:upto], sep="\n")
                raise


def test_a_crash_during_truncation_leaves_a_prefix() -> None:
    for end in (0, 5, 11):
        trace = Trace()
        log = written(trace.disk)
        since = trace.disk.op_count
        log.truncate(end)
        trace.promise("done")

        def check(image: MemoryDisk, is_done: bool, end: int = end) -> None:
            log = open_log(image)
            found = stored(log)
            assert found == numbered(VALUES)[: len(found)]
            assert len(found) == end if is_done else len(found) >= end
            assert not log.report.damage
            other = open_log(image.crashed())
            append(other, batch(b"next"), epoch=9)
            assert stored(other)[-1] == (len(found), b"next")

        check_all(trace, since, check)


def test_a_crash_while_the_start_moves_leaves_the_old_or_the_new_start() -> None:
    for start in (4, 12):
        trace = Trace()
        log = written(trace.disk)
        since = trace.disk.op_count
        log.advance_start(start)
        trace.promise("done")

        def check(image: MemoryDisk, is_done: bool, start: int = start) -> None:
            log = open_log(image)
            assert log.start_offset in ((start,) if is_done else (0, start))
            assert stored(log) == numbered(VALUES)[log.start_offset :]

        check_all(trace, since, check)


@pytest.mark.second_layer
def test_a_crash_during_compaction_leaves_the_log_as_it_was_or_compacted() -> None:
    trace = Trace()
    log = open_log(trace.disk, OPTIONS)
    for number in range(14):
        append(log, keyed((b"%d" % (number % 3), b"%d" % number * 100)))
    log.roll(NOW_MS)
    log.sync()
    since = trace.disk.op_count
    before = contents(log)
    work = plan(log, NOW_MS)
    assert work is not None
    manifest = compact(trace.disk, work)
    assert manifest is not None
    assert install(log, manifest)
    after = contents(log)
    trace.promise("done")
    assert len(after) == 3

    def check(image: MemoryDisk, is_done: bool) -> None:
        log = open_log(image, OPTIONS)
        assert contents(log) in ([after] if is_done else [before, after])
        assert log.end_offset == 14
        assert not log.report.damage

    check_all(trace, since, check)


def test_a_crash_while_a_log_is_made_or_deleted_leaves_it_whole_or_gone() -> None:
    trace = Trace()
    committer = Committer(lambda call: call(), lambda: 0)
    directory = DataDirectory.open(trace.disk, committer=committer)
    append(directory.open_log("kept", 0, SMALL, 0), batch(b"kept"))
    committer.run_once()
    since = trace.disk.op_count
    append(directory.open_log("made", 3, SMALL, 0), batch(b"made"))
    committer.run_once()
    trace.promise("made")
    made_at = trace.disk.op_count
    directory.retire("made", [3])()
    trace.promise("deleted")
    directory.open_log("made", 3, SMALL, 0)
    trace.promise("made again")

    for upto in range(since, trace.disk.op_count + 1):
        for label, image in images(trace.disk, upto):
            try:
                found = reopened(image)
                assert found.pop(("kept", 0)) == [(0, b"kept")]
                allowed = {
                    None: [{}, EMPTY, MADE],
                    "made": [MADE] if upto == made_at else [MADE, {}],
                    "deleted": [{}, EMPTY],
                    "made again": [EMPTY],
                }[trace.last_promise(upto)]
                assert found in allowed
            except (AssertionError, GoQueueError):
                print(label, *trace.disk.trace()[:upto], sep="\n")
                raise


def test_a_crash_while_many_logs_are_made_or_deleted_leaves_each_whole_or_gone() -> None:
    """As topics do it: their directories together, each with its first epoch; and all removed at once."""
    trace = Trace()
    committer = Committer(lambda call: call(), lambda: 0)
    directory = DataDirectory.open(trace.disk, committer=committer)
    since = trace.disk.op_count
    made = directory.make_directories("made", range(3))
    assert made == {0, 1, 2}
    for number in made:
        log = directory.load_log("made", number, SMALL, 0, first_epoch=0, has_directory=True)
        assert log.is_new
        directory.adopt("made", number, log)
        log.append([batch(b"%d" % number)], 0, 0)
    committer.run_once()
    trace.promise("made")
    made_at = trace.disk.op_count
    directory.retire("made", range(3))()
    trace.promise("deleted")
    whole = [[(0, b"%d" % number)] for number in range(3)]
    for upto in range(since, trace.disk.op_count + 1):
        for label, image in images(trace.disk, upto):
            try:
                found = reopened(image)
                promised = trace.last_promise(upto)
                for number in range(3):
                    log_found = found.get(("made", number))
                    if promised is None:
                        assert log_found in (None, [], whole[number])
                    elif promised == "made":
                        assert log_found == whole[number] or (upto > made_at and log_found is None)
                    else:
                        assert log_found is None
            except (AssertionError, GoQueueError):
                print(label, *trace.disk.trace()[:upto], sep="\n")
                raise


def reopened(disk: MemoryDisk) -> Contents:
    return {name: stored(log) for name, log in open_directory(disk, 0, SMALL).logs.items()}


def test_a_crash_while_a_log_begins_anew_leaves_the_old_log_or_an_empty_one_that_is_doubtful() -> None:
    for start in (0, 5, 40):
        trace = Trace()
        log = written(trace.disk)
        SnapshotFiles(trace.disk, log.directory, "producers").save(log.end_offset, 0, [(b"k", b"v")])
        since = trace.disk.op_count
        log.restart(start)
        trace.promise("done")

        def check(image: MemoryDisk, is_done: bool, start: int = start) -> None:
            log = open_log(image)
            new: Looks = (start, start, [], True)
            found: Looks = (log.start_offset, log.end_offset, stored(log), log.state.is_doubtful)
            old: Looks = (0, len(VALUES), numbered(VALUES), False)
            assert found in ([new] if is_done else [new, old])
            assert not log.report.damage
            assert not log.report.missing
            other = open_log(image.crashed())
            append(other, batch(b"next"), epoch=9)
            assert stored(other)[-1] == (found[1], b"next")

        check_all(trace, since, check)


def test_a_crash_while_a_log_is_copied_leaves_a_prefix_with_all_that_was_synced() -> None:
    source = open_log(MemoryDisk())
    for number, value in enumerate(VALUES):
        append(source, batch(value), epoch=1 + number // 5)
    batches = list(stored_batches(source))
    trace = Trace()
    target = open_log(trace.disk)
    target.sync()
    for first in range(0, len(batches), 4):
        target.append_as_is(batches[first : first + 4], 0)
        target.sync()
        trace.promise(target.end_offset)
    for upto in range(trace.disk.op_count + 1):
        for label, image in images(trace.disk, upto):
            log = open_log(image)
            found = stored(log)
            assert found == numbered(VALUES)[: len(found)], label
            assert len(found) >= (trace.last_promise(upto) or 0), label
            assert not log.report.damage, label
            log.append_as_is([one for one in batches if one.base_offset >= log.end_offset], 0)
            assert stored(log) == numbered(VALUES), label


def test_a_crash_while_a_log_with_snapshots_is_truncated_leaves_none_that_knows_more() -> None:
    trace = Trace()
    log = written(trace.disk)
    files = SnapshotFiles(trace.disk, log.directory, "producers")
    for offset in (4, 8, 12):
        files.save(offset, 0, [(b"k", b"v")])
    since = trace.disk.op_count
    log.truncate(6)
    trace.promise("done")

    def check(image: MemoryDisk, is_done: bool) -> None:
        log = open_log(image)
        found = stored(log)
        assert found == numbered(VALUES)[: len(found)]
        assert not log.report.missing
        latest = SnapshotFiles(image, log.directory, "producers").latest(up_to=1 << 60)
        assert latest is not None
        assert latest.offset <= log.end_offset
        if is_done:
            assert (log.end_offset, latest.offset) == (6, 4)

    check_all(trace, since, check)

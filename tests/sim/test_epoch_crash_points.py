"""Epochs are saved with the sync of what they wrote. Whenever the power goes, or the process: a log knows the epoch of
every batch that it has, has all that was synced, and takes nothing for damage.
"""

from collections.abc import Callable

import pytest

from goqueue.records.batch import Batch
from goqueue.storage.log import Log
from goqueue.testing.memory_disk import MemoryDisk
from tests.logs import DIRECTORY, SMALL, append, batch, open_log, stored_batches
from tests.sim.crashes import Trace, all_images

Written = list[tuple[int, int, bytes]]
"""Offset, epoch, bytes."""


def written(batches: list[Batch]) -> Written:
    return [(one.base_offset, one.leader_epoch, bytes(one.data)) for one in batches]


def lead(trace: Trace) -> Written:
    """Reigns of one batch and of more; one that ends before its batch was synced; rolls in between; a second life."""
    log = open_log(trace.disk)
    for number, epoch in enumerate((1, 1, 2, 4, 4, 5, 8)):
        append(log, batch(b"%d" % number * (700 if number % 3 else 10)), epoch=epoch)
        if number in {1, 3, 4}:
            log.sync()
            trace.promise(number + 1)
        if number == 4:
            log.close()
            log = open_log(trace.disk)
    return written(list(stored_batches(log)))


def follow(trace: Trace) -> Written:
    """What leaders wrote, epoch by epoch and several epochs at once, behind an epoch that began here and wrote nothing:
    it is above theirs."""
    source = open_log(MemoryDisk())
    for number, epoch in enumerate((1, 1, 2, 4, 4, 5, 8)):
        append(source, batch(b"%d" % number * (500 if number % 3 else 10)), epoch=epoch)
    batches = list(stored_batches(source))
    target = Log.open(trace.disk, DIRECTORY, SMALL, 0, first_epoch=3)
    for first, last, is_synced in ((0, 2, True), (2, 3, False), (3, 5, True), (5, 7, False)):
        target.append_as_is(batches[first:last], 0)
        if is_synced:
            target.sync()
            trace.promise(last)
    return written(batches)


@pytest.mark.parametrize("write", [lead, follow])
def test_whenever_it_crashes_a_log_knows_the_epoch_of_all_that_it_has(write: Callable[[Trace], Written]) -> None:
    trace = Trace()
    everything = write(trace)
    for upto, label, image in all_images(trace.disk):
        try:
            log = open_log(image)
            found = list(stored_batches(log))
            assert written(found) == everything[: len(found)], "not a prefix of what was written"
            assert len(found) >= (trace.last_promise(upto) or 0), "something synced is gone"
            assert not log.report.damage, "a crash is no damage"
            assert [log.state.epochs.at(one.base_offset) for one in found] == [one.leader_epoch for one in found]
            known = open_log(image.crashed()).state.epochs.entries()
            assert known == log.state.epochs.entries(), "what was learned is saved before the log is used"
        except AssertionError:
            print(f"crash at {upto}, {label}")
            raise

"""Every crash point of short traces: what was synced is there, and what is there is a prefix of what was appended."""

from dataclasses import replace

import pytest

from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.testing.memory_disk import MemoryDisk
from tests.layers import in_layers
from tests.logs import SMALL, append, batch, numbered, open_log, stored
from tests.sim.crashes import Trace, all_images, images

SIZES = [10, 600, 40, 10, 1300, 20, 700, 30, 500, 900]
PARTS = 8
"""The crashes during recovery are many: they are split so that all cores have some."""


def value(number: int, size: int) -> bytes:
    return f"{number}:".encode().ljust(size, b"x")


def write_some(trace: Trace, options: LogOptions) -> list[bytes]:
    """Appends of one and of several batches, syncs between them, rolls by size; then a clean stop and a second life."""
    log = open_log(trace.disk, options)
    values: list[bytes] = []
    for number, size in enumerate(SIZES):
        added = [value(number, size)] if number % 3 < 2 else [value(number, size), value(number, 5), value(number, 6)]
        append(log, batch(added[0]), *([batch(*added[1:])] if added[1:] else []))
        values += added
        if number % 2:
            log.sync()
            trace.promise(len(values))
        if number == 6:
            log.close()
            trace.promise(len(values))
            log = open_log(trace.disk, options)
    return values


def check(disk: MemoryDisk, values: list[bytes], promised: int) -> Log:
    log = open_log(disk)
    found = stored(log)
    assert found == numbered(values)[: len(found)], "not a prefix of what was appended"
    assert len(found) >= promised, "something synced is gone"
    assert log.end_offset == len(found)
    assert not log.report.damage, "a crash is no damage"
    return log


@pytest.mark.parametrize(
    "options",
    in_layers([SMALL, replace(SMALL, checkpoint_bytes=100_000), replace(SMALL, index_interval_bytes=4096)], first=1),
    ids=["saved often", "saved late", "large blocks"],
)
def test_every_crash_point_leaves_a_prefix_with_all_that_was_synced(options: LogOptions) -> None:
    trace = Trace()
    values = write_some(trace, options)
    for upto, label, image in all_images(trace.disk):
        try:
            log = check(image, values, trace.last_promise(upto) or 0)
            append(log, batch(b"more"))
            log.sync()
            assert stored(open_log(image.crashed(lost=image.unsynced()))) == stored(log), "life goes on"
        except BaseException:
            print(label, *trace.disk.trace()[:upto], sep="\n")
            raise


@pytest.mark.parametrize("part", in_layers(range(PARTS), first=1))
def test_a_crash_during_recovery_changes_nothing(part: int) -> None:
    trace = Trace()
    values = write_some(trace, SMALL)
    for upto in range(part, trace.disk.op_count + 1, PARTS):
        promised = trace.last_promise(upto) or 0
        unsynced = trace.disk.unsynced(upto)
        for lost in ([], unsynced, unsynced[:1], unsynced[-1:]):
            image = trace.disk.crashed(upto, lost=lost)
            once = stored(check(image, values, promised))
            for again in range(image.op_count + 1):
                for label, second in images(image, again):
                    try:
                        assert stored(check(second, values, promised)) == once
                    except BaseException:
                        print(f"{upto} without {lost}, then {label}", *image.trace(), sep="\n")
                        raise

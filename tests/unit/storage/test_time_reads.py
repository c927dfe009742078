"""The log as it stood at a moment."""

from goqueue.records.batch import Codec
from goqueue.storage.log import Log
from goqueue.storage.time_reads import first_at_or_after, records_between
from goqueue.testing.memory_disk import MemoryDisk
from tests.logs import append, batch, open_log

TIMES = [100, 105, 103, 110, 110, 90, 120, 115, 130]


def log_with(times: list[int], codec: Codec = Codec.NONE) -> Log:
    """A record of 150 bytes for each time, so that there are several blocks and segments."""
    log = open_log(MemoryDisk())
    for timestamp in times:
        append(log, batch(b"x" * 150, timestamp=timestamp, codec=codec))
    return log


def test_a_time_leads_to_the_first_record_at_or_after_it() -> None:
    for codec in (Codec.NONE, Codec.ZSTD):
        log = log_with(TIMES, codec)
        assert first_at_or_after(log, 0) == (0, 100)
        assert first_at_or_after(log, 104) == (1, 105)
        assert first_at_or_after(log, 106) == (3, 110)
        assert first_at_or_after(log, 111) == (6, 120)
        assert first_at_or_after(log, 130) == (8, 130)
        assert first_at_or_after(log, 131) is None


def test_the_record_is_found_inside_its_batch() -> None:
    log = open_log(MemoryDisk())
    append(log, batch(b"a", b"b", timestamp=10), batch(b"c", timestamp=20))
    assert first_at_or_after(log, 11) == (2, 20)


def test_a_range_holds_its_start_and_not_its_end() -> None:
    log = log_with(TIMES)
    assert [record.offset for record in records_between(log, 105, 110)] == [1]
    assert [record.offset for record in records_between(log, 110, 131)] == [3, 4, 6, 7, 8]
    assert list(records_between(log, 110, 110)) == []
    assert list(records_between(log, 131, 999)) == []


def test_a_late_record_belongs_to_no_range_that_was_over_when_it_came() -> None:
    log = log_with([100, 200, 110])
    assert [record.offset for record in records_between(log, 100, 150)] == [0]
    assert [record.offset for record in records_between(log, 100, 250)] == [0, 1, 2]


def test_deleted_records_are_not_found_by_time() -> None:
    log = log_with(TIMES)
    log.advance_start(4)
    assert first_at_or_after(log, 0) == (4, 110)

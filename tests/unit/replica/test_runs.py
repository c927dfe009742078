"""Many batches in one write: each of them fares as if it had come alone."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError, LogPoisoned
from goqueue.records.batch import Batch
from goqueue.replica.replica import Appended, Replica
from tests.brokers import Parts
from tests.unit.replica.test_replica import batch, produced

LARGE = 1000

Result = Appended | GoQueueError

plain = st.builds(lambda size: batch(b"x" * size), st.sampled_from([1, 50, LARGE]))
idempotent = st.builds(
    produced, st.integers(0, 6), st.integers(1, 2), producer=st.sampled_from([7, 8]), epoch=st.integers(0, 1)
)
runs = st.lists(st.lists(plain | idempotent, min_size=1, max_size=8), max_size=6)


def copy(one: Batch) -> Batch:
    return one._replace(data=memoryview(bytearray(one.data)))


def shown(results: list[Result]) -> list[object]:
    return [(code_of(one), str(one)) if isinstance(one, GoQueueError) else one for one in results]


def alone(replica: Replica, batches: list[Batch], now_ms: int) -> list[Result]:
    results: list[Result] = []
    for one in batches:
        try:
            results.append(replica.append(one, now_ms))
        except GoQueueError as error:
            results.append(error)
    return results


def stored(replica: Replica) -> list[bytes]:
    return [bytes(one.data) for one in replica.batches_from(0)]


@given(runs, st.sampled_from(["CreateTime", "LogAppendTime"]))
def test_a_run_fares_as_its_batches_would_one_by_one(taken: list[list[Batch]], stamp: str) -> None:
    together, single = (
        Parts().replica(max_message_bytes=str(LARGE), message_timestamp_type=stamp, segment_bytes=str(1 << 20))
        for _ in range(2)
    )
    for number, run in enumerate(taken):
        results = together.append_all([copy(one) for one in run], number)
        assert shown(results) == shown(alone(single, [copy(one) for one in run], number))
    assert stored(together) == stored(single)
    assert together.producers.describe() == single.producers.describe()
    assert together.appended_batches == len(stored(together))
    assert together.appended_bytes == sum(map(len, stored(together)))


def test_a_run_is_one_write() -> None:
    parts = Parts()
    replica = parts.replica()
    replica.append(batch(), 0)
    before = parts.disk.op_count
    replica.append_all([produced(0), batch(), produced(1), produced(1), batch(b"y")], 0)
    assert parts.disk.op_count == before + 1
    assert replica.end_offset == 5


def test_a_disk_without_room_for_all_takes_what_it_has_room_for() -> None:
    parts = Parts()
    replica = parts.replica()
    replica.append(produced(0), 0)
    fault = parts.disk.faults.add("allocate", errno.ENOSPC, forever=True)
    run = [batch(bytes(100_000)), produced(0), batch(b"small"), produced(1)]
    refused, duplicate, *others = replica.append_all(run, 0)
    assert isinstance(refused, GoQueueError)
    assert fault.hits == 2
    assert [duplicate, *others] == [(0, 1, -1), (1, 2, -1), (2, 3, -1)]


def test_a_full_disk_still_knows_what_it_holds() -> None:
    parts = Parts()
    replica = parts.replica()
    replica.append(produced(0, 2), 0)
    parts.disk.capacity_bytes = 0
    replica.log._active.allocated = replica.log._active.size
    with pytest.raises(GoQueueError):
        replica.append(produced(2), 0)
    assert replica.append(produced(0, 2), 0)[:2] == (0, 2)


def test_a_write_that_fails_is_told_to_the_whole_run_and_ends_the_service() -> None:
    parts = Parts()
    replica = parts.replica()
    replica.append(batch(), 0)
    parts.disk.faults.add("write", errno.EIO, suffix=".log")
    with capture_logs():
        results = replica.append_all([batch(), produced(0)], 0)
    assert [type(one) for one in results] == [LogPoisoned] * 2
    assert isinstance(replica.failure, LogPoisoned)


@pytest.mark.parametrize("durability", ["disk", "os"])
@pytest.mark.parametrize("kept_bytes", [0, 100])
def test_nothing_is_remembered_of_a_run_that_was_not_written(durability: str, kept_bytes: int) -> None:
    parts = Parts()
    replica = parts.replica(durability=durability)
    replica.append_all([produced(0), produced(0, producer=8, epoch=3)], 0)
    parts.commit()
    before, stable = replica.producers.describe(), replica.last_stable_offset
    parts.disk.faults.add("write", errno.EIO, suffix=".log", kept_bytes=kept_bytes)
    in_transaction = [produced(number, producer=9, in_transaction=True) for number in (0, 1)]
    run = [produced(1), produced(2), produced(0, producer=8, epoch=4), produced(0, producer=10), *in_transaction]
    with capture_logs():
        assert [type(one) for one in replica.append_all(run, 0)] == [LogPoisoned] * 6
    assert (replica.producers.describe(), replica.last_stable_offset) == (before, stable)


def test_a_failed_log_takes_nothing_for_a_duplicate() -> None:
    """Neither what it could not write nor what it wrote: it cannot say what is on its disk."""
    parts = Parts()
    replica = parts.replica()
    replica.append(produced(0), 0)
    parts.commit()
    parts.disk.faults.add("write", errno.EIO, suffix=".log")
    with capture_logs():
        replica.append_all([produced(1)], 0)
    for number in (0, 1):
        assert [type(one) for one in replica.append_all([produced(number)], 0)] == [LogPoisoned]
        with pytest.raises(LogPoisoned):
            replica.append(produced(number), 0)

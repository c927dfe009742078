"""What a copy remembers of producers as days go by: no less than it must, and not for ever."""

from goqueue.records.batch import Batch, check_batch
from goqueue.records.control import ControlKind
from goqueue.replica.replica import Replica
from goqueue.storage.compaction import compact, install, plan
from tests.brokers import Parts, data
from tests.unit.replica.test_replica import DAY_MS, append, batch, marker

PRODUCER = 7


def in_transaction(timestamp: int = 1000) -> Batch:
    fields = {"producer_id": PRODUCER, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    return check_batch(data(b"x", key=b"filler", timestamp=timestamp, **fields))


def compacted(parts: Parts, replica: Replica, now_ms: int) -> list[int]:
    """Seal the log and compact it, after enough was written to make that worth its work; what is left of PRODUCER."""
    for number in range(100):
        append(replica, batch(b"%d" % number * 50, key=b"filler"), now_ms)
    parts.commit()
    replica.log.roll(now_ms)
    replica.log.sync()
    work = plan(replica.log, now_ms)
    assert work is not None
    manifest = compact(parts.disk, work)
    assert manifest is not None
    assert install(replica.log, manifest)
    return [one.base_offset for one in replica.batches_from(0) if one.producer_id == PRODUCER]


def assert_nothing_is_open(parts: Parts, replica: Replica) -> None:
    again = Parts(parts.disk.crashed()).replica(cleanup_policy="compact")
    assert again.last_stable_offset == again.high_watermark == replica.end_offset


def test_a_transaction_that_ended_behind_the_last_snapshot_is_over_after_a_crash() -> None:
    """Its records may be compacted away and its marker be old: without the marker nobody would know that it ended."""
    parts = Parts()
    replica = parts.replica(cleanup_policy="compact")
    append(replica, in_transaction())
    replica.save_producers()
    replica.append_marker(marker(ControlKind.COMMIT), 0, 0)
    compacted(parts, replica, DAY_MS)
    assert compacted(parts, replica, 3 * DAY_MS) == [1], "only its marker is left"
    assert_nothing_is_open(parts, replica)


def test_a_marker_stays_as_long_as_the_header_of_a_batch_that_it_ends() -> None:
    """A producer says when its records are from, and may say that they are from the future."""
    parts = Parts()
    replica = parts.replica(cleanup_policy="compact")
    append(replica, in_transaction(timestamp=10 * DAY_MS))
    replica.append_marker(marker(ControlKind.COMMIT), 0, 0)
    assert compacted(parts, replica, DAY_MS) == [0, 1]
    assert compacted(parts, replica, 3 * DAY_MS) == [0, 1]
    assert_nothing_is_open(parts, replica)
    assert compacted(parts, replica, 12 * DAY_MS) == []
    assert_nothing_is_open(parts, replica)


def test_transactions_that_nobody_reads_are_not_remembered_for_ever() -> None:
    parts = Parts()
    replica = parts.replica()
    fields = {"producer_id": PRODUCER, "producer_epoch": 0, "transactional": True}
    for number in range(100):
        append(replica, batch(b"x", base_sequence=number, **fields))
        replica.append_marker(marker(ControlKind.COMMIT), 0, 0)
    before = len(replica.producers.encode())
    parts.commit()
    parts.replicas.maintain(parts.clock.now_ms(), parts.clock.monotonic_s())
    assert len(replica.producers.encode()) < before / 2
    assert replica.last_stable_offset == 200

"""One copy of a partition: what is acknowledged and when, who is woken, and what is remembered of producers."""

import errno
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.model.codes import Code
from goqueue.model.errors import LogClosed, LogPoisoned, OffsetOutOfRange
from goqueue.model.refusal import Refused
from goqueue.records.batch import Batch, check_batch
from goqueue.records.control import ControlKind, build_control
from goqueue.replica import replica as replica_module
from goqueue.replica.reads import NO_TIMESTAMP
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Reign
from goqueue.testing import VirtualClock
from tests.brokers import Parts, data
from tests.sim.crashes import Trace, images

DAY_MS = 86_400_000


def batch(*values: bytes, **fields: Any) -> Batch:
    return check_batch(data(*(values or (b"x",)), **fields))


def produced(
    sequence: int, count: int = 1, *, producer: int = 7, epoch: int = 0, in_transaction: bool = False
) -> Batch:
    return batch(
        *[b"%d" % sequence] * count,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=in_transaction,
    )


def marker(kind: ControlKind, producer: int = 7, epoch: int = 0, coordinator_epoch: int = 0) -> Batch:
    made = build_control(
        kind, producer_id=producer, producer_epoch=epoch, coordinator_epoch=coordinator_epoch, timestamp=1
    )
    return check_batch(memoryview(made))


def append(replica: Replica, one: Batch, now_ms: int = 0) -> int:
    return replica.append(one, now_ms).base_offset


def test_the_high_watermark_is_what_survives_the_machine() -> None:
    parts = Parts()
    replica = parts.replica()
    append(replica, batch(b"a", b"b"))
    assert (replica.high_watermark, replica.end_offset) == (0, 2)
    parts.commit()
    assert replica.high_watermark == 2


def test_a_leaders_epoch_counts_from_its_start_and_not_from_its_first_batch() -> None:
    """A client that checks its position against an epoch nobody knows would begin elsewhere."""
    replica = Parts().replica()
    assert replica.epoch_end(replica.leader_epoch) == (replica.leader_epoch, 0)
    append(replica, batch(b"a", b"b"))
    assert replica.epoch_end(replica.leader_epoch) == (replica.leader_epoch, 2)
    replica.lead(Reign(replica.leader_epoch + 2))
    assert replica.epoch_end(replica.leader_epoch) == (replica.leader_epoch, 2)
    assert replica.epoch_end(replica.leader_epoch - 1) == (replica.leader_epoch - 2, 2)
    assert replica.epoch_end(replica.leader_epoch + 1) == (-1, -1)


def test_with_durability_os_it_is_what_was_appended() -> None:
    replica = Parts().replica(durability="os")
    append(replica, batch(b"a"))
    assert replica.high_watermark == 1


def test_those_who_wait_are_called_in_order_and_only_when_it_is_reached() -> None:
    parts = Parts()
    replica = parts.replica()
    called: list[str] = []
    replica.when_reached(0, lambda: called.append("nothing to wait for"))
    for name in "abc":
        appended = replica.append(batch(), 0)
        replica.when_reached(appended.next_offset, lambda name=name: called.append(name))  # type: ignore[misc]
    parts.clock.run()
    assert called == ["nothing to wait for"]
    parts.committer.run_once()
    replica.when_reached(3, lambda: called.append("asked later"))
    append(replica, batch())
    replica.when_reached(4, lambda: called.append("not yet"))
    replica.when_reached(1, lambda: called.append("a duplicate of the first"))
    parts.clock.run()
    assert set(called[1:]) >= {"a", "b", "c", "asked later"}
    assert [one for one in called if one in ("a", "b", "c", "asked later")] == ["a", "b", "c", "asked later"]
    assert "not yet" not in called
    parts.commit()
    assert sorted(called[-2:]) == ["a duplicate of the first", "not yet"]


def test_many_appends_of_one_moment_wake_a_watcher_once() -> None:
    parts = Parts()
    replica = parts.replica(durability="os")
    woken: list[int] = []
    replica.watch("reader", lambda: woken.append(replica.high_watermark))
    for _ in range(5):
        append(replica, batch())
    assert woken == []
    parts.clock.run()
    assert woken == [5]
    replica.unwatch("reader")
    replica.unwatch("reader")
    append(replica, batch())
    parts.clock.run()
    assert woken == [5]


def test_a_watcher_may_leave_while_it_is_woken() -> None:
    parts = Parts()
    replica = parts.replica(durability="os")
    woken: list[str] = []

    def leave(name: str) -> None:
        woken.append(name)
        replica.unwatch("a")
        replica.unwatch("b")

    replica.watch("a", lambda: leave("a"))
    replica.watch("b", lambda: leave("b"))
    append(replica, batch())
    parts.clock.run()
    assert woken[0] == "a"


def test_whoever_waits_learns_that_the_log_failed() -> None:
    parts = Parts()
    replica = parts.replica()
    told: list[type | None] = []
    append(replica, batch())
    replica.when_reached(1, lambda: told.append(type(replica.failure)))
    replica.watch("reader", lambda: told.append(type(replica.failure)))
    parts.disk.faults.add("sync", errno.EIO, suffix=".log")
    with capture_logs():
        parts.commit()
    assert told == [LogPoisoned, LogPoisoned]
    replica.when_reached(9, lambda: told.append(None))
    assert told[-1] is None


def test_whoever_waits_for_a_deleted_log_waits_no_longer() -> None:
    parts = Parts()
    replica = parts.replica()
    told: list[type] = []
    append(replica, batch())
    replica.when_reached(1, lambda: told.append(type(replica.failure)))
    parts.replicas.retire("orders", [0])()
    assert told == [LogClosed]
    assert parts.replicas.get("orders", 0) is None


def test_a_repeated_batch_is_answered_with_where_it_stands() -> None:
    parts = Parts()
    replica = parts.replica()
    first = replica.append(produced(0, 3), 0)
    second = replica.append(produced(3, 2), 0)
    assert replica.append(produced(0, 3), 0)[:2] == first[:2] == (0, 3)
    assert replica.append(produced(3, 2), 0)[:2] == second[:2] == (3, 5)
    assert replica.end_offset == 5
    acknowledged: list[int] = []
    replica.when_reached(3, lambda: acknowledged.append(3))
    assert acknowledged == [], "the first one is not durable either"
    parts.commit()
    assert acknowledged == [3]


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (produced(5), Code.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (produced(0, epoch=0, producer=8), Code.INVALID_PRODUCER_EPOCH),
    ],
)
def test_what_a_producer_may_not_do_is_refused_and_not_stored(one: Batch, code: Code) -> None:
    replica = Parts().replica()
    append(replica, produced(0))
    append(replica, produced(0, producer=8, epoch=1))
    with pytest.raises(Refused) as refused:
        replica.append(one, 0)
    assert refused.value.code is code
    assert replica.end_offset == 2


def test_a_topic_may_stamp_records_itself() -> None:
    parts = Parts()
    replica = parts.replica(message_timestamp_type="LogAppendTime")
    assert replica.append(batch(timestamp=5), 4000).append_time == 4000
    parts.commit()
    piece = replica.read(0, 1000, 1)
    assert piece is not None
    stored = check_batch(memoryview(piece.read()))
    assert (stored.max_timestamp, stored.is_append_time) == (4000, True)
    assert parts.replica("plain").append(batch(timestamp=5), 4000).append_time == NO_TIMESTAMP


def test_a_repeated_batch_is_told_when_it_was_first_appended() -> None:
    parts = Parts()
    replica = parts.replica("stamped", message_timestamp_type="LogAppendTime")
    first = replica.append(produced(0), 4000)
    replica.append(produced(1), 5000)
    assert replica.append(produced(0), 6000) == first == (0, 1, 4000)
    replica.close()
    again = Parts(parts.disk.crashed()).replica("stamped", message_timestamp_type="LogAppendTime")
    assert again.append(produced(0), 7000) == first
    plain = parts.replica("plain")
    plain.append(produced(0), 4000)
    assert plain.append(produced(0), 6000).append_time == NO_TIMESTAMP


def test_a_marker_asked_for_again_is_written_once() -> None:
    replica = Parts().replica()
    append(replica, produced(0, in_transaction=True))
    assert replica.last_stable_offset == 0
    assert replica.append_marker(marker(ControlKind.COMMIT), 0, 0) is not None
    assert replica.append_marker(marker(ControlKind.COMMIT), 0, 0) is None
    assert replica.end_offset == 2


def test_a_marker_of_an_older_coordinator_or_producer_is_refused() -> None:
    replica = Parts().replica()
    append(replica, produced(0, epoch=1, in_transaction=True))
    with pytest.raises(Refused) as refused:
        replica.append_marker(marker(ControlKind.ABORT, epoch=0), 0, 0)
    assert refused.value.code is Code.INVALID_PRODUCER_EPOCH
    replica.append_marker(marker(ControlKind.COMMIT, epoch=1, coordinator_epoch=5), 5, 0)
    with pytest.raises(Refused) as refused:
        replica.append_marker(marker(ControlKind.COMMIT, epoch=2, coordinator_epoch=4), 4, 0)
    assert refused.value.code is Code.TRANSACTION_COORDINATOR_FENCED


def test_the_last_stable_offset_stays_before_an_open_transaction() -> None:
    parts = Parts()
    replica = parts.replica()
    append(replica, batch())
    append(replica, produced(0, 2, in_transaction=True))
    append(replica, batch())
    parts.commit()
    assert (replica.last_stable_offset, replica.high_watermark) == (1, 4)
    replica.append_marker(marker(ControlKind.ABORT), 0, 0)
    parts.commit()
    assert (replica.last_stable_offset, replica.high_watermark) == (5, 5)
    assert list(replica.producers.open_transactions.aborted_in(0, 4)) == [(7, 1)]


def test_records_are_deleted_up_to_the_high_watermark_and_not_beyond() -> None:
    parts = Parts()
    replica = parts.replica()
    append(replica, batch(b"a", b"b", b"c"))
    with pytest.raises(OffsetOutOfRange):
        replica.delete_before(1)
    parts.commit()
    replica.delete_before(2)
    assert replica.start_offset == 2
    replica.delete_before(1)
    assert replica.start_offset == 2


def test_a_producer_that_was_silent_for_a_day_is_forgotten() -> None:
    parts = Parts()
    replica = parts.replica()
    append(replica, produced(0), parts.clock.now_ms())
    now_ms = parts.clock.now_ms()
    parts.replicas.maintain(now_ms, 0)
    parts.replicas.maintain(now_ms, (DAY_MS - 1) / 1000)
    assert len(replica.producers.describe()) == 1
    parts.replicas.maintain(now_ms, DAY_MS / 1000)
    assert replica.producers.describe() == []


def test_producers_that_cannot_be_saved_cost_only_time() -> None:
    parts = Parts()
    replica = parts.replica()
    other = parts.replica("other")
    for one in (replica, other):
        append(one, produced(0))
    parts.commit()
    fault = parts.disk.faults.add("create", errno.ENOSPC, prefix="logs/orders", suffix=".tmp", forever=True)
    with capture_logs() as told:
        parts.replicas.close()
    assert fault.hits == 1
    assert [event["event"] for event in told if event["log_level"] == "error"] == ["producers not saved"]
    parts.disk.faults.clear()
    again = Parts(parts.disk)
    for topic in ("orders", "other"):
        assert again.replica(topic).append(produced(0), 0).base_offset == 0


def states(replica: Replica) -> Any:
    return sorted(replica.producers.describe()), replica.last_stable_offset


STEPS = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from(["plain", "send", "begin", "commit", "abort", "bump", "save", "stop"])
    ),
    max_size=25,
)


@given(STEPS)
def test_a_snapshot_and_the_log_behind_it_give_what_the_whole_log_gives(steps: list[tuple[int, str]]) -> None:
    parts = Parts()
    replica = parts.replica()
    epochs, sequences = dict.fromkeys((1, 2, 3), 0), dict.fromkeys((1, 2, 3), 0)
    for producer, step in steps:
        epoch = epochs[producer]
        is_open = producer in replica.producers.open_transactions
        if step == "plain":
            append(replica, batch())
        elif step in ("send", "begin"):
            in_transaction = is_open or step == "begin"
            append(
                replica, produced(sequences[producer], producer=producer, epoch=epoch, in_transaction=in_transaction)
            )
            sequences[producer] += 1
        elif step in ("commit", "abort") and is_open:
            kind = ControlKind.COMMIT if step == "commit" else ControlKind.ABORT
            replica.append_marker(marker(kind, producer, epoch), 0, 0)
        elif step == "bump" and not is_open:
            epochs[producer] += 1
            sequences[producer] = 0
        elif step == "save":
            replica.save_producers()
        elif step == "stop":
            parts.replicas.close()
            parts = Parts(parts.disk)
            replica = parts.replica()
    replica.sync()
    now = states(replica)
    again = Parts(parts.disk.crashed()).replica()
    assert states(again) == now
    bare = parts.disk.crashed()
    for name in bare.list("logs/orders/0"):
        if name.startswith("snapshot"):
            bare.remove(f"logs/orders/0/{name}")
    assert states(Parts(bare).replica()) == now


def test_producers_are_saved_when_much_was_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "SNAPSHOT_BYTES", 1000)
    parts = Parts()
    replica = parts.replica()
    for number in range(20):
        append(replica, produced(number))
    assert not any(name.startswith("snapshot") for name in parts.disk.list("logs/orders/0"))
    parts.clock.run()
    assert not any(name.startswith("snapshot") for name in parts.disk.list("logs/orders/0"))  # it could be lost yet
    parts.commit()
    assert any(name.startswith("snapshot-producers") for name in parts.disk.list("logs/orders/0"))


def test_a_crash_at_every_operation_keeps_producers_and_log_together() -> None:
    """Whatever batch is in the log is known as a duplicate, and the next one is taken: never lost, never twice."""
    trace = Trace()
    parts = Parts(trace.disk, VirtualClock())
    replica = parts.replica()
    since = trace.disk.op_count
    for number in range(6):
        append(replica, produced(number))
        if number % 2:
            parts.commit()
            trace.promise(number + 1)
        if number == 2:
            replica.save_producers()
    parts.replicas.close()
    for upto in range(since, trace.disk.op_count + 1):
        for label, image in images(trace.disk, upto):
            again = Parts(image).replica()
            kept = again.end_offset
            assert kept >= (trace.last_promise(upto) or 0), label
            for number in range(max(0, kept - 5), kept):
                assert again.append(produced(number), 0).base_offset == number, label
            assert again.append(produced(kept), 0).base_offset == kept, label

"""Who waits is told once: that it is acknowledged, that it never will be, or that it took too long."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.broker.publishing.acknowledgements import OUTLIVING_MS, SWEEP_MS, Acknowledgements
from goqueue.model.codes import Code
from goqueue.replica.replica import Replica
from tests.brokers import Parts
from tests.unit.replica.test_replica import append, batch


def waiting(timeout_ms: int = 1000) -> tuple[Parts, Replica, Acknowledgements, list[Code]]:
    parts = Parts()
    replica = parts.replica()
    append(replica, batch())
    acknowledgements = Acknowledgements(parts.clock)
    told: list[Code] = []
    acknowledgements.wait(replica, replica.end_offset, timeout_ms, told.append)
    return parts, replica, acknowledgements, told


def test_it_is_told_when_it_is_durable_and_no_timer_is_left() -> None:
    parts, _, acknowledgements, told = waiting()
    assert told == []
    parts.commit()
    assert told == [Code.NONE]
    parts.clock.advance(10_000)
    assert told == [Code.NONE]
    assert (len(acknowledgements), parts.clock.timers) == (0, 0)


def test_what_is_durable_already_is_told_at_once_and_starts_no_timer() -> None:
    parts, replica, acknowledgements, told = waiting()
    parts.commit()
    parts.clock.advance(10_000)
    acknowledgements.wait(replica, replica.end_offset, 1000, told.append)
    assert told == [Code.NONE] * 2
    assert parts.clock.timers == 0


def test_a_log_that_fails_is_told() -> None:
    parts, _, _, told = waiting()
    parts.disk.faults.add("sync", errno.EIO)
    with capture_logs():
        parts.commit()
    assert told == [Code.KAFKA_STORAGE_ERROR]


@pytest.mark.parametrize("timeout_ms", [-1, 0, 1, 99, 100, 101, 1000])
def test_too_late_is_told_once(timeout_ms: int) -> None:
    parts, _, acknowledgements, told = waiting(timeout_ms)
    parts.clock.advance(max(0, timeout_ms - 1))
    assert told == []
    parts.clock.advance(1 + 2 * SWEEP_MS)
    assert told == [Code.REQUEST_TIMED_OUT]
    parts.commit()
    parts.clock.advance(10_000)
    assert told == [Code.REQUEST_TIMED_OUT]
    assert (len(acknowledgements), parts.clock.timers) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 1000)), min_size=1, max_size=20))
def test_nobody_is_told_too_early_or_much_too_late(asked: list[tuple[int, int]]) -> None:
    parts, replica, acknowledgements, _ = waiting()
    late: list[float] = []
    for pause_ms, timeout_ms in asked:
        parts.clock.advance(pause_ms)
        due_ms = parts.clock.now_ms() + timeout_ms
        acknowledgements.wait(
            replica,
            1,
            timeout_ms,
            lambda code, due_ms=due_ms: late.append(parts.clock.now_ms() - due_ms),  # type: ignore[misc]
        )
    parts.clock.advance(5000)
    assert len(late) == len(asked)
    assert 0 <= min(late)
    assert max(late) <= 2 * SWEEP_MS


def test_one_who_fails_when_told_costs_the_others_nothing() -> None:
    parts, replica, acknowledgements, told = waiting()

    def fail(_: Code) -> None:
        raise ZeroDivisionError

    for on_end in (fail, told.append):
        acknowledgements.wait(replica, replica.end_offset, 1000, on_end)
    acknowledgements.wait(replica, replica.end_offset, 5000, told.append)
    with pytest.raises(ZeroDivisionError):
        parts.clock.advance(2000)
    assert told == [Code.REQUEST_TIMED_OUT] * 2
    parts.clock.advance(6000)
    assert told == [Code.REQUEST_TIMED_OUT] * 3


def test_who_waits_when_the_leader_changes_is_told_that_it_may_have_been_stored() -> None:
    """Kafka clients take `NOT_LEADER_OR_FOLLOWER` for not stored; this may be."""
    parts, replica, acknowledgements, told = waiting(60_000)
    replica.follow(replica.leader_epoch + 1, leader=2)
    parts.commit()
    parts.clock.advance(OUTLIVING_MS - 1)
    assert told == []
    parts.clock.advance(1)
    assert (told, len(acknowledgements)) == ([Code.REQUEST_TIMED_OUT], 0)
    replica.learn_watermark(replica.end_offset)
    parts.clock.advance(10_000)
    assert told == [Code.REQUEST_TIMED_OUT]


def test_what_the_next_leader_has_committed_is_acknowledged() -> None:
    """So that its client need not send it again, to a node that does not lead any more."""
    parts, replica, acknowledgements, told = waiting(60_000)
    replica.follow(replica.leader_epoch + 1, leader=2)
    parts.commit()
    assert told == []
    replica.learn_watermark(replica.end_offset)
    parts.clock.advance(1)
    assert (told, len(acknowledgements)) == ([Code.NONE], 0)


def test_what_the_next_leader_does_not_have_is_never_acknowledged() -> None:
    parts, replica, acknowledgements, told = waiting(60_000)
    replica.follow(replica.leader_epoch + 1, leader=2)
    parts.commit()
    replica.truncate(0)
    replica.append_copied([batch()], leader_watermark=1, now_ms=0)
    parts.commit()
    replica.learn_watermark(replica.end_offset)
    parts.clock.advance(1)
    assert (told, len(acknowledgements)) == ([Code.REQUEST_TIMED_OUT], 0)

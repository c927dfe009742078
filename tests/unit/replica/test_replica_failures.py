"""What fails beside one copy of a partition, or in it, costs nobody else anything and is not taken for done."""

import errno

import pytest
from structlog.testing import capture_logs

from goqueue.model.errors import LogPoisoned
from goqueue.records.control import ControlKind
from tests.brokers import Parts
from tests.unit.replica.test_replica import append, batch, marker, produced


def test_a_waiter_that_fails_costs_the_others_nothing() -> None:
    parts = Parts()
    replica = parts.replica()
    called: list[str] = []

    def fail() -> None:
        called.append("failed")
        raise ZeroDivisionError

    append(replica, batch())
    for call in (fail, lambda: called.append("second"), fail, lambda: called.append("fourth")):
        replica.when_reached(1, call)
    replica.watch("one", fail)
    replica.watch("two", lambda: called.append("watcher"))
    with capture_logs() as told, pytest.raises(ZeroDivisionError):
        parts.commit()
    assert called == ["failed", "second", "failed", "fourth", "failed", "watcher"]
    assert [event["event"] for event in told] == ["callback failed"] * 2, "the first is raised"


def test_a_log_goes_on_when_its_progress_cannot_be_noted() -> None:
    parts = Parts()
    replica = parts.replica()
    reached: list[int] = []

    def note(*_: object) -> None:
        raise ZeroDivisionError

    replica.persisted.on_persisted = note
    append(replica, batch())
    replica.when_reached(1, lambda: reached.append(1))
    with capture_logs() as told:
        parts.commit()
    assert (reached, replica.failure) == ([1], None)
    assert [event["event"] for event in told] == ["persisted records not noted"]


def test_a_marker_that_could_not_be_synced_is_not_said_to_be_there() -> None:
    parts = Parts()
    replica = parts.replica()
    append(replica, produced(0, in_transaction=True))
    parts.commit()
    parts.disk.faults.add("sync", errno.EIO, suffix=".log")
    replica.append_marker(marker(ControlKind.COMMIT), 0, 0)
    with capture_logs():
        parts.commit()
    with pytest.raises(LogPoisoned):
        replica.append_marker(marker(ControlKind.COMMIT), 0, 0)

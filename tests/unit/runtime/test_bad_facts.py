"""Replay survives a fact that it cannot read or apply: it is left out, counted and told, and the others are kept."""

import msgspec
import pytest
from crc32c import crc32c
from structlog.testing import capture_logs

from goqueue.machines.machine import Fact
from goqueue.records.batch import check_batch
from goqueue.records.build import build_batch
from goqueue.runtime import unread
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Ledger
from tests.unit.runtime.shelf import Drop, Library, Put, Shelf, Stored

UNREADABLE = {
    "no msgpack": (b"a", b"\xc1"),
    "a fact of another machine": (b"a", msgspec.msgpack.encode({"type": "TopicStored", "name": "a"})),
    "a field of another type": (b"a", msgspec.msgpack.encode({"type": "Stored", "name": 7, "value": "x"})),
    "empty": (b"a", b""),
    "a key that is no text": (b"\xff\xfe", None),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_replay_skips_what_it_cannot_read_and_tells(kind: str) -> None:
    library = Library()
    library.submit(Put("a", 1))
    key, value = UNREADABLE[kind]
    library.ledger_replica.append(check_batch(memoryview(build_batch([(0, key, value, [])]))), 0)
    library.submit(Put("b", 2))
    library.commit()
    with capture_logs() as told:
        again = library.again()
    assert again.shelf.plain == {"a": 1, "b": 2}
    assert again.coordinator.skipped_facts == 1
    assert [(each["ledger"], each["where"]) for each in told if each["event"] == "fact skipped"] == [
        ("@shelf/0", "at 1")
    ]
    again.submit(Put("c", 3))
    again.commit()
    assert again.again().shelf.plain == {"a": 1, "b": 2, "c": 3}


def test_replay_skips_what_the_machine_cannot_apply() -> None:
    library = Library()
    for number, name in enumerate("abc"):
        library.submit(Put(name, number))
    library.commit()

    class Picky(Shelf):
        def apply(self, fact: Fact) -> None:
            if isinstance(fact, Stored) and fact.name == "b":
                raise AssertionError("nobody knows b")
            super().apply(fact)

    shelf = Picky()
    coordinator = Coordinator("shelf", lambda: shelf, Ledger(library.ledger_replica, "shelf", (Stored,)), library.clock)
    coordinator.load_now()
    assert (shelf.plain, coordinator.skipped_facts) == ({"a": 0, "c": 2}, 1)


def test_a_batch_that_cannot_be_opened_costs_its_own_facts_only() -> None:
    library = Library()
    library.submit(Put("a", 1))
    batch = bytearray(build_batch([(0, b"x", b"y", []), (0, b"x", b"z", [])]))
    batch[61] = 0x7E  # the length of its first record; the checksum is made to fit
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    library.ledger_replica.append(check_batch(memoryview(batch)), 0)
    library.submit(Put("b", 2))
    library.commit()
    again = library.again()
    assert (again.shelf.plain, again.coordinator.skipped_facts) == ({"a": 1, "b": 2}, 2)


def test_a_fact_of_a_snapshot_that_cannot_be_read_is_skipped() -> None:
    library = Library()
    library.submit(Put("a", 1))
    library.commit()
    snapshots = library.ledger_replica.snapshots("shelf")
    snapshots.save(1, 5, [(b"a", library.ledger._encoder.encode(Stored("a", 1, -1))), (b"b", b"\xc1")])
    again = library.again()
    assert (again.shelf.plain, again.coordinator.skipped_facts) == ({"a": 1}, 1)


def test_many_skipped_facts_do_not_fill_the_log() -> None:
    library = Library()
    library.ledger_replica.append(check_batch(memoryview(build_batch([(0, b"a", b"\xc1", [])] * 5000))), 0)
    library.commit()
    with capture_logs() as told:
        again = library.again()
    assert again.coordinator.skipped_facts == 5000
    assert len([each for each in told if each["event"] == "fact skipped"]) == 10


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_snapshot_carries_what_its_machine_could_not_read_so_that_every_load_tells_of_it(kind: str) -> None:
    library = Library()
    library.submit(Put("a", 1))
    key, value = UNREADABLE[kind]
    library.ledger_replica.append(check_batch(memoryview(build_batch([(0, key, value, [])]))), 0)
    library.commit()
    for _ in range(3):
        library = library.again()
        assert (library.shelf.plain, library.coordinator.skipped_facts) == ({"a": 1}, 1)
        library.coordinator.stop()
        assert library.ledger_replica.snapshots("shelf").latest(up_to=2) is not None


def test_what_could_not_be_applied_is_applied_by_a_later_load_though_there_was_a_snapshot() -> None:
    library = Library()
    for number, name in enumerate("abc"):
        library.submit(Put(name, number))
    library.commit()

    class Picky(Shelf):
        def apply(self, fact: Fact) -> None:
            if isinstance(fact, Stored) and fact.name == "b":
                raise AssertionError("nobody knows b")
            super().apply(fact)

    older = Coordinator("shelf", Picky, Ledger(library.ledger_replica, "shelf", (Stored,)), library.clock)
    for _ in range(2):
        older.load_now()
        assert (older.peek().plain, older.skipped_facts) == ({"a": 0, "c": 2}, 1)
        older.stop()
    assert older.skipped_facts_total == 2, "a counter never goes back"
    newer = library.again()
    assert (newer.shelf.plain, newer.coordinator.skipped_facts) == ({"a": 0, "b": 1, "c": 2}, 0)
    assert newer.shelf.places == {"b": 1}, "where it lies in the ledger"


@pytest.mark.parametrize("later", [Put("b", 7), Drop("b")])
def test_what_could_not_be_read_is_over_once_its_key_was_written_again(later: Put | Drop) -> None:
    library = Library()
    library.ledger_replica.append(check_batch(memoryview(build_batch([(0, b"b", b"\xc1", [])]))), 0)
    library.commit()
    again = library.again()
    assert again.coordinator.skipped_facts == 1
    again.submit(later)
    again.commit()
    again.coordinator.stop()
    last = again.again()
    assert (last.shelf.plain, last.coordinator.skipped_facts) == ({"b": 7} if isinstance(later, Put) else {}, 0)


def test_a_fact_of_a_snapshot_that_cannot_be_read_is_carried_to_the_next() -> None:
    library = Library()
    library.submit(Put("a", 1))
    library.commit()
    encoded = library.ledger._encoder.encode(Stored("a", 1, -1))
    library.ledger_replica.snapshots("shelf").save(1, 5, [(b"a", encoded), (b"b", b"\xc1")])
    for _ in range(3):
        library = library.again()
        assert (library.shelf.plain, library.coordinator.skipped_facts) == ({"a": 1}, 1)
        library.submit(Put("a", 1))
        library.commit()
        library.coordinator.stop()


def test_more_than_a_snapshot_carries_stays_in_the_log_and_no_snapshot_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "BYTES_MAX", 1000)
    library = Library()
    library.submit(Put("a", 1))
    library.ledger_replica.append(check_batch(memoryview(build_batch([(0, b"b", b"\xc1" * 1000, [])]))), 0)
    library.commit()
    for _ in range(2):
        library = library.again()
        assert (library.shelf.plain, library.coordinator.skipped_facts) == ({"a": 1}, 1)
        library.coordinator.stop()
        assert library.ledger_replica.snapshots("shelf").latest(up_to=2) is None
    library = library.again()
    library.submit(Put("b", 2))
    library.commit()
    library.coordinator.stop()
    assert library.ledger_replica.snapshots("shelf").latest(up_to=3) is not None

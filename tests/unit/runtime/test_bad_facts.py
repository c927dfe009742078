"""Replay survives a fact that it cannot read or apply: it is left out, counted and told, and the others are kept."""

import msgspec
import pytest
from crc32c import crc32c
from structlog.testing import capture_logs

from goqueue.machines.machine import Fact
from goqueue.records.batch import check_batch
from goqueue.records.build import build_batch
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Ledger
from tests.unit.runtime.shelf import Library, Put, Shelf, Stored

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

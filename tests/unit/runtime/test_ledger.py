"""A ledger rebuilds its machine: from its records, from a snapshot and the records behind it, after any crash."""

import errno
from collections.abc import Iterator
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from goqueue.machines.machine import Fact
from goqueue.model.refusal import NotLeader
from goqueue.records.decode import decode
from goqueue.replica.roles import Reign
from goqueue.runtime import ledger as ledger_module
from goqueue.runtime.ledger import SNAPSHOT_AT_LATEST_MS, SNAPSHOT_EVERY_MS, SNAPSHOT_EVERY_RECORDS
from goqueue.storage.compaction import compact, install, plan
from goqueue.storage.options import DAY_MS
from tests.sim.crashes import Trace, images
from tests.unit.runtime.shelf import Drop, Library, Put, Shelf, Stored, WaitFor

COMMANDS = st.one_of(
    st.builds(Put, st.sampled_from("abc"), st.integers(0, 99)),
    st.builds(Drop, st.sampled_from("abc")),
    st.just("stop"),
)


@given(st.lists(COMMANDS, max_size=25))
def test_a_restart_finds_what_was_there(commands: list[Put | Drop | str]) -> None:
    library = Library()
    for command in commands:
        if command == "stop":
            library.coordinator.stop()
            library = library.again()
        else:
            library.submit(command)
    library.commit()
    assert library.again().shelf.plain == library.shelf.plain


def test_a_snapshot_is_made_after_so_many_records() -> None:
    library = Library()
    for number in range(SNAPSHOT_EVERY_RECORDS - 1):
        library.coordinator.submit(Put("a", number))
    library.commit()
    assert library.snapshots() == []
    library.submit(Put("a", -1))
    assert library.snapshots() == [], "the ledger could still lose what it knows"
    library.commit()
    assert library.snapshots() == [f"snapshot-shelf-{SNAPSHOT_EVERY_RECORDS:020d}-{library.clock.now_ms()}.bin"]
    library.submit(Put("b", 5))
    library.commit()
    assert library.again().shelf.plain == {"a": -1, "b": 5}


def test_a_snapshot_is_made_after_so_long_if_there_is_news() -> None:
    library = Library()
    library.submit(Put("a", 1))
    library.clock.advance(SNAPSHOT_EVERY_MS - 1)
    library.submit(Put("a", 2))
    assert library.snapshots() == []
    library.clock.advance(1)
    library.submit(WaitFor("x"))
    library.commit()
    assert len(library.snapshots()) == 1
    library.clock.advance(SNAPSHOT_EVERY_MS)
    library.submit(WaitFor("x"))
    assert len(library.snapshots()) == 1, "there was nothing new"


class Packed(Stored, frozen=True, tag="Packed"):
    """One fact for many."""

    def weight(self) -> int:
        return SNAPSHOT_EVERY_RECORDS + 500


class LargeShelf(Shelf):
    def facts(self) -> Iterator[Fact]:
        for one in self.values.values():
            yield Packed(one.name, one.value, one.spoils_ms)


def test_a_large_state_is_saved_after_as_many_new_records_however_few_facts_its_snapshot_has() -> None:
    library = Library()
    library.coordinator._machine = LargeShelf()
    library.coordinator.submit(Put("a", 0))
    library.ledger.snapshot(library.shelf, library.clock.now_ms())
    for number in range(SNAPSHOT_EVERY_RECORDS + 499):
        library.coordinator.submit(Put("a", number))
    library.commit()
    assert len(library.snapshots()) == 1
    library.coordinator.submit(Put("a", 0))
    library.commit()
    assert len(library.snapshots()) == 2


def test_a_large_state_with_little_news_is_saved_before_compaction_can_drop_a_tombstone() -> None:
    """After a day the tombstone may be gone from the ledger: a snapshot from before it would bring back "b"."""
    library = Library()
    library.coordinator._machine = LargeShelf()
    for name in "ab":
        library.coordinator.submit(Put(name, 0))
    library.ledger.snapshot(library.shelf, library.clock.now_ms())
    library.coordinator.submit(Drop("b"))
    library.clock.advance(SNAPSHOT_EVERY_MS)
    library.coordinator.submit(Put("a", 1))
    library.commit()
    assert len(library.snapshots()) == 1
    library.clock.advance(SNAPSHOT_AT_LATEST_MS - SNAPSHOT_EVERY_MS)
    library.coordinator.submit(Put("a", 2))
    library.commit()
    assert len(library.snapshots()) == 2


def test_the_last_three_snapshots_are_kept() -> None:
    library = Library()
    for number in range(5):
        library.clock.advance(SNAPSHOT_EVERY_MS)
        library.submit(Put("a", number))
        library.commit()
    assert [int(name.split("-")[2]) for name in library.snapshots()] == [3, 4, 5]


def test_a_snapshot_never_knows_what_the_ledger_could_lose() -> None:
    """Whenever one is on the disk, the ledger holds, synced, everything it knows."""
    trace = Trace()
    library = Library(trace.disk)
    for number in range(4):
        library.clock.advance(SNAPSHOT_EVERY_MS)
        library.submit(Put("a", number))
        library.submit(Put("b", number))
        if number != 2:
            library.commit()
    library.coordinator.stop()
    for upto in range(trace.disk.op_count + 1):
        for label, image in images(trace.disk, upto):
            names = [name for name in image.list("logs/@shelf/0") if name.startswith("snapshot-shelf")]
            offsets = [int(name.split("-")[2]) for name in names if name.endswith(".bin")]
            if offsets:
                assert Library(image).ledger_replica.end_offset >= max(offsets), label


def test_a_snapshot_that_cannot_be_saved_costs_only_time() -> None:
    library = Library()
    library.submit(Put("a", 1))
    fault = library.disk.faults.add("create", errno.EIO, suffix=".tmp", forever=True)
    library.clock.advance(SNAPSHOT_EVERY_MS)
    with capture_logs() as told:
        replies = library.submit(Put("a", 2))
        library.commit()
        library.coordinator.stop()
    assert replies == [2]
    assert fault.hits == 2
    assert [event["event"] for event in told] == ["snapshot not saved"] * 2
    assert library.again().shelf.plain == {"a": 2}


def test_a_snapshot_is_made_bit_by_bit_and_knows_nothing_that_came_later() -> None:
    library = Library()
    for number in range(10):
        library.submit(Put(f"{number}", number))
    library.commit()
    library.clock.advance(SNAPSHOT_EVERY_MS)
    with patch.object(ledger_module, "SLICE_WEIGHT", 2):
        library.submit(Put("0", 100))
        library.submit(Put("9", 900))  # while it is under way
        library.submit(Drop("8"))
        library.commit()
    (name,) = library.snapshots()
    snapshot = library.ledger_replica.snapshots("shelf").latest(up_to=1000)
    assert snapshot is not None
    assert snapshot.offset == 11
    assert dict(snapshot.entries).keys() == {f"{number}".encode() for number in range(10)}
    assert b"900" not in dict(snapshot.entries)[b"9"]
    assert library.again().shelf.plain == {f"{number}": number for number in range(1, 8)} | {"0": 100, "9": 900}, name


def test_a_stop_overtakes_a_snapshot_that_is_under_way() -> None:
    library = Library()
    for number in range(10):
        library.submit(Put(f"{number}", number))
    library.clock.advance(SNAPSHOT_EVERY_MS)
    with patch.object(ledger_module, "SLICE_WEIGHT", 2):
        library.submit(Put("0", 100))
        library.submit(Put("1", 101))
        library.coordinator.stop()
        library.commit()
    assert [int(name.split("-")[2]) for name in library.snapshots()] == [12]


def test_a_ledger_that_fails_while_a_snapshot_waits_for_it_saves_none() -> None:
    library = Library()
    library.clock.advance(SNAPSHOT_EVERY_MS)
    library.submit(Put("a", 1))
    library.disk.faults.add("sync", errno.EIO, suffix=".log")
    with capture_logs() as told:
        library.commit()
    assert library.snapshots() == []
    assert "snapshot not saved" in [event["event"] for event in told]


def test_a_damaged_snapshot_is_passed_over_for_the_one_before() -> None:
    library = Library()
    for number in range(3):
        library.clock.advance(SNAPSHOT_EVERY_MS)
        library.submit(Put(f"{number}", number))
    library.submit(Drop("0"))
    library.coordinator.stop()
    newest = library.snapshots()[-1]
    library.disk.flip_bit(f"logs/@shelf/0/{newest}", 400)
    with capture_logs() as told:
        assert library.again().shelf.plain == {"1": 1, "2": 2}
    assert [event["event"] for event in told if event["log_level"] == "error"] == ["snapshot passed over"]


def test_facts_know_their_place_now_and_after_a_restart() -> None:
    library = Library()
    for number, name in enumerate("abcab"):
        library.submit(Put(name, number))
        library.submit(WaitFor("x"))  # stores nothing
    library.submit(Drop("c"))
    library.commit()
    assert library.shelf.places == {"a": 3, "b": 4, "c": 2}
    again = library.again()
    assert again.shelf.places == library.shelf.places
    for name in "ab":
        fact = again.coordinator.read_fact(again.shelf.places[name])
        assert fact == again.shelf.values[name]


def test_what_lies_in_the_ledger_can_be_read_back_and_every_batch_is_opened_once() -> None:
    library = Library()
    for number in range(3000):
        library.coordinator.submit(Put(f"{number}", number))
    library.ledger.append([Stored(f"{number}", number) for number in range(3000, 3100)], 0)
    library.submit(Drop("5"))
    library.commit()
    offsets = [0, 5, 2999, 3005, 3000, 3099, 7, 7, 3100, -1, 9999]
    with patch.object(ledger_module, "decode", wraps=decode) as opened:
        found = library.coordinator.read_facts(offsets)
    assert found == {offset: Stored(f"{offset}", offset) for offset in (0, 5, 7, 2999, 3000, 3005, 3099)}
    assert opened.call_count == 6, "0, 5, 7, 2999, the many, the tombstone"
    assert library.coordinator.read_facts([]) == {}
    assert library.coordinator.read_fact(3100) is None, "a tombstone"
    assert library.coordinator.read_fact(10**6) is None


def test_what_compaction_took_cannot_be_read_back_and_the_rest_lies_where_it_lay() -> None:
    library = Library()
    for number in range(2000):
        library.submit(Put(f"{number % 7}", number))
    library.commit()
    log = library.ledger_replica.log
    log.roll(library.clock.now_ms())
    log.sync()
    work = plan(log, library.clock.now_ms())
    assert work is not None
    manifest = compact(library.disk, work)
    assert manifest is not None
    assert install(log, manifest)
    found = library.ledger.read_facts(range(2000))
    places = sorted(library.shelf.places.values())
    assert [offset for offset in sorted(found) if offset >= 1990] == [
        offset for offset in range(1990, 2000) if offset in places
    ]
    for name, place in library.shelf.places.items():
        assert library.ledger.read_fact(place) == library.shelf.values[name]


def test_a_compacted_ledger_gives_the_same_machine() -> None:
    library = Library()
    for number in range(2000):
        library.submit(Put(f"{number % 7}", number))
    library.submit(Drop("3"))
    library.commit()
    log = library.ledger_replica.log
    log.roll(library.clock.now_ms())
    log.sync()
    work = plan(log, library.clock.now_ms())
    assert work is not None
    manifest = compact(library.disk, work)
    assert manifest is not None
    assert install(log, manifest)
    again = library.again()
    assert again.shelf.plain == library.shelf.plain
    assert set(again.shelf.plain) == {"0", "1", "2", "4", "5", "6"}


def test_a_crash_at_every_operation_leaves_what_the_given_replies_promised() -> None:
    trace = Trace()
    library = Library(trace.disk)
    since = trace.disk.op_count
    given_replies: list[int] = []
    states: list[dict[str, int]] = [{}]
    for number in range(8):
        if number == 5:
            library.clock.advance(SNAPSHOT_EVERY_MS)  # a snapshot among them
        command = Drop("a") if number == 3 else Put("ab"[number % 2], number)
        library.coordinator.submit(command, lambda reply, number=number: given_replies.append(number))  # type: ignore[misc]
        states.append(library.shelf.plain)
        if number % 2:
            library.commit()
            trace.promise(len(given_replies))
    assert given_replies == list(range(8))
    for upto in range(since, trace.disk.op_count + 1):
        promised = trace.last_promise(upto) or 0
        for label, image in images(trace.disk, upto):
            found = Library(image).shelf.plain
            assert found in states[promised:], f"{label}: {found}, {promised} promised"


def test_replaying_twice_gives_the_same_machine() -> None:
    shelf = Shelf()
    for _ in range(2):
        for fact in (Stored("a", 1), Stored("b", 2), Stored("a", 3)):
            shelf.apply(fact)
        shelf.forget(b"b")
        assert shelf.plain == {"a": 3}


def compacted(library: Library) -> None:
    """Seal the ledger and compact it, after enough was written to make that worth its work."""
    for number in range(500):
        library.submit(Put("filler", number))
    library.commit()
    log = library.ledger_replica.log
    log.roll(library.clock.now_ms())
    log.sync()
    work = plan(log, library.clock.now_ms())
    assert work is not None
    manifest = compact(library.disk, work)
    assert manifest is not None
    assert install(log, manifest)


def tombstones(library: Library) -> set[bytes | None]:
    batches = library.ledger_replica.batches_from(0)
    return {record.key for batch in batches for record in decode(batch) if record.value is None}


def test_what_was_dropped_stays_so_when_a_restart_must_use_an_older_snapshot() -> None:
    """The older one still has it, so the ledger must not forget that it was dropped, however long ago."""
    library = Library()
    library.submit(Put("gone", 1))
    library.ledger.snapshot(library.shelf, library.clock.now_ms())
    library.submit(Drop("gone"))
    compacted(library)
    library.clock.advance(2 * DAY_MS)
    library.ledger.snapshot(library.shelf, library.clock.now_ms())
    compacted(library)
    assert library.again().shelf.plain == {"filler": 499}
    library.disk.flip_bit(f"logs/@shelf/0/{library.snapshots()[-1]}", 300)
    assert library.again().shelf.plain == {"filler": 499}


def test_what_was_dropped_stays_so_when_no_snapshot_could_be_saved_for_days() -> None:
    library = Library()
    library.submit(Put("gone", 1))
    library.ledger.snapshot(library.shelf, library.clock.now_ms())
    library.disk.faults.add("create", errno.EIO, suffix=".bin.tmp", forever=True)
    library.submit(Drop("gone"))
    compacted(library)
    library.clock.advance(2 * DAY_MS)
    compacted(library)
    assert len(library.snapshots()) == 1
    assert library.again().shelf.plain == {"filler": 499}


def test_once_every_snapshot_knows_of_it_a_tombstone_goes() -> None:
    library = Library()
    library.submit(Put("gone", 1))
    library.ledger.snapshot(library.shelf, library.clock.now_ms())
    library.submit(Drop("gone"))
    compacted(library)
    library.clock.advance(2 * DAY_MS)
    for _ in range(3):
        assert tombstones(library) == {b"gone"}
        library.submit(Put("a", 1))
        library.ledger.snapshot(library.shelf, library.clock.now_ms())
    compacted(library)
    assert tombstones(library) == set()
    for name in library.snapshots():
        assert library.again().shelf.plain == {"filler": 499, "a": 1}
        library.disk.flip_bit(f"logs/@shelf/0/{name}", 300)
    assert library.again().shelf.plain == {"filler": 499, "a": 1}


def test_what_was_decided_under_another_leader_is_not_stored() -> None:
    """The machine does not know what the next leader has written."""
    library = Library()
    library.submit(Put("a", 1))
    library.commit()
    library.ledger_replica.lead(Reign(library.ledger_replica.leader_epoch + 1))
    replies: list[object] = []
    library.coordinator.submit(Put("a", 2), replies.append)
    assert [type(reply) for reply in replies] == [NotLeader]
    assert library.shelf.plain == {"a": 1}
    assert library.ledger_replica.end_offset == 1

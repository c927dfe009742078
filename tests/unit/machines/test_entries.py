"""Entries with revisions: what the store of several processes decides."""

from typing import Any

import pytest

from goqueue.machines.entries import (
    Change,
    Changed,
    ChangeEntries,
    EndLease,
    EndLeases,
    Entries,
    Expected,
)
from goqueue.machines.machine import Fact


def do(entries: Entries, command: object) -> Any:
    outcome = entries.decide(command, 1, 0)
    for fact in outcome.facts:
        entries.apply(fact)
    ((_, reply),) = outcome.replies
    return reply


def put(entries: Entries, name: bytes, value: bytes | None, lease: int = 0) -> Changed:
    changed = do(entries, ChangeEntries([], [Change(name, value, lease)]))
    assert isinstance(changed, Changed)
    return changed


def names(entries: Entries) -> set[bytes]:
    return set(entries.entries)


def test_nothing_is_changed_if_something_is_not_as_expected() -> None:
    entries = Entries()
    first = put(entries, b"a", b"1")
    changes = [Change(b"a", b"2"), Change(b"b", b"2")]
    wrong = [Expected(b"a", first.revision + 1), Expected(b"a", 0), Expected(b"a", first.revision, False)]
    for expected in wrong:
        assert do(entries, ChangeEntries([expected], changes)) == Changed(False, first.revision)
    assert (names(entries), entries.entries[b"a"].value) == ({b"a"}, b"1")
    done = do(entries, ChangeEntries([Expected(b"a", first.revision), Expected(b"b", 0)], changes))
    assert done == Changed(True, first.revision + 1)
    assert {each.revision for each in entries.entries.values()} == {done.revision}
    assert entries.entries[b"a"].created == first.revision


def test_what_changes_nothing_has_no_revision_of_its_own() -> None:
    entries = Entries()
    assert put(entries, b"a", None) == Changed(True, 1)
    assert do(entries, EndLease(5)) == Changed(True, 1)


def test_the_entries_of_a_lease_go_together_and_others_stay() -> None:
    entries = Entries()
    put(entries, b"a", b"", lease=5)
    put(entries, b"b", b"", lease=5)
    put(entries, b"c", b"", lease=6)
    put(entries, b"d", b"", lease=5)
    before = put(entries, b"d", b"without")
    assert do(entries, EndLease(5)) == Changed(True, before.revision + 1)
    assert names(entries) == {b"c", b"d"}
    do(entries, EndLeases())
    assert names(entries) == {b"d"}


@pytest.mark.parametrize("last", [b"", None])
def test_a_machine_from_a_snapshot_goes_on_behind_the_last_revision(last: bytes | None) -> None:
    """Also where the last change is in no entry."""
    entries, again = Entries(), Entries()
    put(entries, b"a", b"1", lease=5)
    put(entries, b"b", b"2")
    put(entries, b"b", last)
    facts: list[Fact] = list(entries.facts())
    for fact in facts:
        again.apply(fact)
    assert (again.revision, dict(again.entries)) == (entries.revision, dict(entries.entries))
    assert put(again, b"c", b"") == put(entries, b"c", b"")
    assert do(again, EndLeases()) == do(entries, EndLeases())
    assert names(again) == names(entries)

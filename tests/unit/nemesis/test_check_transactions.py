from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.nemesis.histories import done, failed, kinds, unknown
from tools.nemesis.check_transactions import KAFKA, SERIALIZABLE, Level, check_transactions
from tools.nemesis.history import Operation

Append = tuple[str, int]


def committed(
    process: str,
    at: tuple[float, float],
    *appends: Append,
    reads: Sequence[tuple[str, list[int]]] = (),
    final: bool = False,
) -> Operation:
    asked: dict[str, Any] = {"steps": [["append", *append] for append in appends], "final": final}
    return done(process, "transaction", at, asked, reads=[list(each) for each in reads])


def aborted(process: str, at: tuple[float, float], *appends: Append) -> Operation:
    return failed(process, "transaction", at, steps=[["append", *append] for append in appends])


def unanswered(process: str, began: float, *appends: Append) -> Operation:
    return unknown(process, "transaction", began, steps=[["append", *append] for append in appends])


def final(**lists: list[int]) -> Operation:
    return committed("end", (90, 91), reads=list(lists.items()), final=True)


T1, T2 = committed("a", (1, 2), ("x", 1), ("y", 1)), committed("a", (3, 4), ("x", 2), ("y", 2))


@pytest.mark.parametrize(
    "history",
    [
        [T1, T2, final(x=[1, 2], y=[1, 2])],
        [T1, aborted("b", (3, 4), ("x", 9)), final(x=[1], y=[1])],
        [T1, unanswered("b", 3, ("x", 9), ("y", 9)), final(x=[1, 9], y=[1, 9])],
        [T1, unanswered("b", 3, ("x", 9), ("y", 9)), final(x=[1], y=[1])],
        [T1, committed("b", (3, 4), ("x", 2), reads=[("x", [1])]), final(x=[1, 2], y=[1])],
        [T1, T2, committed("b", (5, 6), reads=[("x", [2])]), final(x=[1, 2], y=[1, 2])],
    ],
    ids=["two", "aborted", "unanswered and done", "unanswered and not done", "read and write", "read in portions"],
)
@pytest.mark.parametrize("level", [KAFKA, SERIALIZABLE], ids=["kafka", "serializable"])
def test_good_transactions_have_no_faults(history: Sequence[Operation], level: Level) -> None:
    assert check_transactions(history, level) == []


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([T1, aborted("b", (3, 4), ("x", 9)), committed("c", (3, 4), reads=[("x", [1, 9])])], "aborted read"),
        ([T1, aborted("b", (3, 4), ("x", 9)), final(x=[1, 9], y=[1])], "aborted read"),
        ([T1, final(x=[1], y=[1, 7])], "phantom"),
        ([T1, T2, final(x=[1], y=[1])], "lost"),
        ([T1, T2, final(x=[1, 2], y=[1])], "torn"),
        ([T1, unanswered("b", 3, ("x", 9), ("y", 9)), final(x=[1, 9], y=[1])], "torn"),
        ([T1, T2, committed("c", (5, 6), reads=[("x", [2, 1])]), final(x=[1, 2], y=[1, 2])], "order"),
        ([T1, T2, committed("c", (5, 6), reads=[("x", [3])]), final(x=[1, 2], y=[1, 2])], "order"),
        ([T1, final(x=[1, 1], y=[1])], "duplicate"),
    ],
)
def test_every_fault_of_transactions_is_found(history: Sequence[Operation], kind: str) -> None:
    assert kind in kinds(check_transactions(history))


def test_a_reading_that_skips_a_value_is_found() -> None:
    third = committed("a", (5, 6), ("x", 3))
    reader = committed("c", (7, 8), reads=[("x", [1, 3])])
    assert "order" in kinds(check_transactions([T1, T2, third, reader, final(x=[1, 2, 3], y=[1, 2])]))


def test_two_transactions_that_read_each_other_make_a_circle() -> None:
    one = committed("a", (1, 9), ("x", 1), reads=[("y", [1])])
    other = committed("b", (1, 9), ("y", 1), reads=[("x", [1])])
    assert kinds(check_transactions([one, other])) == ["cycle"]


def test_a_transaction_that_reads_from_one_that_its_process_ran_later_makes_a_circle() -> None:
    history = [committed("a", (1, 2), reads=[("x", [5])]), committed("a", (3, 4), ("x", 5))]
    assert kinds(check_transactions(history)) == ["cycle"]


def test_writes_in_different_orders_are_a_circle_only_where_transactions_are_serializable() -> None:
    history = [
        committed("a", (1, 9), ("x", 1), ("y", 1)),
        committed("b", (1, 9), ("x", 2), ("y", 2)),
        final(x=[1, 2], y=[2, 1]),
    ]
    assert check_transactions(history, KAFKA) == []
    assert kinds(check_transactions(history, SERIALIZABLE)) == ["cycle"]


def test_two_that_both_overlook_each_other_are_a_circle_where_transactions_are_serializable() -> None:
    history = [
        committed("a", (1, 9), ("x", 1), reads=[("y", [])]),
        committed("b", (1, 9), ("y", 2), reads=[("x", [])]),
        final(x=[1], y=[2]),
    ]
    assert kinds(check_transactions(history, SERIALIZABLE)) == ["cycle"]


def test_half_of_a_transaction_is_seen_by_nobody_where_transactions_are_atomic() -> None:
    history = [
        committed("a", (1, 2), ("x", 1), ("x", 2)),
        committed("b", (3, 4), reads=[("x", [1])]),
        final(x=[1, 2]),
    ]
    assert "torn" in kinds(check_transactions(history, SERIALIZABLE))
    assert check_transactions(history, KAFKA) == []


def test_values_that_are_not_unique_are_a_mistake_of_the_workload() -> None:
    with pytest.raises(ValueError, match="appended twice"):
        check_transactions([T1, committed("b", (3, 4), ("x", 1))])

from collections.abc import Sequence

import pytest

from tests.unit.nemesis.histories import done, failed, kinds, unknown
from tools.nemesis.check_groups import check_groups
from tools.nemesis.history import Operation


def assigned(member: str, generation: int, *partitions: int) -> Operation:
    answer = {"group": "g", "member": member, "generation": generation, "partitions": [["t", p] for p in partitions]}
    return done(member, "assigned", (1, 1), {}, **answer)


def commit(offset: int, at: tuple[float, float]) -> Operation:
    return done("a", "commit", at, {"group": "g", "partition": ["t", 0], "offset": offset})


def committed(offset: int, at: tuple[float, float]) -> Operation:
    return done("b", "committed", at, {"group": "g", "partition": ["t", 0]}, offset=offset)


def consumed(member: str, first: int, last: int) -> Operation:
    return done(member, "consumed", (1, 1), {}, group="g", partition=["t", 0], first=first, last=last)


def lost_commit(offset: int, began: float) -> Operation:
    return unknown("a", "commit", began, group="g", partition=["t", 0], offset=offset)


def test_a_partition_has_one_owner_in_a_generation() -> None:
    assert check_groups([assigned("a", 1, 0, 1), assigned("b", 1, 2), assigned("b", 2, 0, 1, 2)]) == []
    assert kinds(check_groups([assigned("a", 1, 0, 1), assigned("b", 1, 1)])) == ["two owners"]


@pytest.mark.parametrize(
    "history",
    [
        [committed(-1, (1, 2))],
        [commit(5, (1, 2)), committed(5, (3, 4))],
        [commit(5, (1, 2)), commit(9, (3, 6)), committed(5, (4, 5))],
        [commit(5, (1, 2)), commit(9, (3, 6)), committed(9, (4, 5))],
        [commit(5, (1, 2)), lost_commit(9, 3), committed(9, (8, 9))],
        [commit(5, (1, 2)), lost_commit(9, 3), committed(5, (8, 9))],
        [commit(9, (1, 2)), commit(5, (3, 4)), committed(5, (5, 6))],
        [lost_commit(5, 1)._replace(ended=2), commit(9, (3, 4)), committed(5, (5, 6))],
    ],
    ids=["none", "last", "not yet", "already", "lost, done", "lost, not done", "moved back on purpose", "heard late"],
)
def test_good_offsets_have_no_faults(history: Sequence[Operation]) -> None:
    assert check_groups(history) == []


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ([commit(5, (1, 2)), committed(-1, (3, 4))], "offset back"),
        ([commit(5, (1, 2)), commit(9, (3, 4)), committed(5, (5, 6))], "offset back"),
        ([commit(5, (1, 2)), committed(7, (5, 6))], "phantom offset"),
        (
            [failed("a", "commit", (1, 2), group="g", partition=["t", 0], offset=7), committed(7, (5, 6))],
            "phantom offset",
        ),
    ],
)
def test_every_fault_of_offsets_is_found(history: Sequence[Operation], kind: str) -> None:
    assert kinds(check_groups(history)) == [kind]


def test_members_together_get_every_record_that_their_commits_are_past() -> None:
    both = [consumed("a", 0, 3), consumed("b", 2, 4), commit(5, (2, 3))]
    assert check_groups(both) == []
    assert check_groups([*both, consumed("b", 6, 9)]) == []
    assert kinds(check_groups([*both, consumed("b", 6, 9), commit(10, (4, 5))])) == ["skipped"]
    assert kinds(check_groups([consumed("a", 1, 3), commit(4, (2, 3))])) == ["skipped"]

from collections.abc import Sequence

import pytest

from tests.unit.nemesis.histories import done, failed, kinds, unknown
from tools.nemesis.check_log import check_logs
from tools.nemesis.history import Operation


def send(value: str, offset: int | None, at: tuple[float, float], process: str = "a") -> Operation:
    return done(process, "send", at, {"topic": "t", "partition": 0, "value": value}, offset=offset)


def lost_answer(value: str, began: float, process: str = "a") -> Operation:
    return unknown(process, "send", began, topic="t", partition=0, value=value)


def refused(value: str, at: tuple[float, float]) -> Operation:
    return failed("a", "send", at, topic="t", partition=0, value=value)


def read(at: tuple[float, float], *records: tuple[int, str], final: bool = False, start: int = 0) -> Operation:
    asked = {"topic": "t", "partition": 0, "final": final, "start": start}
    return done("r", "read", at, asked, records=[list(record) for record in records])


SENT = (send("x", 0, (1, 2)), send("y", 1, (3, 4)), lost_answer("z", 5))


@pytest.mark.parametrize(
    "more",
    [
        [read((9, 10), (0, "x"), (1, "y"), final=True)],
        [read((9, 10), (0, "x"), (1, "y"), (2, "z"), final=True)],
        [read((6, 7), (0, "x"), (1, "y")), read((9, 10), (0, "x"), (1, "y"), (2, "z"), final=True)],
        [refused("w", (6, 7)), read((9, 10), (0, "x"), (1, "y"), final=True)],
        [read((9, 10), (1, "y"), (2, "z"), final=True, start=1)],
        [read((6, 7), (0, "x"))],
        [send("w", None, (6, 7)), read((9, 10), (0, "x"), (1, "y"), (2, "w"), final=True)],
    ],
    ids=[
        "unanswered and gone",
        "unanswered and kept",
        "read twice",
        "refused",
        "deleted by retention",
        "no last read",
        "stored, nobody knows where",
    ],
)
def test_a_good_log_has_no_faults(more: Sequence[Operation]) -> None:
    assert check_logs([*SENT, *more]) == []


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ([read((9, 10), (0, "x"), final=True)], "lost"),
        ([send("w", None, (6, 7)), read((9, 10), (0, "x"), (1, "y"), final=True)], "lost"),
        ([read((9, 10), (0, "x"), (2, "y"), final=True)], "moved"),
        ([read((9, 10), (0, "x"), (1, "y"), (2, "q"), final=True)], "phantom"),
        ([refused("w", (6, 7)), read((9, 10), (0, "x"), (1, "y"), (2, "w"), final=True)], "phantom"),
        ([read((6, 7), (0, "x"), (1, "z")), read((9, 10), (0, "x"), (1, "y"), final=True)], "two values"),
        ([send("w", 1, (6, 7))], "two values"),
        ([read((9, 10), (0, "x"), (1, "y"), (2, "y"), final=True)], "duplicate"),
        ([read((6, 7), (0, "x"), (1, "y"), (2, "z")), read((9, 10), (0, "x"), (1, "y"), final=True)], "vanished"),
        ([read((6, 7), (0, "x"), (2, "z"))], "gap"),
        ([read((9, 10), (0, "x"), (1, "y"), (3, "z"), final=True)], "gap"),
    ],
)
def test_every_fault_of_a_log_is_found(more: Sequence[Operation], kind: str) -> None:
    assert kind in kinds(check_logs([*SENT, *more]))


def test_a_producer_that_finds_its_messages_turned_round_is_told() -> None:
    pipelined = [send("x", 1, (1, 5)), send("y", 0, (2, 5))]
    assert kinds(check_logs(pipelined)) == ["reorder"]


def test_a_message_that_was_sent_after_an_answer_stands_behind_it() -> None:
    assert kinds(check_logs([send("x", 1, (1, 2), "a"), send("y", 0, (3, 4), "b")])) == ["reorder"]
    assert check_logs([send("x", 1, (1, 4), "a"), send("y", 0, (3, 5), "b")]) == []


def test_a_late_message_whose_answer_was_lost_may_stand_behind_newer_ones_of_others() -> None:
    history = [lost_answer("x", 1, "a"), send("y", 0, (2, 3), "b"), read((5, 6), (0, "y"), (1, "x"), final=True)]
    assert check_logs(history) == []


def test_logs_with_transactions_may_have_gaps() -> None:
    history = [*SENT, read((9, 10), (0, "x"), (1, "y"), (3, "z"), final=True)]
    assert check_logs(history, is_dense=False) == []

import io
import json
from pathlib import Path

import pytest

from tests.unit.nemesis.histories import done, kinds, unknown
from tools.nemesis.availability import check_served, longest_gaps
from tools.nemesis.history import FAIL, NEVER, OK, UNKNOWN, Book, Window, read_histories, read_history
from tools.nemesis.judge import Healed, acknowledged, judge, told


def test_what_was_written_down_is_read_again() -> None:
    file = io.StringIO()
    book = Book(file)
    book.begin("a", "send", value="x").ok(offset=7)
    book.begin("a", "send", value="y").fail("no room")
    book.begin("b", "send", value="z").unknown("reset")
    book.begin("b", "send", value="q")
    operations = read_history(file.getvalue().splitlines())
    assert [each.outcome for each in operations] == [OK, FAIL, UNKNOWN, UNKNOWN]
    assert [each.asked["value"] for each in operations] == ["x", "y", "z", "q"]
    assert operations[0].answer == {"offset": 7}
    assert operations[3].ended == NEVER
    assert operations[0].began <= operations[0].ended <= operations[1].began


def test_the_first_answer_counts() -> None:
    file = io.StringIO()
    asking = Book(file).begin("a", "send")
    asking.ok()
    asking.unknown()
    assert [each.outcome for each in read_history(file.getvalue().splitlines())] == [OK]


def test_an_answer_that_was_torn_by_a_kill_was_not_given() -> None:
    file = io.StringIO()
    Book(file).begin("a", "send").ok()
    first, second = file.getvalue().splitlines()
    assert [each.outcome for each in read_history([first, second[:20]])] == [UNKNOWN]


def test_the_histories_of_several_processes_are_put_in_order(tmp_path: Path) -> None:
    for name, at in (("a", 2.0), ("b", 1.0)):
        line = {"id": 0, "type": "invoke", "at": at, "process": name, "what": "send", "asked": {}}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line))
    assert [each.process for each in read_histories(tmp_path)] == ["b", "a"]


def test_the_longest_time_without_an_answer_is_found() -> None:
    history = [done("a", "send", (at, at), {}) for at in (1, 2, 9, 10)] + [unknown("a", "send", 5)]
    assert longest_gaps(history)["send"] == pytest.approx((7, 2))


def test_whoever_gets_no_answer_when_all_is_healed_is_stuck() -> None:
    served = [done("a", "send", (at, at + 0.1), {}) for at in range(100)]
    assert check_served(served, healed=10, ended=99) == []
    assert check_served(served[:60], healed=10, ended=61) == []
    asks_on = [unknown("a", "send", 50)]
    assert kinds(check_served([*served[:50], *asks_on], healed=10, ended=99)) == ["stuck"]
    assert check_served(served[:20], healed=10, ended=99) == [], "nobody asked after the 20th"


def test_what_clients_were_told_is_shown_each_once() -> None:
    assert told(["a was given up", "b could not begin", "a was given up"]) == [
        "note: a was given up (2 times)",
        "note: b could not begin",
    ]


def test_the_book_knows_which_kinds_were_not_served_since_a_moment() -> None:
    now = [1.0]
    book = Book(io.StringIO(), lambda: now[0])
    book.begin("a", "send", door="kafka").ok()
    book.begin("a", "send", door="http").ok()
    book.begin("a", "never ok").fail()
    late = book.begin("a", "send", door="http")
    now[0] = 5.0
    late.ok()
    book.begin("a", "send", door="kafka").ok()
    assert book.unserved_since(5.0) == ["send (http)"], "what was answered had been asked before"
    assert book.unserved_since(1.0) == []


def test_messages_that_were_answered_for_are_counted() -> None:
    history = [
        done("a", "send", (1, 2), {}),
        unknown("a", "send", 1),
        done("a", "publish", (1, 2), {}),
        done("a", "delay", (1, 2), {}),
        done("a", "receive", (1, 2), {}),
        done("a", "transaction", (1, 2), {"steps": [["append", "0", "x"], ["append", "1", "y"], ["read", "0"]]}),
    ]
    assert acknowledged(history) == 5


def test_a_delay_may_be_late_from_the_first_fault_on_only_if_that_is_allowed() -> None:
    history = [
        done("a", "delay", (1, 1), {"topic": "t", "id": "m", "due": 50.0}),
        done("r", "arrived", (90, 90), {}, topic="t", id="m", at=90.0, place="0/7"),
    ]
    troubles = [Window(5, 6), Window(100, 101)]
    strict, mild = Healed(101, 102), Healed(101, 102, may_be_late=True)
    assert kinds(judge(history, troubles, strict, 0.0).faults) == ["late"]
    assert judge(history, troubles, mild, 0.0).faults == []
    assert kinds(judge(history, [], mild, 0.0).faults) == ["late"], "a healthy run"

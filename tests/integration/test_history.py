"""The judge itself: each of its rules can find a fault."""

import pytest

from tests.integration.clients import Record
from tests.integration.history import History, Sent


def record(offset: int, value: bytes, partition: int = 0) -> Record:
    return Record("t", partition, offset, value, None, (), 0)


@pytest.fixture
def history() -> History:
    """Two messages acknowledged at 0 and 1, a third sent and never answered."""
    made = History()
    for number in range(3):
        made.send(Sent("a", number, 0))
    for number in range(2):
        made.acknowledge(Sent("a", number, 0), number)
    return made


@pytest.mark.parametrize("last", [[], [record(2, b"a:2")]])
def test_an_unanswered_message_may_be_there_or_not(history: History, last: list[Record]) -> None:
    assert history.faults([record(1, b"a:1"), record(0, b"a:0"), *last]) == []


@pytest.mark.parametrize(
    ("records", "fault"),
    [
        ([record(0, b"a:0")], "lost: b'a:1', acknowledged at (0, 1)"),
        ([record(0, b"a:0"), record(1, b"a:2"), record(2, b"a:1")], "moved: b'a:1'"),
        ([record(0, b"a:0"), record(1, b"a:1"), record(0, b"a:1", partition=1)], "2 times there: b'a:1'"),
        ([record(0, b"a:0"), record(1, b"a:1"), record(2, b"b:7")], "sent by nobody: b'b:7'"),
        ([record(0, b"a:2"), record(1, b"a:1")], "out of order: b'a:1' behind number 2"),
        ([record(0, b"a:0"), record(1, b"a:1"), record(3, b"a:2")], "gap: offset 2 of partition 0"),
    ],
)
def test_every_fault_is_found(history: History, records: list[Record], fault: str) -> None:
    assert any(found.startswith(fault) for found in history.faults(records)), history.faults(records)

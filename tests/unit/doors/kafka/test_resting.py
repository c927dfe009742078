"""A connection whose request took long lets others go first; nothing of what it has sent is lost or out of order."""

from collections.abc import Sequence
from itertools import count

import pytest

from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.door import LONG_S
from goqueue.doors.kafka.frame_sizes import RECEIVE_BYTES
from goqueue.wire.kafka.frames import request_frame
from goqueue.wire.kafka.messages import metadata
from tests.unit.doors.kafka.share_members import Guest, House
from tests.unit.doors.kafka.test_connection import Line, framed
from tests.unit.doors.kafka.transports import feed


class Slow(Line):
    """Every request takes long."""

    def handle(self, connection: Connection, frame: memoryview) -> None:
        super().handle(connection, frame)
        connection.rest()

    def turn(self) -> None:
        """One turn of the event loop, and no more."""
        for _ in range(len(self.clock._soon)):
            self.clock._soon.popleft()()


def slow_line() -> Slow:
    line = Slow(answers=True)
    line.connection._limits.pending_max = 100
    return line


def test_requests_that_take_long_are_handled_one_a_turn() -> None:
    line = slow_line()
    feed(line.connection, framed(b"a", b"b", b"c"))
    assert (line.frames, line.is_reading()) == ([b"a"], False)
    line.turn()
    assert (line.frames, line.is_reading()) == ([b"a", b"b"], False)
    line.turn()
    line.turn()
    assert (line.frames, line.is_reading()) == ([b"a", b"b", b"c"], True)
    line.clock.run()
    assert bytes(line.transport.written) == b"<a><b><c>"


def test_others_may_use_the_shared_memory_meanwhile() -> None:
    line = slow_line()
    feed(line.connection, framed(b"first", b"second"))
    line.connection._shared[:RECEIVE_BYTES] = b"\xff" * RECEIVE_BYTES
    line.clock.run()
    assert (line.frames, line.complaints) == ([b"first", b"second"], [])


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_request_that_has_come_in_part_is_completed_later(cut: int) -> None:
    line = slow_line()
    sent = framed(b"one", b"two-two", b"three")
    feed(line.connection, sent[: 7 + cut])
    line.clock.run()
    feed(line.connection, sent[7 + cut :])
    line.clock.run()
    assert line.frames == [b"one", b"two-two", b"three"]


def test_a_full_read_and_a_large_frame_behind_it_are_all_handled() -> None:
    line = slow_line()
    small: Sequence[bytes] = [bytes([number]) * 20_000 for number in range(10)]
    large = b"\0\0" + bytes(RECEIVE_BYTES)
    sent = memoryview(framed(*small, large, b"last"))
    while sent:  # as much as a read takes, whenever it is read
        assert line.is_reading()
        room = len(line.connection.get_buffer(-1))
        feed(line.connection, sent[:room])
        sent = sent[room:]
        line.clock.run()
    assert line.frames == [*small, large, b"last"]


def test_nothing_is_handled_for_a_client_that_has_gone() -> None:
    line = slow_line()
    feed(line.connection, framed(b"a", b"b"))
    line.connection.connection_lost(None)
    line.clock.run()
    assert line.frames == [b"a"]


def test_what_makes_no_sense_is_found_in_its_turn() -> None:
    line = slow_line()
    feed(line.connection, framed(b"a") + b"GET / HTTP/1.1\r\n\r\n")
    assert line.complaints == []
    line.clock.run()
    assert line.complaints == ["HTTP was spoken to the Kafka port"]


def test_a_request_that_took_long_lets_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    guest = Guest(house)
    times_s = count(step=2 * LONG_S)
    monkeypatch.setattr(house.broker.clock, "monotonic_s", lambda: next(times_s))
    frames: list[bytes] = []
    for number in range(3):
        frames += request_frame(metadata.ApiVersionsRequest("x", "1"), 3, number, "test")  # type: ignore[arg-type]
    feed(guest._connection, b"".join(frames))
    assert len(guest.replies(metadata.ApiVersionsResponse, 3)) == 1
    house.broker.clock.run()
    assert len(guest.replies(metadata.ApiVersionsResponse, 3)) == 2

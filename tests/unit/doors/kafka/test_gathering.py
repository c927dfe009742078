"""Who sends without waiting for replies is read in larger pieces; nobody else notices."""

from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.frame_sizes import RECEIVE_BYTES, REQUESTS_AHEAD
from tests.unit.doors.kafka.test_connection import Line, SmallLimits, framed
from tests.unit.doors.kafka.transports import feed


def test_requests_of_a_client_that_does_not_wait_for_replies_gather_for_a_moment() -> None:
    line = Line(answers=True)
    feed(line.connection, framed(*[b"x"] * (REQUESTS_AHEAD + 1)))
    assert bytes(line.transport.written) == b"<x>" * (REQUESTS_AHEAD + 1)
    assert not line.is_reading()
    line.clock.advance(SmallLimits.gather_ms)
    assert line.is_reading()


def test_a_client_that_waits_for_replies_is_read_at_once() -> None:
    line = Line(answers=True)
    for _ in range(3):
        feed(line.connection, framed(*[b"x"] * REQUESTS_AHEAD))
        assert line.is_reading()
    assert line.clock.timers == 0


def test_nothing_is_waited_for_on_behalf_of_a_client_that_left_while_its_requests_gathered() -> None:
    line = Line(answers=True)
    feed(line.connection, framed(*[b"x"] * (REQUESTS_AHEAD + 1)))
    line.connection.connection_lost(None)
    assert line.clock.timers == 0


def test_requests_of_earlier_reads_count_until_they_are_answered() -> None:
    line = Line()
    line.connection._limits.pending_max = 100
    feed(line.connection, framed(*[b"x"] * REQUESTS_AHEAD))
    line.replies[0].send([b"<x>"])
    line.clock.run()
    feed(line.connection, framed(b"x"))
    assert line.is_reading()
    feed(line.connection, framed(b"x"))
    assert not line.is_reading()
    line.clock.advance(SmallLimits.gather_ms)
    assert line.is_reading()


def test_who_brings_much_at_once_is_read_at_once() -> None:
    line = Line(answers=True)
    line.connection._limits.pending_max = 100
    feed(line.connection, framed(*[bytes(RECEIVE_BYTES // 10)] * (REQUESTS_AHEAD + 1)))
    assert len(line.frames) == REQUESTS_AHEAD + 1
    assert line.is_reading()


def test_a_large_frame_is_not_held_up() -> None:
    line = Line()
    line.connection._limits.pending_max = 100
    large = framed(b"\0\0" + bytes(RECEIVE_BYTES))
    feed(line.connection, framed(*[b"x"] * REQUESTS_AHEAD))
    feed(line.connection, framed(b"x") + large[: RECEIVE_BYTES // 4])
    assert len(line.frames) == REQUESTS_AHEAD + 1
    assert line.is_reading()


class Answered(Line):
    """All that came in one read is answered when it ends, as a run of Produce requests is."""

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def read_ended(self, connection: Connection, end: int) -> None:
        if self.frames:
            connection.took(len(self.frames))
            connection.answer([b"<x>"] * len(self.frames), len(self.frames))
            self.frames.clear()


def test_requests_that_are_answered_past_the_line_gather_as_others_do() -> None:
    line = Answered()
    feed(line.connection, framed(*[b"x"] * (REQUESTS_AHEAD + 1)))
    assert bytes(line.transport.written) == b"<x>" * (REQUESTS_AHEAD + 1)
    assert line.transport.writes == 1
    assert not line.is_reading()
    line.clock.advance(SmallLimits.gather_ms)
    assert line.is_reading()
    feed(line.connection, framed(b"x"))
    assert line.is_reading(), "those of an earlier read count no more"


def test_nobody_is_answered_before_those_who_asked_before() -> None:
    line = Answered()
    first = line.connection.expect_reply()
    feed(line.connection, framed(b"x", b"x"))
    assert not line.transport.written
    first.send([b"<first>"])
    line.clock.run()
    assert bytes(line.transport.written) == b"<first><x><x>"

"""Frames in, replies out: however the bytes are cut, however late the replies come, whatever is sent instead."""

from dataclasses import dataclass

import pytest

from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.frame_sizes import FRAME_BYTES_FIRST, HEAD_BYTES_MAX, RECEIVE_BYTES
from goqueue.doors.kafka.reply import Reply
from goqueue.testing import VirtualClock
from tests.unit.doors.kafka.transports import FakeTransport, feed


@dataclass
class SmallLimits:
    frame_bytes_max: int = 1024 * 1024
    produce_bytes_max: int = 8 * 1024 * 1024
    pending_max: int = 3
    pending_bytes_max: int = 1000
    gather_ms: int = 1
    frame_ms_max: int = 1000
    write_ms_max: int = 1000


class Line:
    """One connection, what it took for frames, and what it complained about."""

    def __init__(self, *, answers: bool = False, receive_bytes: int = RECEIVE_BYTES) -> None:
        self.clock = VirtualClock()
        self.frames: list[bytes] = []
        self.replies: list[Reply] = []
        self.complaints: list[str] = []
        self.waiting_bytes = self.kept_bytes = 0
        self.farewells: list[str] = []
        self._answers = answers
        self.reads = 0
        self.connection = Connection(memoryview(bytearray(receive_bytes)), SmallLimits(), self.clock, self)
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def is_reading(self) -> bool:
        return self.transport.is_reading_now

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        reply = connection.expect_reply()
        self.replies.append(reply)
        if self._answers:
            reply.send([b"<", bytes(frame)[:5], b">"])

    def read_began(self, data: memoryview | None) -> None:
        pass

    def read_ended(self, connection: Connection, end: int) -> None:
        self.reads += 1

    def complain(self, connection: Connection, why: str) -> None:
        self.complaints.append(why)
        connection.close(why)

    def lost(self, connection: Connection, why: str) -> None:
        self.farewells.append(why)


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


BODIES = [b"first", b"x", b"the third one", bytes(40)]


def test_frames_may_be_cut_at_every_byte() -> None:
    stream = framed(*BODIES)
    for cut in range(len(stream) + 1):
        line = Line(answers=True)
        feed(line.connection, stream[:cut])
        feed(line.connection, stream[cut:])
        assert line.frames == BODIES, cut
        assert line.clock.timers == 0


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 64])
@pytest.mark.parametrize("receive_bytes", [4, 8, 64, 4096])
def test_frames_may_come_in_drops_and_the_buffer_may_be_small(chunk: int, receive_bytes: int) -> None:
    line = Line(answers=True, receive_bytes=receive_bytes)
    feed(line.connection, framed(*BODIES), chunk)
    assert line.frames == BODIES


def test_many_frames_of_one_read_are_answered_in_one_write() -> None:
    line = Line(answers=True)
    bodies = [b"%04d" % number for number in range(500)]
    feed(line.connection, framed(*bodies))
    assert line.frames == bodies
    assert bytes(line.transport.written) == b"".join(b"<%s>" % body for body in bodies)
    assert line.transport.writes == 1


@pytest.mark.parametrize("size", [1, 1000, HEAD_BYTES_MAX - 4])
def test_the_rest_of_a_frame_and_what_follows_are_one_read(size: int) -> None:
    line = Line(answers=True)
    stream = framed(b"a", bytes(size), b"b", b"c")
    feed(line.connection, stream[: 5 + 4 + size // 2])
    feed(line.connection, stream[5 + 4 + size // 2 :])
    assert line.frames == [b"a", bytes(size), b"b", b"c"]
    assert (line.reads, line.transport.writes) == (2, 2)


def test_a_piece_of_a_frame_outlives_what_others_receive() -> None:
    """They share the buffer."""
    line = Line()
    other = Connection(line.connection._shared, SmallLimits(), line.clock, Line())
    other.connection_made(FakeTransport())
    feed(line.connection, framed(b"first", b"second")[:-3])
    feed(other, framed(b"x" * 100))
    feed(line.connection, b"ond")
    assert line.frames == [b"first", b"second"]


@pytest.mark.parametrize("size", [RECEIVE_BYTES - 4, RECEIVE_BYTES, FRAME_BYTES_FIRST, FRAME_BYTES_FIRST + 1, 5 << 20])
def test_a_frame_larger_than_one_read_gets_its_own_memory_and_no_more(size: int) -> None:
    line = Line()
    body = b"\0" + bytes(range(256)) * (size // 256) + b"z" * (size % 256 - 1)
    body = body[:size]
    feed(line.connection, framed(b"before", body, b"behind"), 100_000)
    assert [len(frame) for frame in line.frames] == [6, size, 6]
    assert line.frames[1] == body


def test_only_what_lies_in_memory_of_the_next_read_is_shared() -> None:
    """So whoever needs a frame for longer knows whether it has to be copied."""
    line, shared = Line(), []

    def handle(connection: Connection, frame: memoryview) -> None:
        shared.append(connection.is_shared(frame[2:]))
        connection.expect_reply()

    line.handle = handle  # type: ignore[method-assign]
    feed(line.connection, framed(bytes(10), bytes(2 * RECEIVE_BYTES), bytes(10)))
    assert shared == [True, False, True]


def test_the_announcement_of_a_large_frame_alone_costs_little_memory() -> None:
    line = Line()
    feed(line.connection, (8 * 1024 * 1024).to_bytes(4, "big") + b"\0\0x")
    assert line.connection._frame is not None
    assert len(line.connection._frame) <= FRAME_BYTES_FIRST


def test_replies_leave_in_the_order_of_the_requests() -> None:
    line = Line()
    feed(line.connection, framed(b"a", b"b", b"c"))
    line.replies[2].send([b"C"])
    line.replies[1].send([b"B"])
    line.clock.run()
    assert line.transport.writes == 0
    line.replies[0].send([b"A"])
    line.clock.run()
    assert bytes(line.transport.written) == b"ABC"
    assert line.transport.writes == 1


def test_a_request_that_wants_no_reply_leaves_no_gap() -> None:
    line = Line()
    feed(line.connection, framed(b"a", b"b"))
    line.replies[1].send([b"B"])
    line.replies[0].send(())
    line.clock.run()
    assert bytes(line.transport.written) == b"B"


def test_a_large_reply_is_handed_on_piece_by_piece_and_whole() -> None:
    line = Line()
    feed(line.connection, framed(b"a"))
    pieces: list[bytes | memoryview] = [b"head", memoryview(bytes(200_000)), b"tail"]
    line.replies[0].send(tuple(pieces))
    line.clock.run()
    assert bytes(line.transport.written) == b"".join(pieces)


def test_a_client_with_too_many_open_requests_is_not_read_until_some_are_answered() -> None:
    line = Line()
    feed(line.connection, framed(b"a", b"b"))
    assert line.is_reading()
    feed(line.connection, framed(b"c"))
    assert not line.is_reading()
    line.replies[1].send([b"B"])
    line.clock.run()
    assert not line.is_reading()
    line.replies[0].send([b"A"])
    line.clock.run()
    assert line.is_reading()


def test_replies_that_share_a_place_count_as_many() -> None:
    line = Line()
    replies = [line.connection.expect_reply(2), line.connection.expect_reply(2)]
    feed(line.connection, b"\0")
    assert not line.is_reading()
    replies[0].send([b"A", b"B"])
    line.clock.run()
    assert bytes(line.transport.written) == b"AB"
    assert line.is_reading()


def test_the_end_of_a_read_is_told_however_it_went() -> None:
    line = Line(answers=True)
    feed(line.connection, framed(b"a", b"b"))
    feed(line.connection, b"\0\0\0")
    feed(line.connection, b"\x02xy")
    assert line.reads == 3
    feed(line.connection, b"\xff" * 4)
    assert line.reads == 4
    assert len(line.complaints) == 1


def test_a_client_that_does_not_read_is_not_read() -> None:
    line = Line(answers=True)
    line.connection.pause_writing()
    assert not line.is_reading()
    line.connection.resume_writing()
    assert line.is_reading()
    feed(line.connection, framed(b"a"))
    assert bytes(line.transport.written) == b"<a>"


def test_both_reasons_must_end_before_reading_goes_on() -> None:
    line = Line()
    feed(line.connection, framed(b"a", b"b", b"c"))
    line.connection.pause_writing()
    line.replies[0].send([b"A"])
    line.clock.run()
    assert not line.is_reading()
    line.connection.resume_writing()
    assert line.is_reading()


@pytest.mark.parametrize("start", [b"\0", b"\0\0\0", b"\0\0\0\x09abc", b"\0\x08\0\0abc"])
def test_a_frame_that_takes_too_long_costs_its_client_the_connection(start: bytes) -> None:
    line = Line()
    feed(line.connection, start)
    for _ in range(9):  # a byte now and then is no excuse
        line.clock.advance(100)
        if len(start) > 4:
            feed(line.connection, b"x" if len(line.connection._head) < 12 else b"")
    assert not line.transport.closed
    line.clock.advance(100)
    assert line.complaints == ["a request took too long to arrive"]
    assert line.transport.closed


def test_an_idle_client_and_one_that_waits_for_a_reply_may_take_their_time() -> None:
    line = Line()
    feed(line.connection, framed(b"a"))
    assert line.clock.timers == 0
    line.clock.advance(10_000_000)
    assert not line.transport.closed


def test_a_busy_client_whose_reads_always_end_in_a_piece_is_not_slow() -> None:
    """The time of one frame must not be counted for the next one."""
    line = Line(answers=True)
    feed(line.connection, b"\0")
    for _ in range(10):
        line.clock.advance(900)
        feed(line.connection, b"\0\0\x01x\0")
    assert line.complaints == []
    assert len(line.frames) == 10


@pytest.mark.parametrize(
    ("hello", "what"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"POST /topics HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"\x00\x00\x00\x00", "0 bytes"),
        (b"\xff\xff\xff\xff", "-1 bytes"),
        (b"\x80\x00\x00\x00", "-2147483648 bytes"),
        (b"\x7f\xff\xff\xff", "2147483647 bytes"),
        ((8 * 1024 * 1024 + 1).to_bytes(4, "big"), "8388609 bytes"),
    ],
)
def test_what_is_no_frame_is_named_and_ends_the_connection(hello: bytes, what: str) -> None:
    line = Line()
    feed(line.connection, framed(b"fine") + hello)
    assert line.frames == [b"fine"]
    assert len(line.complaints) == 1
    assert what in line.complaints[0]
    assert line.transport.closed


@pytest.mark.parametrize("chunk", [1, 2, 4, 5, 6, 100])
@pytest.mark.parametrize("api_key", [1, 3, 256, -1])
def test_only_produce_may_send_large_frames(chunk: int, api_key: int) -> None:
    line = Line()
    large = 1024 * 1024 + 1
    feed(line.connection, framed(b"\0\0" + bytes(large - 2)), 60_000)
    assert [len(frame) for frame in line.frames] == [large]
    feed(line.connection, large.to_bytes(4, "big") + api_key.to_bytes(2, "big", signed=True), chunk)
    assert line.complaints == [f"{large} bytes for API {api_key}; only Produce may have over {large - 1}"]
    assert line.transport.closed
    assert line.connection._frame is None


def test_what_follows_a_bad_frame_is_not_handled() -> None:
    line = Line()
    feed(line.connection, framed(b"fine"))
    line.connection.close("enough")
    feed(line.connection, framed(b"a", b"b"))
    assert line.frames[1:] in ([], [b"a"])


def unread(line: Line) -> None:
    """Replies wait for a client that does not take them."""
    feed(line.connection, framed(b"a", b"b"))
    line.replies[0].send([bytes(100_000)])
    line.clock.run()
    line.transport.unsent = 90_000
    line.connection.pause_writing()


def test_a_client_that_takes_no_byte_of_its_replies_is_cut_off() -> None:
    line = Line()
    unread(line)
    line.clock.advance(999)
    assert not line.transport.closed
    line.clock.advance(1)
    assert line.complaints == ["the client does not read its replies"]
    assert line.transport.aborted
    line.connection.connection_lost(None)
    assert line.clock.timers == 0


def test_a_slow_client_is_waited_for_though_more_is_written_than_it_takes() -> None:
    line = Line()
    unread(line)
    line.replies[1].send([bytes(50_000)])
    line.clock.run()
    line.transport.unsent += 50_000
    for _ in range(10):
        line.transport.unsent -= 1
        line.clock.advance(1000)
    assert not line.transport.closed
    line.connection.resume_writing()
    assert line.clock.timers == 0
    line.clock.advance(10_000)
    assert line.complaints == []


def test_a_closed_connection_does_not_wait_for_ever_for_its_client() -> None:
    line = Line()
    feed(line.connection, framed(b"a"))
    line.replies[0].send([bytes(100)])
    line.clock.run()
    line.transport.unsent = 100
    line.connection.close("enough")
    assert not line.transport.aborted
    line.clock.advance(1000)
    assert line.transport.aborted


def test_a_connection_with_nothing_to_send_is_closed_without_a_timer() -> None:
    line = Line()
    line.connection.close("enough")
    assert line.clock.timers == 0


def test_whoever_waits_for_a_lost_connection_is_told_once() -> None:
    line = Line()
    feed(line.connection, framed(b"a", b"b"))
    told: list[str] = []
    line.replies[0].on_lost = lambda: told.append("a")
    line.replies[1].on_lost = lambda: told.append("b")
    line.replies[0].send([b"A"])
    line.clock.run()
    feed(line.connection, b"\0")
    line.connection.connection_lost(None)
    assert told == ["b"], "what was answered waits for nothing"
    assert line.farewells == ["closed by the client"]
    line.replies[1].send([b"B"])
    line.clock.advance(10_000)
    assert bytes(line.transport.written) == b"A"
    assert line.clock.timers == 0


def test_a_connection_that_is_refused_before_it_is_made_is_closed() -> None:
    line = Line()
    late = Connection(memoryview(bytearray(10)), SmallLimits(), line.clock, line)
    late.close("too many")
    transport = FakeTransport()
    late.connection_made(transport)
    assert transport.closed

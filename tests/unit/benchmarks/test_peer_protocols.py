"""What is spoken to other brokers, without them: frames as specified, in whatever pieces they come."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from benchmarks.peers import amqp, nats, resp
from benchmarks.peers.jetstream import count_stored
from benchmarks.peers.redis import count_added, entries_of
from benchmarks.produce_load import count_answers

T = TypeVar("T")

STREAM = (
    b"*1\r\n*2\r\n$6\r\norders\r\n*2\r\n"
    b"*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nv\r\n$4\r\na\r\nb\r\n"
    b"*2\r\n$3\r\n2-0\r\n*2\r\n$1\r\nv\r\n$0\r\n\r\n"
)


def in_pieces(data: bytes, take: Callable[[bytearray], list[T]]) -> list[T]:
    """What is taken when every byte comes alone."""
    received = bytearray()
    taken: list[T] = []
    for byte in data:
        received.append(byte)
        taken += take(received)
    assert not received
    return taken


def test_a_command_of_redis_counts_its_words_and_bytes() -> None:
    assert resp.command("XADD", "s", b"\r\n", 7) == b"*4\r\n$4\r\nXADD\r\n$1\r\ns\r\n$2\r\n\r\n\r\n$1\r\n7\r\n"


def test_replies_of_redis_are_taken_whole() -> None:
    replies = in_pieces(b":3\r\n$-1\r\n*-1\r\n+OK\r\n" + STREAM, resp.take_replies)
    assert replies[:4] == [3, None, None, b"OK"]
    assert entries_of(replies[4]) == [(b"1-0", b"a\r\nb"), (b"2-0", b"")]
    assert entries_of(None) == []


def test_a_refusal_of_redis_is_not_counted_as_an_answer() -> None:
    assert count_added(bytearray(b"$3\r\n1-0\r\n$3\r\n2-0\r\n$3\r\n3")) == 2
    with pytest.raises(resp.Refused, match="OOM"):
        count_added(bytearray(b"-OOM command not allowed\r\n"))


def test_messages_of_nats_are_taken_whole_and_pings_are_passed_over() -> None:
    plain = b"PING\r\nMSG inbox 1 5\r\na\r\nbc\r\n+OK\r\nMSG inbox 1 reply 0\r\n\r\n"
    data = plain + b"HMSG inbox 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
    assert in_pieces(data, nats.take_messages) == [
        nats.Came(b"", b"", b"a\r\nbc"),
        nats.Came(b"reply", b"", b""),
        nats.Came(b"", b"NATS/1.0\r\n\r\n", b"hi"),
    ]
    with pytest.raises(nats.Refused, match="Slow Consumer"):
        nats.take_messages(bytearray(b"-ERR 'Slow Consumer'\r\n"))


def test_a_publish_to_nats_has_the_sizes_of_headers_and_payload() -> None:
    assert nats.publish(b"s", b"hello", b"inbox") == b"PUB s inbox 5\r\nhello\r\n"
    headers = nats.header_block([(b"key", b"k")])
    assert headers == b"NATS/1.0\r\nkey: k\r\n\r\n"
    assert nats.publish(b"s", b"hi", b"inbox", headers) == b"HPUB s inbox 20 22\r\n" + headers + b"hi\r\n"
    assert nats.header_block([]) == b""


def test_a_publish_that_nats_did_not_store_is_not_counted() -> None:
    stored = b'{"stream":"s","seq":1}'
    assert count_stored(bytearray(b"MSG i 1 %d\r\n%b\r\n" % (len(stored), stored))) == 1
    refused = b'{"error":{"code":503}}'
    with pytest.raises(nats.Refused, match="503"):
        count_stored(bytearray(b"MSG i 1 %d\r\n%b\r\n" % (len(refused), refused)))


def test_frames_of_amqp_are_taken_whole() -> None:
    frames = in_pieces(amqp.publish("orders", b"hello", {"key": b"k"}), amqp.take_frames)
    publish, header, body = frames
    assert publish.method == amqp.PUBLISH
    assert publish.payload == b"\x00\x3c\x00\x28\x00\x00\x00\x06orders\x00"
    assert (
        header.payload
        == b"\x00\x3c\x00\x00" + (5).to_bytes(8, "big") + b"\x30\x00\x00\x00\x00\x0a\x03keyS\x00\x00\x00\x01k\x02"
    )
    assert (body.kind, body.payload, body.method) == (amqp.BODY, b"hello", (0, 0))


def test_a_closed_channel_is_an_error() -> None:
    with pytest.raises(amqp.Refused, match="NOT_FOUND"):
        amqp.take_frames(bytearray(amqp.call((20, 40), b"\x01\x94" + amqp.short("NOT_FOUND"))))


def test_confirms_count_each_message_once() -> None:
    confirms = amqp.Confirms()
    acks = ((2, False), (3, True), (5, False), (4, False), (8, True))
    counted = [confirms(bytearray(amqp.ack(tag, is_multiple=is_multiple))) for tag, is_multiple in acks]
    assert counted == [1, 2, 1, 1, 3]
    with pytest.raises(amqp.Refused):
        confirms(bytearray(amqp.call(amqp.NACK, bytes(9))))


def test_the_tag_of_a_delivery_stands_behind_that_of_the_consumer() -> None:
    payload = b"\x00\x3c\x00\x3c" + amqp.short("ctag") + (77).to_bytes(8, "big") + b"\x00"
    assert amqp.delivery_tag(payload) == 77


def test_an_answer_to_a_batch_counts_for_its_messages_unless_it_is_an_error() -> None:
    answer = (6).to_bytes(4, "big") + b"head" + b"\x00\x00"
    assert count_answers(8, 100, bytearray(answer * 2 + answer[:5])) == 200
    with pytest.raises(AssertionError, match="refused: 6"):
        count_answers(8, 100, bytearray(answer[:-1] + b"\x06"))

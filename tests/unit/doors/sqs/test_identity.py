"""A message has one id, whatever becomes of it."""

from uuid import UUID

from goqueue.doors.sqs.identity import first_place, id_of, message_id, sequence_number
from goqueue.model.topics import Image, Topic

ORDERS, DEAD = Topic("orders", b"o" * 16, 3), Topic("dead", b"d" * 16, 3)
IMAGE = Image(1, {"orders": ORDERS, "dead": DEAD})
LETTER = {"gq-dlq-topic": b"orders", "gq-dlq-partition": b"1", "gq-dlq-offset": b"7"}


def test_an_id_is_a_uuid_and_of_one_place_only() -> None:
    ids = {
        message_id(topic.id, partition, offset)
        for topic in (ORDERS, DEAD)
        for partition in (0, 11)
        for offset in (1, 11)
    }
    assert len(ids) == 8
    assert all(UUID(each).version == 4 and str(UUID(each)) == each for each in ids)


def test_a_record_is_who_it_was_when_it_was_published() -> None:
    assert first_place({}, "orders", 1, 7) == ("orders", 1, 7)
    assert first_place(LETTER, "dead", 0, 3) == ("orders", 1, 7)
    assert first_place({"gq-origin": b"orders/1/7", "gq-redrives": b"1"}, "orders", 1, 99) == ("orders", 1, 7)
    assert first_place({"gq-origin": b"orders/1/7", **LETTER, "gq-dlq-offset": b"99"}, "dead", 0, 3) == ("orders", 1, 7)
    assert first_place({"gq-scheduled-as": b"1/5"}, "orders", 1, 7) == ("orders", 1, 5)
    assert first_place({"gq-scheduled-as": b"1/5", **LETTER}, "dead", 0, 3) == ("orders", 1, 5)


def test_headers_that_say_nothing_are_passed_over() -> None:
    for text in (None, b"", b"x", b"1", b"1/x", b"1/2/3/4", b"-1/2"):
        assert first_place({"gq-origin": text, "gq-scheduled-as": text}, "orders", 1, 7) == ("orders", 1, 7)


def test_a_message_of_a_topic_that_is_gone_still_has_an_id() -> None:
    assert id_of(IMAGE, ("orders", 1, 7)) == message_id(ORDERS.id, 1, 7)
    assert UUID(id_of(IMAGE, ("gone", 1, 7))).version == 4


def test_sequence_numbers_sort_as_texts() -> None:
    assert sequence_number(9) < sequence_number(10)
    assert len(sequence_number(2**63 - 1)) == 20

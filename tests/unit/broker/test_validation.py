"""Validation on publish, where all doors meet: what fits goes on, what does not is told or becomes a dead letter."""

import json
from typing import Any

import pytest

from goqueue.broker.schemas.formats.parsed import TURN_BYTES_MAX
from goqueue.broker.schemas.schemas import Given
from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.schemas.facts import SetLevel
from goqueue.model.codes import Code
from goqueue.model.errors import BatchTooLarge
from goqueue.model.recurring import Recurring
from goqueue.model.refusal import SchemaMismatch
from goqueue.model.schema_subjects import subjects_of
from goqueue.model.schemas import Level, RegistryCode, SchemaKind
from goqueue.model.topics import TopicOptions
from goqueue.records.build import build_batch
from goqueue.records.messages import NewMessage, Sent
from goqueue.records.redrives import RedriveRequest
from goqueue.runtime.aside import Done, Work
from tests.unit.broker.queue_node import QueueNode, queue_node

NUMBER = Given('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}', SchemaKind.JSON)
GOOD, BAD = b'{"n": 1}', b'{"n": "one"}'
WHY = 'does not fit schema 1: field n: "one" is not of type "integer"'


def checked_node(how: str = "reject", subject: str = "{topic}-value") -> QueueNode:
    node = queue_node(schema_validation=how, schema_subject=subject)
    register(node, "orders-value", NUMBER)
    return node


def register(node: QueueNode, subject: str, given: Given) -> int:
    result = node.reply(lambda done: node.broker.schemas.register(subject, given, done))
    assert result.code is RegistryCode.NONE
    return int(result.schema_id)


def framed(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + body


def header(schema_id: object) -> list[tuple[str, bytes | None]]:
    return [("schema-id", str(schema_id).encode())]


def errors(node: QueueNode, *messages: NewMessage | bytes) -> list[str | None]:
    return [None if each.error is None else str(each.error) for each in node.send("orders", *messages)]


def test_each_message_of_a_door_is_judged_on_its_own() -> None:
    node = checked_node()
    assert errors(node, GOOD, BAD, b"{", GOOD) == [None, WHY, *errors(node, b"{"), None]
    assert node.values("orders") == [GOOD, GOOD]


def test_a_batch_of_kafka_is_taken_or_not_and_every_bad_record_named() -> None:
    node = checked_node()
    batch = build_batch([(1, None, value, []) for value in (GOOD, BAD, GOOD, b"3")])
    with pytest.raises(SchemaMismatch) as caught:
        node.broker.publisher.publish("orders", 0, memoryview(batch))
    assert caught.value.code is Code.INVALID_RECORD
    assert caught.value.faults == {1: WHY, 3: 'does not fit schema 1: the value: 3 is not of type "object"'}
    assert str(caught.value) == f"record 1: {WHY} (and 1 more)"
    assert node.values("orders") == []
    assert node.broker.validation.rejected == 2


def test_a_topic_that_does_not_ask_is_not_looked_at() -> None:
    node = queue_node()
    register(node, "orders-value", NUMBER)
    assert errors(node, BAD) == [None]
    assert node.broker.schemas.parsed_count == 0


def test_the_option_may_come_and_go() -> None:
    node = queue_node()
    register(node, "orders-value", NUMBER)
    for how, expected in (("reject", WHY), ("off", None), ("reject", WHY)):
        node.ask(node.broker.topics.submit, SetOptions("orders", {"schema.validation": how}))
        assert errors(node, BAD) == [expected]


def test_the_schema_is_named_by_header_or_prefix() -> None:
    node = checked_node()
    other = register(node, "elsewhere", Given('"string"'))
    avro = register_next(node, Given('{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'))
    assert errors(
        node,
        framed(avro, b"\x02"),
        NewMessage(b"\x02", headers=header(avro)),
        NewMessage(framed(avro, b"\x02"), headers=header(avro)),
        framed(1, GOOD),
        NewMessage(GOOD, headers=header(1)),
        NewMessage(None, headers=header(77)),  # a tombstone
        framed(avro, b""),
        NewMessage(b"\x02\x02", headers=header(avro)),
        framed(other, b"\x02a"),
        framed(99, b"x"),
        NewMessage(GOOD, headers=header("one")),
        NewMessage(GOOD, headers=header("9" * 30)),
        framed(0, b""),
    ) == [
        *[None] * 6,
        f"does not fit schema {avro}: field n: the bytes end in the middle of a number",
        f"does not fit schema {avro}: the value: 1 bytes are left behind it",
        f"schema {other} is none of subject orders-value or orders",
        "schema 99 is none of subject orders-value or orders",
        "header schema-id is b'one', but must be the id of a schema",
        f"header schema-id is {b'9' * 30!r}, but must be the id of a schema",
        "schema 0 is none of subject orders-value or orders",
    ]


def register_next(node: QueueNode, given: Given) -> int:
    """Of another format than the one before it."""
    node.ask(node.broker.schemas.submit, SetLevel("orders-value", Level.NONE))
    return register(node, "orders-value", given)


def test_without_an_id_only_json_can_be_checked() -> None:
    node = checked_node()
    register_next(node, Given('"string"'))
    assert errors(node, GOOD) == ["names no schema: AVRO values need the header schema-id or an id before the value"]
    node = queue_node(schema_validation="reject")
    assert errors(node, GOOD) == ["names no schema, and subject orders-value or orders has none"]
    register(node, "orders", NUMBER)  # The subject may be called as the topic
    assert errors(node, GOOD, BAD) == [None, WHY]


def test_a_subject_may_be_chosen() -> None:
    node = checked_node(subject="{topic}-of-{topic}")
    assert errors(node, GOOD) == ["names no schema, and subject orders-of-orders has none"]
    register(node, "orders-of-orders", NUMBER)
    assert errors(node, GOOD, framed(1, GOOD)) == [None, None]
    assert subjects_of("t", TopicOptions()) == ("t-value", "t")


def test_a_dead_letter_keeps_its_place_free_and_says_why() -> None:
    node = checked_node("dead-letter")
    assert node.put("orders", GOOD, NewMessage(BAD, b"key", [("h", b"1")], timestamp_ms=5), GOOD) == [0, 1, 2]
    assert [(each.offset, each.value) for each in node.records("orders")] == [(0, GOOD), (2, GOOD)]
    (letter,) = node.records("orders.dlq")
    assert (letter.key, letter.value) == (b"key", BAD)
    assert dict(letter.headers) == {
        "h": b"1",
        "gq-dlq-topic": b"orders",
        "gq-dlq-partition": b"0",
        "gq-dlq-offset": b"1",
        "gq-dlq-reason": b"schema",
        "gq-dlq-error": WHY.encode(),
        "gq-dlq-attempts": b"0",
        "gq-dlq-died-at": str(node.clock.now_ms()).encode(),
        "gq-dlq-timestamp": b"5",
    }
    assert node.broker.validation.dead_lettered == 1


def test_nothing_is_acknowledged_before_its_dead_letters_are_safe() -> None:
    node = checked_node("dead-letter")
    sent: list[object] = []
    node.broker.sender.send("orders", [NewMessage(BAD)], sent.append)
    node.clock.run()
    assert sent == []  # nothing was synced
    node.commit()
    assert len(sent) == 1
    survivor = node.restarted("power")
    assert survivor.values("orders.dlq") == [BAD]


def test_a_batch_of_bad_records_only_leaves_its_places_free() -> None:
    node = checked_node("dead-letter")
    assert node.put("orders", BAD, BAD) == [0, 1]
    assert node.put("orders", GOOD) == [2]
    assert node.values("orders") == [GOOD]
    assert node.values("orders.dlq") == [BAD, BAD]
    assert node.received("orders") == [GOOD]


def test_a_record_that_waits_is_checked_before_it_waits() -> None:
    node = checked_node("dead-letter")
    node.put("orders", NewMessage(GOOD, delay_ms=1000), NewMessage(BAD, delay_ms=1000), GOOD)
    assert node.values("orders") == [GOOD]
    assert node.values("orders.dlq") == [BAD]
    node.pass_ms(1000)
    assert node.values("orders") == [GOOD, GOOD]
    assert node.values("orders.dlq") == [BAD]


def test_many_large_dead_letters_fit_into_batches_of_their_topic() -> None:
    node = checked_node("dead-letter")
    large = b'{"n": "%s"}' % (b"x" * 200_000)
    node.put("orders", *[large] * 8)
    assert node.values("orders.dlq") == [large] * 8


@pytest.mark.parametrize("how", ["stop", "kill", "power"])
def test_schemas_and_validation_survive(how: str) -> None:
    node = checked_node()
    node = node.restarted(how)
    assert errors(node, GOOD, BAD) == [None, WHY]


def test_validators_are_kept_and_not_more_than_a_few() -> None:
    node = checked_node()
    for _ in range(3):
        errors(node, GOOD)
    assert node.broker.schemas.parsed_count == 1
    before = node.broker.schemas.parsed(1)
    assert node.broker.schemas.parsed(1) is before


def test_what_is_to_be_repeated_is_checked_when_it_is_stored() -> None:
    node = checked_node("dead-letter")
    wanted = Recurring("nightly", "orders", "0 3 * * *", BAD)
    refused = node.reply(lambda done: node.broker.recurring.store(wanted, done))
    assert (type(refused), str(refused)) == (SchemaMismatch, WHY)
    stored = node.reply(lambda done: node.broker.recurring.store(wanted._replace(value=GOOD), done))
    assert stored.code is Code.NONE


def test_a_dead_letter_that_fits_now_can_be_sent_back() -> None:
    node = checked_node("dead-letter")
    node.put("orders", BAD)
    wider = Given('{"type": "object", "properties": {"n": {"type": ["integer", "string"]}}}', SchemaKind.JSON)
    register(node, "orders-value", wider)
    job = node.reply(lambda done: node.broker.dead_letters.redrive(RedriveRequest("orders"), done))
    node.pass_ms(1000)
    assert job is not None
    assert node.values("orders") == [BAD]


@pytest.mark.parametrize("bad_first", [True, False])
def test_a_batch_that_is_sent_again_stands_in_the_log_once(bad_first: bool) -> None:
    node = checked_node("dead-letter")
    values = (BAD, GOOD) if bad_first else (GOOD, BAD)
    for _ in range(2):
        batch = build_batch(
            [(1, None, value, []) for value in values], producer_id=5, producer_epoch=0, base_sequence=0
        )
        acknowledger, appended = node.broker.publisher.publish("orders", 0, memoryview(batch))
        node.commit()
        assert (appended.base_offset, acknowledger.failure) == (0, None)
    assert node.values("orders") == [GOOD]
    assert node.values("orders.dlq") == [BAD, BAD]  # at least once


def test_a_full_disk_of_dead_letters_is_told_to_the_producer() -> None:
    node = checked_node("dead-letter")
    node.put("orders", BAD)
    node.ask(node.broker.topics.submit, SetOptions("orders.dlq", {"max.message.bytes": "10"}))
    (sent,) = node.send("orders", BAD)
    assert isinstance(sent.error, BatchTooLarge)


class Thread:
    """What would be done in another thread, and when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Work, Done]] = []

    def __call__(self, work: Work, done: Done) -> None:
        self.waiting.append((work, done))

    def run(self) -> None:
        ((work, done),), self.waiting = self.waiting, []
        work()
        done(None)


@pytest.mark.parametrize("is_good", [True, False])
def test_a_large_value_is_checked_in_another_thread(is_good: bool) -> None:
    node, thread = checked_node(), Thread()
    errors(node, GOOD)
    node.broker.publisher.turns.work_aside(thread)
    value = b'{"n": %s, "rest": "%s"}' % (b"1" if is_good else b"true", b"x" * TURN_BYTES_MAX)
    told: list[Any] = []
    node.broker.sender.send("orders", [NewMessage(value)], told.append)
    node.commit()
    assert (told, len(thread.waiting), node.values("orders")) == ([], 1, [GOOD])
    thread.run()
    node.commit()
    ((sent,),) = told
    assert (sent.error is None, node.values("orders")) == (is_good, [GOOD, value] if is_good else [GOOD])


def test_a_small_value_is_checked_at_once() -> None:
    node, thread = checked_node(), Thread()
    errors(node, GOOD)
    node.broker.publisher.turns.work_aside(thread)
    assert errors(node, b'{"n": 1, "rest": "%s"}' % (b"x" * 1000)) == [None]
    assert thread.waiting == []


def test_what_one_sender_costs_is_not_taken_from_another() -> None:
    """Of a batch only so much is checked: whoever sends costly values in the same turn has a batch of its own."""
    costly = {f"a{depth}": {"anyOf": [{"$ref": f"#/definitions/a{depth + 1}"}] * 2} for depth in range(14)}
    schema = {"$ref": "#/definitions/a0", "definitions": costly | {"a14": {"type": "integer"}}}
    node = queue_node(schema_validation="dead-letter", schema_subject="{topic}-value")
    register(node, "orders-value", NUMBER._replace(text=json.dumps(schema)))
    told: list[Sent] = []
    node.broker.sender.send("orders", [NewMessage(b'"x"', partition=0)] * 3, lambda sent: None)
    node.broker.sender.send("orders", [NewMessage(b"1", partition=0)], told.extend)
    node.commit()
    assert [each.error for each in told] == [None]
    assert node.values("orders") == [b"1"]

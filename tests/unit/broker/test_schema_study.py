"""What takes long about schemas is done aside, and decided in the broker's own thread without being done again."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.schemas.formats.parsed import TooComplex
from goqueue.broker.schemas.schemas import Given, Schemas
from goqueue.broker.schemas.study import Study, Text
from goqueue.machines.schemas.facts import SetLevel
from goqueue.model.codes import Code
from goqueue.model.refusal import SchemaMismatch
from goqueue.model.schemas import InvalidSchema, Level, RegistryCode, RegistryRefused, SchemaKind
from goqueue.records.batch import Codec
from goqueue.records.build import build_batch
from tests.steps import count_steps
from tests.unit.broker.formats.test_costs import avro_doubling, avro_mesh, doubling
from tests.unit.broker.queue_node import QueueNode, queue_node

ASIDE_STEPS = 2000
"""Far less than understanding or comparing takes."""


class Later:
    """Work that is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.waiting.append((work, done))

    def run(self) -> None:
        for work, done in self.waiting:
            work()
            done(None)
        self.waiting = []


def wide(kind: str, count: int = 300) -> Given:
    fields = [{"name": f"f{number}", "type": kind} for number in range(count)]
    return Given(json.dumps({"type": "record", "name": "R", "fields": fields}))


def node_with(later: Later) -> tuple[QueueNode, Schemas]:
    node = queue_node()
    schemas = node.broker.schemas
    schemas.work_aside(later)
    node.reply(lambda done: schemas.register("s", wide("int"), done))
    return node, schemas


def test_what_was_prepared_is_registered_without_being_compared_again() -> None:
    later = Later()
    node, schemas = node_with(later)
    ready: list[None] = []
    schemas.prepare("s", wide("long"), ready.append)
    assert (ready, len(later.waiting)) == ([], 1)
    later.run()
    assert ready == [None]
    replies: list[Any] = []
    assert count_steps(lambda: schemas.register("s", wide("long"), replies.append)) < ASIDE_STEPS
    node.commit()
    assert [reply.version for reply in replies] == [2]


def test_what_came_between_is_seen() -> None:
    later = Later()
    node, schemas = node_with(later)
    schemas.prepare("s", wide("long"), lambda _: None)
    later.run()
    node.ask(schemas.submit, SetLevel("s", Level.NONE))
    node.reply(lambda done: schemas.register("s", wide("boolean"), done))
    node.ask(schemas.submit, SetLevel("s", Level.BACKWARD))
    with pytest.raises(RegistryRefused) as caught:
        schemas.register("s", wide("long"), lambda _: None)
    assert caught.value.code is RegistryCode.INCOMPATIBLE_SCHEMA


def test_what_cannot_be_prepared_is_told_by_the_call_itself() -> None:
    later = Later()
    _, schemas = node_with(later)
    for given in (Given(""), Given("x" * 600_000), Given("{}"), Given("nonsense")):
        schemas.prepare("s", given, lambda _: None)
        later.run()
        with pytest.raises(RegistryRefused) as caught:
            schemas.register("s", given, lambda _: None)
        assert caught.value.code is RegistryCode.INVALID_SCHEMA


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (Given(avro_mesh(40, "int")), Given(avro_mesh(40, "string"))),
        (
            Given(json.dumps({"anyOf": [{"items": {"const": n}} for n in range(190)]}), SchemaKind.JSON),
            Given(json.dumps({"anyOf": [{"items": {"const": -n - 1}} for n in range(190)]}), SchemaKind.JSON),
        ),
    ],
    ids=["avro", "json"],
)
def test_a_comparison_that_would_take_too_long_is_refused_with_the_reason(older: Given, newer: Given) -> None:
    node = queue_node()
    node.reply(lambda done: node.broker.schemas.register("s", older, done))
    for ask in (
        lambda: node.broker.schemas.register("s", newer, lambda _: None),
        lambda: node.broker.schemas.problems("s", newer, "1"),
    ):
        with pytest.raises(RegistryRefused, match="steps: the schema is too complex") as caught:
            ask()
        assert caught.value.code is RegistryCode.INVALID_SCHEMA


def test_an_error_is_kept_without_what_was_going_on() -> None:
    study = Study(Later())
    text = Text(SchemaKind.AVRO, "{}", ())
    for _ in range(2):
        with pytest.raises(InvalidSchema):
            study.parse(text)
    assert issubclass(TooComplex, InvalidSchema)


# -- publishing


def registered(given: Given, **options: str) -> QueueNode:
    node = queue_node(schema_validation="reject", **options)  # type: ignore[arg-type]
    node.reply(lambda done: node.broker.schemas.register("orders-value", given, done))
    return node


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (Given(json.dumps(doubling("allOf", {"type": "integer"}, levels=13)), SchemaKind.JSON), b"1"),
        (Given(json.dumps(doubling("allOf", {"type": "integer"})), SchemaKind.JSON), b"1"),
        (Given(avro_doubling(12)), b"\0\0\0\0\x01" + bytes([24])),
    ],
    ids=["just checked", "never checked", "avro"],
)
def test_many_values_that_cost_much_are_refused_together(given: Given, value: bytes) -> None:
    node = registered(given)
    batch = build_batch([(1000, None, value, [])] * 200, codec=Codec.ZSTD)

    def publish() -> None:
        with pytest.raises(SchemaMismatch, match=r"too complex|too long") as caught:
            node.broker.publisher.publish("orders", 0, memoryview(batch))
        assert caught.value.code is Code.INVALID_RECORD

    assert count_steps(publish) < 1_000_000
    assert node.values("orders") == []


def test_many_ordinary_values_pass() -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": ["null", "int"]} for n in range(50)]}
    node = registered(Given(json.dumps(record)))
    value = b"\0\0\0\0\x01" + bytes(50)
    node.broker.publisher.publish("orders", 0, memoryview(build_batch([(1000, None, value, [])] * 2000)))
    node.commit()
    assert node.values("orders") == [value] * 2000

"""`valueFormat`: what Confluent's serializers wrote, in typed columns, and what becomes of what does not fit."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from goqueue.client.sync import Admin
from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.registry import message_class, produce, registry, value_of
from tests.integration.spark.pages import run_examples

OLD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "amount", "type": "int"}],
}
NEW = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": "long"},
        {"name": "offset", "type": ["null", "int"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            "default": "\u0000",
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 0},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [{"name": "pieces", "type": "int"}]},
            },
            "default": [],
        },
    ],
}
ORDER = {
    "id": "new",
    "amount": 2**40,
    "offset": 9,
    "price": Decimal("12.30"),
    "at": datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC),
    "day": date(2026, 11, 16),
    "tags": {"a": "b"},
    "lines": [{"pieces": 3}],
}
GARBAGE = b"\0\0\0\0\1\xff\xff"
STRING, INT64 = 9, 3


def read(spark: SparkSession, node: Node, topic: str, name: str, **given: str) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": node.address,
        "valueFormat": name,
        "subscribe": topic,
    }
    return spark.read.format("goqueue").options(**options, **given).load()


def test_avro_becomes_columns_and_what_does_not_fit_is_told_kept_or_a_dead_letter(
    spark: SparkSession, node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=1)
    with registry(node) as client:
        old, new = AvroSerializer(client, json.dumps(OLD)), AvroSerializer(client, json.dumps(NEW))
        first = old({"id": "old", "amount": 5}, value_of(topic))
        second = new(ORDER, value_of(topic))
    assert first is not None
    assert second is not None
    schema_id = str(int.from_bytes(second[1:5])).encode()
    produce(node, topic, first, second, GARBAGE, None)
    produce(node, topic, second[5:], headers=[("schema-id", schema_id), ("kept", b"yes")])

    frame = read(spark, node, topic, "avro").orderBy("_offset").cache()
    fields = ["id", "amount", "offset", "price", "at", "day", "tags", "lines"]
    ours = ["key", "topic", "partition", "_offset", "timestamp", "timestampType", "_error", "_value"]
    assert frame.columns == fields + ours
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    assert [(row["id"], row["amount"], row["_offset"]) for row in rows] == [
        ("old", 5, 0),
        ("new", 2**40, 1),
        (None, None, 2),
        (None, None, 3),
        ("new", 2**40, 4),
    ]
    wanted = ORDER | {"at": datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC).astimezone().replace(tzinfo=None)}
    assert {name: rows[1][name] for name in fields} == wanted
    assert rows[0]["lines"] == []
    assert [row["_error"] is None for row in rows] == [True, True, False, True, True]
    assert bytes(rows[2]["_value"]) == GARBAGE

    with pytest.raises(PySparkException) as told:
        read(spark, node, topic, "avro", badRows="failfast").count()
    assert f"topic {topic}, partition 0, offset 2: does not fit schema" in str(told.value)

    # Two actions read twice and write a dead letter twice: the broker keeps one letter.
    rest = read(spark, node, topic, "avro", badRows="deadletter")
    assert rest.columns == [*fields, *ours[:-2]]
    assert rest.count() == 4
    assert rest.where("id is not null").count() == 3
    with Admin(node.url) as admin:
        (letter,) = admin.dead_letters(topic)
        assert (letter.reason, letter.original_offset) == ("schema", 2)

    ids = [(row["id"], row["_offset"]) for row in rows]
    assert ids_in_files(spark, node, topic) == ids
    assert count_in_a_stream(spark, node, topic, tmp_path) == len(ids)

    names: dict[str, Any] = {}
    assert run_examples("spark-formats.md", node, names, {'load("sales")': f'load("{topic}")'}) == 2
    assert (names["total"], names["kept"]) == (5 + 2 * 2**40, 4)


def ids_in_files(spark: SparkSession, node: Node, topic: str) -> list[tuple[str | None, int]]:
    options = {"goqueue.server": node.url, "valueFormat": "avro", "read": "segments", "activeSegments": "true"}
    files = spark.read.format("goqueue").options(**options, subscribe=topic).load(str(node.data_dir))
    return [(row.id, row["_offset"]) for row in files.orderBy("_offset").collect()]


def count_in_a_stream(spark: SparkSession, node: Node, topic: str, tmp_path: Path) -> int:
    stream = spark.readStream.format("goqueue").options(
        **{"kafka.bootstrap.servers": node.address, "valueFormat": "avro"},
        subscribe=topic,
        startingOffsets="earliest",
        columns="id,_offset",
    )
    query = (
        stream.load()
        .writeStream.format("memory")
        .queryName("typed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.table("typed").count()


def test_json_and_protobuf_become_columns(spark: SparkSession, node: Node, make_topic: CreateTopic) -> None:
    plain, proto = make_topic(partitions=1), make_topic(partitions=1)
    schema = {
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "amount": {"type": "integer"},
            "when": {"type": "string", "format": "date-time"},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"pieces": {"type": "integer"}}}},
        },
    }
    value: dict[str, Any] = {"id": "o-1", "amount": 3, "when": "2026-11-16T01:02:03Z", "lines": [{"pieces": 2}]}
    kind = message_class("Order", {"id": STRING, "amount": INT64})
    with registry(node) as client:
        framed = JSONSerializer(json.dumps(schema), client)(value, value_of(plain))
        message = ProtobufSerializer(kind, client)(kind(id="p-1", amount=7), value_of(proto))
    produce(node, plain, framed, b'{"id": "bare", "amount": 4}', b'{"amount": "x"}')
    produce(node, proto, message, b"\0\0")

    rows = read(spark, node, plain, "json").orderBy("offset").collect()
    assert [(row.id, row.amount) for row in rows] == [("o-1", 3), ("bare", 4), (None, None)]
    assert rows[0].lines[0].pieces == 2
    assert rows[2]._error.endswith('field amount: "x" is not an integer of 64 bits')

    rows = read(spark, node, proto, "protobuf", columns="id,amount,_error").collect()
    assert [(row.id, row.amount, row._error is None) for row in rows] == [("p-1", 7, True), (None, None, False)]

    for given, why in (
        ({"subscribe": proto, "valueFormat": "avro"}, "valueFormat=avro, but schema"),
        ({"subscribe": "nobody", "valueFormat": "avro"}, "has no subject nobody-value or nobody: say valueSubject"),
        ({"subscribe": f"{plain},{proto}", "valueFormat": "json"}, "of the registry is PROTOBUF"),
        ({"subscribe": plain, "valueFormat": "json", "columns": "ids"}, "there is no column 'ids'; did you mean id?"),
    ):
        addresses = {"kafka.bootstrap.servers": node.address, "goqueue.server": node.url}
        with pytest.raises(PySparkException) as told:
            spark.read.format("goqueue").options(**addresses, **given).load()
        assert why in str(told.value)
        assert "Traceback" not in str(told.value)

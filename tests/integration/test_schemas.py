"""The schema registry, spoken to by Confluent's own client."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, ServerConfig
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import ConfigCompatibilityLevel
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from google.protobuf import descriptor_pool

from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.registry import FIELD, consume, message_class, produce, registry, value_of

ORDER = {"id": "o-1", "amount": 3}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "string"}, {"name": "amount", "type": "int", "default": 1}],
    }
)
JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 0}},
        "required": ["id"],
    }
)
MODERN = JSON.replace("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema")


@pytest.mark.parametrize("below", ["", "/schemas", "/v1"])
def test_avro_makes_the_round_trip(node: Node, make_topic: CreateTopic, below: str) -> None:
    topic = make_topic()
    with registry(node, below) as client:
        serialize = AvroSerializer(client, AVRO)
        (sent,) = produce(node, topic, serialize(ORDER, value_of(topic)))
        assert sent.error is None
    with registry(node, below) as client:
        (message,) = consume(node, topic, 1)
        assert AvroDeserializer(client)(message.value(), value_of(topic)) == ORDER
        assert client.get_versions(f"{topic}-value") == [1]


@pytest.mark.parametrize("text", [JSON, MODERN], ids=["draft-07", "2020-12"])
def test_json_makes_the_round_trip(node: Node, make_topic: CreateTopic, text: str) -> None:
    topic = make_topic()
    with registry(node) as client:
        (sent,) = produce(node, topic, JSONSerializer(text, client)(ORDER, value_of(topic)))
        assert sent.error is None
    with registry(node) as client:
        (message,) = consume(node, topic, 1)
        assert JSONDeserializer(None, schema_registry_client=client)(message.value(), value_of(topic)) == ORDER


def test_protobuf_makes_the_round_trip(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic()
    pool = descriptor_pool.DescriptorPool()
    part = message_class("Part", {"name": FIELD.TYPE_STRING}, pool=pool)
    order = message_class("Bundle", {"id": FIELD.TYPE_STRING, "part": 111}, imports="Part", pool=pool)
    sample = order(id="o-1", part=part(name="wheel"))
    with registry(node) as client:
        (sent,) = produce(node, topic, ProtobufSerializer(order, client)(sample, value_of(topic)))
        assert sent.error is None
    with registry(node) as client:
        (message,) = consume(node, topic, 1)
        assert ProtobufDeserializer(order, {}, client)(message.value(), value_of(topic)) == sample
        latest = client.get_latest_version(f"{topic}-value")
        assert latest.schema.schema_type == "PROTOBUF"
        assert "message Bundle {" in str(latest.schema.schema_str)  # as text, though a descriptor was sent
        assert [each.subject for each in latest.schema.references or ()] == ["part.proto"]
        assert client.lookup_schema("part.proto", client.get_version("part.proto", 1).schema).version == 1


def avro(name: str, *fields: dict[str, Any]) -> Schema:
    return Schema(json.dumps({"type": "record", "name": name, "fields": list(fields)}), "AVRO")


ID = {"name": "id", "type": "string"}
NOTE = {"name": "note", "type": "string"}
NOTE_DEFAULT = {**NOTE, "default": ""}


def refusal(call: Any, *args: Any, **more: Any) -> tuple[int, int]:
    with pytest.raises(SchemaRegistryError) as caught:
        call(*args, **more)
    assert caught.value.error_message
    return caught.value.http_status_code, caught.value.error_code


def test_the_client_manages_subjects_versions_and_levels(own_node: Node) -> None:
    with registry(own_node) as client:
        first = client.register_schema("a", avro("A", ID))
        assert (first, client.register_schema("a", avro("A", ID))) == (1, 1)
        assert client.register_schema("b", avro("A", ID)) == first  # one schema, one id
        assert client.test_compatibility("a", avro("A", ID, NOTE)) is False
        assert refusal(client.register_schema, "a", avro("A", ID, NOTE)) == (409, 409)
        assert client.register_schema("a", avro("A", ID, NOTE_DEFAULT)) == 2
        assert client.get_subjects() == ["a", "b"]
        assert client.get_versions("a") == [1, 2]
        assert client.get_latest_version("a").schema_id == 2
        assert client.get_version("a", 1).schema.schema_str == str(avro("A", ID).schema_str).replace(" ", "")
        assert json.loads(str(client.get_schema(2).schema_str))["fields"][1] == NOTE_DEFAULT
        assert client.get_subjects_by_schema_id(1) == ["a", "b"]
        assert [(each.subject, each.version) for each in client.get_schema_versions(1)] == [("a", 1), ("b", 1)]
        assert client.get_schema_types() == ["AVRO", "JSON", "PROTOBUF"]
        assert client.get_contexts() == ["."]
        assert client.get_compatibility() == "BACKWARD"
        client.set_compatibility(level="full_transitive")
        client.set_compatibility("a", "NONE")
        assert (client.get_compatibility(), client.get_compatibility("a")) == ("FULL_TRANSITIVE", "NONE")
        client.set_config("b", ServerConfig(compatibility=ConfigCompatibilityLevel.FORWARD))
        assert client.get_config("b").compatibility_level is ConfigCompatibilityLevel.FORWARD
        client.delete_config("b")
        assert refusal(client.get_config, "b") == (404, 40408)
        assert client.register_schema("a", avro("A", ID, NOTE)) == 3
        assert refusal(client.get_version, "a", 9) == (404, 40402)
        assert refusal(client.get_latest_version, "nobody") == (404, 40401)
        assert refusal(client.get_schema, 99) == (404, 40403)
        assert refusal(client.register_schema, "a", Schema("{", "AVRO")) == (422, 42201)
        assert refusal(client.set_compatibility, "a", "SOMETIMES") == (422, 42203)


def test_deleting_is_soft_and_then_hard_and_ids_are_never_given_again(own_node: Node) -> None:
    with registry(own_node) as client:
        client.set_compatibility(level="NONE")
        for schema in (avro("A", ID), avro("A", ID, NOTE), avro("A", NOTE)):
            client.register_schema("a", schema)
        assert refusal(client.delete_version, "a", 3, permanent=True) == (404, 40407)
        assert client.delete_version("a", 3) == 3
        assert refusal(client.delete_version, "a", 3) == (404, 40406)
        assert (client.get_versions("a"), client.get_versions("a", deleted=True)) == ([1, 2], [1, 2, 3])
        assert client.delete_version("a", 3, permanent=True) == 3
        assert refusal(SchemaRegistryClient({"url": own_node.url}).get_schema, 3) == (404, 40403)
        assert client.delete_subject("a") == [1, 2]
        assert client.get_subjects() == []
        assert client.get_subjects(deleted=True) == ["a"]
        assert client.delete_subject("a", permanent=True) == [1, 2]
        assert client.get_subjects(deleted=True) == []
        assert client.register_schema("a", avro("A", ID)) == 4


def test_what_others_refer_to_cannot_be_deleted(own_node: Node) -> None:
    with registry(own_node) as client:
        client.register_schema("part", avro("Part", ID))
        whole = Schema(
            json.dumps({"type": "record", "name": "Whole", "fields": [{"name": "part", "type": "Part"}]}),
            "AVRO",
            [SchemaReference("Part", "part", 1)],
        )
        assert refusal(client.register_schema, "whole", Schema(whole.schema_str, "AVRO")) == (422, 42201)
        number = client.register_schema("whole", whole)
        assert client.get_referenced_by("part", 1) == [number]
        assert refusal(client.delete_version, "part", 1) == (422, 42206)
        client.delete_subject("whole")
        assert client.delete_subject("part") == [1]


def test_modes_keep_writers_out_and_let_imports_choose_ids(own_node: Node) -> None:
    with registry(own_node) as client:
        assert client.get_global_mode() == "READWRITE"
        assert client.update_mode("a", "READONLY") == "READONLY"
        assert refusal(client.register_schema, "a", avro("A", ID)) == (422, 42205)
        assert client.delete_mode("a") == "READONLY"
        assert refusal(client.get_mode, "a") == (404, 40409)
        assert client.register_schema("a", avro("A", ID)) == 1
        assert refusal(client.update_global_mode, "IMPORT") == (422, 42205)
        assert client.update_global_mode("IMPORT", force=True) == "IMPORT"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_everything_is_there_after_a_restart(own_node: Node, how: str) -> None:
    with registry(own_node) as client:
        client.register_schema("a", avro("A", ID))
        client.register_schema("a", avro("A", ID, NOTE_DEFAULT))
        client.register_schema("gone", Schema(JSON, "JSON"))
        client.delete_subject("gone")
        client.delete_subject("gone", permanent=True)
        client.register_schema("soft", Schema('syntax = "proto3"; message A { string id = 1; }', "PROTOBUF"))
        client.delete_subject("soft")
        client.set_compatibility("a", "FULL")
        client.update_mode("b", "READONLY")
    own_node.kill() if how == "kill" else own_node.stop()
    own_node.start()
    with registry(own_node) as client:
        assert client.get_subjects(deleted=True) == ["a", "soft"]
        assert client.get_versions("a") == [1, 2]
        assert client.get_latest_version("a").schema_id == 2
        assert (client.get_compatibility("a"), client.get_mode("b")) == ("FULL", "READONLY")
        assert refusal(client.register_schema, "a", avro("A", {"name": "id", "type": "int"})) == (409, 409)
        assert client.register_schema("new", Schema(JSON, "JSON")) == 5  # 3 was another's

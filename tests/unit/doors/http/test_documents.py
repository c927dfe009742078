"""What the door says about itself: the OpenAPI document, the page and the Postman collection."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import jsonschema_rs

from goqueue.doors.http.postman import SCHEMA, example
from goqueue.wire.rest.operations.table import OPERATIONS
from tests.unit.doors.http.door_client import Client, served

WORDS = re.compile(r"\{(\w+)\}")
COLLECTION = {
    "type": "object",
    "required": ["info", "item"],
    "properties": {
        "info": {
            "type": "object",
            "required": ["name", "schema"],
            "properties": {"name": {"type": "string"}, "schema": {"const": SCHEMA}, "description": {"type": "string"}},
        },
        "item": {"type": "array", "items": {"$ref": "#/$defs/group"}, "minItems": 1},
        "variable": {"type": "array", "items": {"$ref": "#/$defs/variable"}},
    },
    "$defs": {
        "variable": {"type": "object", "required": ["key", "value"], "properties": {"key": {"type": "string"}}},
        "group": {
            "type": "object",
            "required": ["name", "item"],
            "properties": {"item": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1}},
        },
        "item": {
            "type": "object",
            "required": ["name", "request"],
            "properties": {
                "response": {"type": "array"},
                "request": {
                    "type": "object",
                    "required": ["method", "url"],
                    "properties": {
                        "method": {"enum": ["GET", "POST", "PUT", "PATCH", "DELETE"]},
                        "header": {
                            "type": "array",
                            "items": {"required": ["key", "value"], "additionalProperties": {"type": "string"}},
                        },
                        "body": {
                            "required": ["mode", "raw"],
                            "properties": {"mode": {"const": "raw"}, "raw": {"type": "string"}},
                        },
                        "url": {
                            "type": "object",
                            "required": ["raw", "host", "path"],
                            "properties": {
                                "raw": {"type": "string", "pattern": r"^\{\{baseUrl\}\}/[^{}]*$"},
                                "host": {"const": ["{{baseUrl}}"]},
                                "path": {"type": "array", "items": {"type": "string", "pattern": "^[^/{}]+$"}},
                                "query": {
                                    "type": "array",
                                    "items": {
                                        "required": ["key", "value"],
                                        "properties": {"value": {"type": "string"}, "disabled": {"type": "boolean"}},
                                    },
                                },
                                "variable": {"type": "array", "items": {"$ref": "#/$defs/variable"}},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What format 2.1 asks for, as far as our collection goes."""


def operations_of(told: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method.upper(), path, each) for path, methods in told["paths"].items() for method, each in methods.items()]


@served
async def test_the_document_tells_every_operation_once(client: Client) -> None:
    told = await client.get("/openapi.json")
    assert told["openapi"] == "3.1.0"
    found = operations_of(told)
    assert {(method, path) for method, path, _ in found} == {(each.method, each.path) for each in OPERATIONS}
    names = [each["operationId"] for _, _, each in found]
    assert len(set(names)) == len(names) == len(OPERATIONS)
    assert {each["tags"][0] for _, _, each in found} == {tag["name"] for tag in told["tags"]}
    for method, path, each in found:
        slots = [parameter["name"] for parameter in each.get("parameters", ()) if parameter["in"] == "path"]
        assert slots == WORDS.findall(path), (method, path)
        assert all(parameter["required"] for parameter in each.get("parameters", ()) if parameter["in"] == "path")


@served
async def test_every_reference_leads_somewhere_and_every_schema_is_used(client: Client) -> None:
    told = await client.get("/openapi.json")
    used = set(re.findall(r"#/components/schemas/(\w+)", str(told)))
    assert used == set(told["components"]["schemas"])


@served
async def test_every_schema_is_a_schema_and_its_example_fits(client: Client) -> None:
    told = await client.get("/openapi.json")
    schemas = told["components"]["schemas"]
    for method, path, operation in operations_of(told):
        wanted = [parameter["schema"] for parameter in operation.get("parameters", ())]
        if "requestBody" in operation:
            wanted.append(operation["requestBody"]["content"]["application/json"]["schema"])
        for schema in wanted:
            whole = {**schema, "components": {"schemas": schemas}}
            jsonschema_rs.meta.validate(whole)
            value = example(schema, schemas)
            assert jsonschema_rs.is_valid(whole, value), (method, path, value)


@served
async def test_words_are_for_people(client: Client) -> None:
    """A sentence begins with a capital letter, says something, and shows nothing of Python."""
    told = await client.get("/openapi.json")
    summaries = [each["summary"] for _, _, each in operations_of(told)]
    assert [words for words in summaries if not re.fullmatch(r"[A-Z].{5,110}[^.]", words)] == []
    everything = str(told)
    assert re.findall(r"msgspec|Struct|None |:param|\bself\.", everything) == []


@served
async def test_what_stands_under_a_field_is_told(client: Client) -> None:
    schemas = (await client.get("/openapi.json"))["components"]["schemas"]
    assert schemas["TopicChange"]["properties"]["options"]["description"] == (
        "By name; null takes an option back to its default."
    )
    assert schemas["NewTopic"]["properties"]["name"]["description"] == "Name of a topic."
    assert "docs/queue.md" in schemas["NewTopic"]["properties"]["options"]["description"]


def fields_of(told: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Of every body, answer, path and query."""
    for name, schema in told["components"]["schemas"].items():
        for field, each in schema["properties"].items():
            yield name, field, each
    for _, _, operation in operations_of(told):
        for parameter in operation.get("parameters", ()):
            yield operation["operationId"], parameter["name"], parameter["schema"]


@served
async def test_every_field_is_described_in_a_sentence(client: Client) -> None:
    told = await client.get("/openapi.json")
    silent = [
        (where, field)
        for where, field, schema in fields_of(told)
        if not re.fullmatch(r"\S.{3,}\.", schema.get("description", ""), re.DOTALL)
    ]
    assert silent == []


@served
async def test_fields_are_spelled_in_one_way(client: Client) -> None:
    """But in the registry, which is spelled as Confluent's."""
    told = await client.get("/openapi.json")
    registry = {
        name
        for _, path, operation in operations_of(told)
        if operation["tags"][0].startswith("Schema")
        for name in re.findall(r"schemas/(\w+)", str(operation))
    }
    registry |= set(re.findall(r"schemas/(\w+)", str([told["components"]["schemas"][name] for name in registry])))
    registry |= {each["operationId"] for _, _, each in operations_of(told) if each["tags"][0].startswith("Schema")}
    odd = {
        (where, field)
        for where, field, schema in fields_of(told)
        if not re.fullmatch(r"[a-z0-9_]+", field) and where not in registry and "deprecated" not in str(schema)
    }
    assert odd == set()


@served
async def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    reply = await client.http.get("/v1/docs")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    links: list[str | None] = []
    open_tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(value for name, value in attrs if name in ("href", "src"))
            if tag not in ("meta", "link", "input"):
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

    Reader().feed(reply.text)
    assert open_tags == []
    assert links == ["data:,", "openapi.json", "postman.json"]
    assert re.findall(r"https?:|import\(|@import|url\(", reply.text) == []
    assert len(reply.content) < 20_000


@served
async def test_the_collection_has_every_operation_and_keeps_to_its_format(client: Client) -> None:
    made = await client.get("/postman.json")
    jsonschema_rs.validate(COLLECTION, made)
    items = [item for folder in made["item"] for item in folder["item"]]
    paths = {(each.method, WORDS.sub(r":\1", each.path[1:])) for each in OPERATIONS}
    assert {(item["request"]["method"], "/".join(item["request"]["url"]["path"])) for item in items} == paths
    assert len(items) == len(OPERATIONS)
    known = {each["key"] for each in made["variable"]}
    for item in items:
        assert {"baseUrl"} | {each["key"] for each in item["request"]["url"].get("variable", ())} <= known


@served
async def test_requests_of_the_collection_work_as_they_are(client: Client) -> None:
    """The first of them: make a topic, publish, read."""
    made = await client.get("/postman.json")
    values = {each["key"]: each["value"] for each in made["variable"]}
    by_name = {item["name"]: item["request"] for folder in made["item"] for item in folder["item"]}
    for operation in ("create_topic", "publish", "read_messages"):
        (summary,) = (each.summary for each in OPERATIONS if each.name == operation)
        request = by_name[summary]
        path = "/" + "/".join(values[word[1:]] if word[0] == ":" else word for word in request["url"]["path"])
        body = request.get("body", {}).get("raw")
        headers = {each["key"]: each["value"] for each in request["header"]}
        reply = await client.http.request(request["method"], path, content=body, headers=headers)
        assert reply.is_success, reply.text

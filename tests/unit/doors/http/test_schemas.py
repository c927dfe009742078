"""The routes of the schema registry: Confluent's paths and shapes, at the root, under /schemas and under /v1."""

import json
from typing import Any

import pytest

from goqueue.wire.rest.operations.table import OPERATIONS
from tests.unit.doors.http.door_client import Client, served

TEXT = '{"type": "object", "properties": {"a": {"type": "string"}}}'
WIDER = '{"type": "object"}'
OTHER = '{"type": "string"}'
NO_VERSION = (
    "The specified version 'first' is not a valid version id. "
    'Allowed values are between [1, 2^31-1] and the string "latest"'
)
BOTH = ("", "/schemas", "/v1", "/v1/schemas")


def body(text: str = TEXT, **more: Any) -> dict[str, Any]:
    return {"schema": text, "schemaType": "JSON", **more}


async def refused(client: Client, method: str, path: str, status: int, number: int, json: Any = None) -> str:
    """Both languages of errors in one body; gives the message."""
    reply = await client.ask(method, path, json, status=status)
    assert reply.keys() == {"error", "status", "code", "error_code", "message"}
    assert (reply["error_code"], reply["error"]) == (number, reply["message"])
    return str(reply["message"])


@served
async def test_a_schema_is_registered_once_and_found_everywhere(client: Client) -> None:
    for below in BOTH:
        assert await client.post(f"{below}/subjects/orders/versions", **body()) == {"id": 1, "version": 1}
    compact = json.dumps(json.loads(TEXT), separators=(",", ":"))
    whole = {"subject": "orders", "version": 1, "id": 1, "schema": compact, "schemaType": "JSON"}
    for below in BOTH:
        assert await client.get(f"{below}/subjects") == ["orders"]
        assert await client.get(f"{below}/subjects/orders/versions") == [1]
        assert await client.get(f"{below}/subjects/orders/versions/1") == whole
        assert await client.get(f"{below}/subjects/orders/versions/latest") == whole
        assert await client.get(f"{below}/subjects/orders/versions/-1") == whole
        for path in ("subjects/orders/versions/1/schema", "schemas/ids/1/schema"):  # unescaped, as Confluent's answers
            assert (await client.http.get(f"{below}/{path}")).text == compact
        assert await client.post(f"{below}/subjects/orders", **body(TEXT.replace(" ", "  "))) == whole
        assert await client.get(f"{below}/schemas/ids/1") == whole
        assert await client.get(f"{below}/schemas/ids/1/subjects") == ["orders"]
        assert await client.get(f"{below}/schemas/ids/1/versions") == [{"subject": "orders", "version": 1}]
        assert await client.get(f"{below}/schemas/types") == ["AVRO", "JSON", "PROTOBUF"]
        assert await client.get(f"{below}/contexts") == ["."]
    assert await client.get("/schemas/ids/1") == whole
    assert await client.get("/schemas") == [whole]
    assert await client.get("/schemas", subjectPrefix="x") == []


@served
async def test_a_schema_too_complex_to_compare_is_refused_with_the_reason(client: Client) -> None:
    older, newer = (json.dumps({"anyOf": [{"items": {"const": n * sign}} for n in range(1, 190)]}) for sign in (1, -1))
    await client.post("/subjects/orders/versions", **body(older))
    for path in ("/subjects/orders/versions", "/compatibility/subjects/orders/versions/latest"):
        assert "steps: the schema is too complex" in await refused(client, "POST", path, 422, 42201, body(newer))
    assert await client.get("/subjects/orders/versions") == [1]


@served
async def test_compatibility_is_checked_before_and_at_registration(client: Client) -> None:
    await client.post("/subjects/orders/versions", **body(WIDER))
    message = await refused(client, "POST", "/subjects/orders/versions", 409, 409, body())
    assert "#/properties/a: was added to an open content model" in message
    check = "/compatibility/subjects/orders/versions"
    assert await client.post(f"{check}/latest", **body()) == {"is_compatible": False}
    told = await client.post(f"{check}/1?verbose=true", **body())
    assert (told["is_compatible"], len(told["messages"])) == (False, 1)
    assert await client.post(check, **body(WIDER)) == {"is_compatible": True}
    await refused(client, "POST", f"{check}/7", 404, 40402, body())
    await refused(client, "POST", "/compatibility/subjects/nobody/versions/latest", 404, 40401, body())
    assert await client.post("/compatibility/subjects/nobody/versions", **body()) == {"is_compatible": True}
    await refused(client, "POST", "/subjects/orders/versions", 409, 409, {"schema": '"string"'})  # of another format


LEVELS: list[tuple[str, list[str], str, bool]] = [
    # level, versions there, candidate, allowed; W(ider) accepts all that T(ext) accepts
    ("BACKWARD", [TEXT], WIDER, True),
    ("BACKWARD", [WIDER], TEXT, False),
    ("FORWARD", [TEXT], WIDER, False),
    ("FORWARD", [WIDER], TEXT, True),
    ("FULL", [WIDER], TEXT, False),
    ("FULL", [TEXT], WIDER, False),
    ("FULL", [TEXT], TEXT.replace("{", '{"title": "A", ', 1), True),
    ("NONE", [OTHER], TEXT, True),
    ("BACKWARD", [OTHER, TEXT], WIDER, True),
    ("BACKWARD_TRANSITIVE", [OTHER, TEXT], WIDER, False),
    ("FORWARD", [OTHER, WIDER], TEXT, True),
    ("FORWARD_TRANSITIVE", [OTHER, WIDER], TEXT, False),
    ("FULL_TRANSITIVE", [OTHER, TEXT], TEXT.replace("{", '{"title": "A", ', 1), False),
    ("FULL", [OTHER, TEXT], TEXT.replace("{", '{"title": "A", ', 1), True),
]


@pytest.mark.parametrize(("level", "there", "candidate", "is_allowed"), LEVELS)
def test_levels_look_their_way_and_as_far_back_as_they_say(
    level: str, there: list[str], candidate: str, is_allowed: bool
) -> None:
    @served
    async def run(client: Client) -> None:
        await client.ask("PUT", "/config", {"compatibility": "NONE"})
        for text in there:
            await client.post("/subjects/s/versions", **body(text))
        await client.ask("PUT", "/config/s", {"compatibilityLevel": level.lower()})
        await client.post("/subjects/s/versions", **body(candidate), status=200 if is_allowed else 409)

    run()


@served
async def test_levels_by_both_names_and_nothing_unknown(client: Client) -> None:
    """An unknown key or value is refused, never BACKWARD in silence."""
    both = {"compatibility": "FULL", "compatibilityLevel": "FULL"}
    for below in BOTH:
        for key in both:
            assert await client.ask("PUT", f"{below}/config", {key: "FULL"}) == both
        assert await client.get(f"{below}/config") == both
        await refused(client, "PUT", f"{below}/config", 422, 42203, {"compatibility": "SOMETIMES"})
        await refused(client, "PUT", f"{below}/config", 422, 42203, {})
        await refused(client, "PUT", f"{below}/config", 400, 400, {"compatibilty": "NONE"})
        await refused(client, "GET", f"{below}/config/s", 404, 40408)
        assert await client.get(f"{below}/config/s", defaultToGlobal="true") == both
    await client.ask("PUT", "/config/s", {"compatibility": "NONE"})
    assert (await client.ask("DELETE", "/config/s"))["compatibilityLevel"] == "NONE"
    await refused(client, "DELETE", "/config/s", 404, 40408)
    assert (await client.ask("DELETE", "/config"))["compatibilityLevel"] == "FULL"
    assert (await client.get("/config"))["compatibilityLevel"] == "BACKWARD"


@served
async def test_modes(client: Client) -> None:
    for below in BOTH:
        assert await client.get(f"{below}/mode") == {"mode": "READWRITE"}
    assert await client.ask("PUT", "/mode/s", {"mode": "readonly"}) == {"mode": "READONLY"}
    await refused(client, "POST", "/subjects/s/versions", 422, 42205, body())
    await refused(client, "PUT", "/mode", 422, 42204, {"mode": "SLEEPY"})
    await refused(client, "GET", "/mode/t", 404, 40409)
    assert await client.ask("DELETE", "/mode/s") == {"mode": "READONLY"}
    assert await client.ask("PUT", "/mode", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert await client.post("/subjects/s/versions", **body(id=40, version=3)) == {"id": 40, "version": 3}
    assert await client.ask("DELETE", "/mode") == {"mode": "IMPORT"}
    await refused(client, "POST", "/subjects/t/versions", 422, 42205, body(OTHER, id=50))


@served
async def test_deleting(client: Client) -> None:
    await client.ask("PUT", "/config", {"compatibility": "NONE"})
    for text in (TEXT, WIDER, OTHER):
        await client.post("/schemas/subjects/s/versions", **body(text))
    assert await client.delete("/schemas/subjects/s/versions/2") == 2  # the number, as Confluent has it
    assert await client.delete("/subjects/s/versions/latest") == 3
    assert await client.get("/subjects/s/versions") == [1]
    assert await client.get("/subjects/s/versions", deleted="true") == [1, 2, 3]
    assert (await client.get("/subjects/s/versions/3", deleted="true"))["id"] == 3
    await refused(client, "GET", "/subjects/s/versions/3", 404, 40402)
    assert await client.delete("/subjects/s") == [1]
    assert await client.get("/subjects") == []
    assert await client.get("/subjects", deleted="true") == ["s"]
    assert await client.get("/subjects", deletedOnly="true") == ["s"]
    assert (await client.get("/schemas/ids/1"))["subject"] == "s"  # readers may still need it
    assert await client.delete("/subjects/s?permanent=true") == [1, 2, 3]
    await refused(client, "GET", "/schemas/ids/1", 404, 40403)
    assert (await client.post("/subjects/s/versions", **body()))["id"] == 4


@served
async def test_bad_input_is_told_in_both_languages(client: Client) -> None:
    for path, sent, status, number in (
        ("/subjects/s/versions", body("{"), 422, 42201),
        ("/subjects/s/versions", body(""), 422, 42201),
        ("/subjects/s/versions", body("x" * 600_000), 422, 42201),
        ("/subjects/s/versions", {"schema": TEXT, "schemaType": "XML"}, 422, 42201),
        ("/subjects/s/versions", body(references=[{"name": "a", "subject": "b", "version": 1}]), 422, 42201),
        ("/subjects/s/versions", {}, 400, 400),
        ("/subjects/s/versions", {"schema": 5}, 400, 400),
        ("/subjects/s%00/versions", body(), 422, 42208),
        ("/subjects/s/versions?normalize=maybe", body(), 400, 400),
        ("/subjects/s", body(), 404, 40401),
    ):
        await refused(client, "POST", path, status, number, sent)
    await client.post("/subjects/s/versions", **body())
    for path, status, number in (
        ("/subjects/s/versions/0", 422, 42202),
        ("/subjects/s/versions/one", 422, 42202),
        ("/subjects/s/versions/9", 404, 40402),
        ("/subjects/t/versions", 404, 40401),
        ("/schemas/ids/77", 404, 40403),
        ("/schemas/ids/one", 400, 400),
        ("/schemas/ids/77/versions", 404, 40403),
    ):
        await refused(client, "GET", path, status, number)
    await refused(client, "POST", "/subjects/s", 404, 40403, body(OTHER))


@served
async def test_a_subject_may_be_called_like_a_file(client: Client) -> None:
    await client.post("/v1/subjects/shop%2Forder.proto/versions", **body())
    await client.post("/schemas/subjects/shop%2fpart.proto/versions", **body())
    assert await client.get("/subjects") == ["shop/order.proto", "shop/part.proto"]
    assert (await client.get("/subjects/shop%2Forder.proto/versions/1"))["subject"] == "shop/order.proto"
    assert await client.ask("PUT", "/config/shop%2Forder.proto", {"compatibility": "NONE"})


@served
async def test_references_metadata_and_pages(client: Client) -> None:
    await client.post("/subjects/part.json/versions", **body(OTHER))
    reference = {"name": "part.json", "subject": "part.json", "version": 1}
    metadata = {"properties": {"owner": "shop"}}
    whole = body('{"$ref": "part.json"}', references=[{**reference, "version": -1}], metadata=metadata)
    assert await client.post("/subjects/whole/versions", **whole) == {"id": 2, "version": 1}
    found = await client.get("/subjects/whole/versions/1")
    assert (found["references"], found["metadata"]) == ([reference], metadata)
    assert await client.get("/subjects/part.json/versions/1/referencedby") == [2]
    await refused(client, "DELETE", "/subjects/part.json", 422, 42206)
    assert await client.get("/subjects", offset=1, limit=1) == ["whole"]
    assert await client.get("/subjects", offset=0, limit=-1) == ["part.json", "whole"]
    assert await client.get("/subjects", subjectPrefix="wh") == ["whole"]


@served
async def test_a_normalized_schema_is_found_whatever_its_order(client: Client) -> None:
    one, other = '{"type": "string", "title": "A"}', '{"title": "A", "type": "string"}'
    assert await client.post("/subjects/s/versions?normalize=True", **body(one)) == {"id": 1, "version": 1}
    assert await client.post("/subjects/s/versions?normalize=True", **body(other)) == {"id": 1, "version": 1}
    assert (await client.post("/subjects/s?normalize=true", **body(other)))["schema"] == other.replace(" ", "")


@served
async def test_protobuf_is_text_or_a_descriptor(client: Client) -> None:
    text = 'syntax = "proto3";\n// an order\nmessage Order { string id = 1; }\n'
    await client.post("/subjects/s/versions", schema=text, schemaType="PROTOBUF")
    assert (await client.get("/schemas/ids/1"))["schema"] == text
    descriptor = (await client.get("/schemas/ids/1", format="serialized"))["schema"]
    registered = await client.post("/subjects/s/versions", schema=descriptor, schemaType="PROTOBUF")
    assert registered == {"id": 1, "version": 1}


@served
async def test_stats(client: Client) -> None:
    await client.b.create_topic("orders", schema_validation="reject")
    await client.post("/subjects/orders/versions", **body())
    await client.post("/subjects/other/versions", **body())
    stats = await client.get("/schemas/stats")
    assert (stats["subjects"], stats["schemas"], stats["versions"]) == (2, 1, 2)
    assert (stats["subjectCount"], stats["totalSchemas"], stats["globalCompatibility"]) == (2, 1, "BACKWARD")
    assert stats["validationEnabled"] is True
    assert [(each["subject"], each["validationEnabled"]) for each in stats["subjectStats"]] == [
        ("orders", True),
        ("other", False),
    ]


def test_every_route_has_a_name_of_its_own() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))
    paths = {(each.method, each.path) for each in OPERATIONS if each.tag == "Schemas"}
    named = {
        ("POST", "/schemas/subjects/{subject}/versions"),
        ("GET", "/schemas/subjects/{subject}/versions"),
        ("GET", "/schemas/subjects/{subject}/versions/{version}"),
        ("DELETE", "/schemas/subjects/{subject}/versions/{version}"),
        ("GET", "/schemas/subjects"),
        ("POST", "/schemas/subjects/{subject}"),
        ("DELETE", "/schemas/subjects/{subject}"),
        ("GET", "/schemas/ids/{id}"),
        ("POST", "/schemas/compatibility/subjects/{subject}/versions/{version}"),
        ("GET", "/schemas/config"),
        ("PUT", "/schemas/config"),
        ("GET", "/schemas/config/{subject}"),
        ("PUT", "/schemas/config/{subject}"),
        ("GET", "/schemas/stats"),
    }
    assert named <= paths


@served
async def test_the_registry_says_no_in_confluents_words(client: Client) -> None:
    for text in (TEXT, WIDER):
        await client.put("/config", compatibility="NONE")
        await client.post("/subjects/orders/versions", **body(text))
    told = {
        ("GET", "/subjects/x/versions"): (404, 40401, "Subject 'x' not found."),
        ("GET", "/subjects/x/versions/1"): (404, 40401, "Subject 'x' not found."),
        ("DELETE", "/subjects/x"): (404, 40401, "Subject 'x' not found."),
        ("GET", "/subjects/orders/versions/7"): (404, 40402, "Version 7 not found."),
        ("DELETE", "/subjects/orders/versions/7"): (404, 40402, "Version 7 not found."),
        ("GET", "/schemas/ids/5"): (404, 40403, "Schema 5 not found"),
        ("GET", "/config/orders"): (
            404,
            40408,
            "Subject 'orders' does not have subject-level compatibility configured",
        ),
        ("GET", "/mode/orders"): (404, 40409, "Subject 'orders' does not have subject-level mode configured"),
        ("GET", "/subjects/orders/versions/first"): (
            422,
            42202,
            NO_VERSION,
        ),
        ("DELETE", "/subjects/orders?permanent=true"): (
            404,
            40405,
            "Subject 'orders' was not deleted first before being permanently deleted",
        ),
    }
    for (method, path), (status, number, message) in told.items():
        assert await refused(client, method, path, status, number) == message
    assert await refused(client, "POST", "/subjects/orders", 404, 40403, body(OTHER)) == "Schema not found"
    bad = await refused(client, "POST", "/subjects/orders/versions", 422, 42201, body("{"))
    assert bad.startswith("Invalid schema")
    await client.put("/config/orders", compatibility="FULL")
    worse = await refused(client, "POST", "/subjects/orders/versions", 409, 409, body(OTHER))
    assert worse.startswith('Schema being registered is incompatible with an earlier schema for subject "orders"')
    level = await refused(client, "PUT", "/config", 422, 42203, {"compatibility": "SOME"})
    assert level.startswith("Invalid compatibility level")
    mode = await refused(client, "PUT", "/mode", 422, 42204, {"mode": "SOME"})
    assert mode.startswith("Invalid mode")


@served
async def test_below_schemas_a_schema_is_json_unless_it_says_otherwise(client: Client) -> None:
    await client.post("/schemas/subjects/s/versions", schema=TEXT)
    assert (await client.get("/subjects/s/versions/1"))["schemaType"] == "JSON"
    assert (await client.post("/schemas/subjects/s", schema=TEXT))["version"] == 1
    await refused(client, "POST", "/subjects/s/versions", 422, 42201, {"schema": TEXT})  # at the root it is Avro
    await client.post("/schemas/subjects/a/versions", schema='"string"', schemaType="AVRO")
    assert (await client.get("/subjects/a/versions/1"))["schemaType"] == "AVRO"

"""What this door can do, told to people and to programs."""

from functools import cache
from typing import Any

from goqueue.doors.http.call import Call
from goqueue.doors.http.docs_page import PAGE, POLICY
from goqueue.doors.http.openapi import document
from goqueue.doors.http.operation import Elsewhere, Operation, Operations, Text
from goqueue.doors.http.postman import collection
from goqueue.wire.rest.infrastructure import Root, RootQuery

BASE_URL = "http://127.0.0.1:8080/v1"
PAGE_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)

documents = Operations("Documents")


@documents.get("/", header_fields=(("accept", "accept"),), other_replies=((303, "For browsers: to /docs"),))
async def root(call: Call, query: RootQuery) -> Root | Elsewhere:
    """Where to go on from here. Browsers are led to /docs."""
    if "text/html" in query.accept:
        return Elsewhere("docs")
    return Root(
        name="GoQueue",
        version=call.version,
        docs="/docs",
        openapi="/openapi.json",
        postman="/postman.json",
        topics="/topics",
        health="/healthz",
        metrics="/metrics",
    )


@documents.get("/openapi.json")
async def openapi(call: Call) -> dict[str, Any]:
    """This document: OpenAPI 3.1."""
    return _document(tuple(call.operations), call.version)


@documents.get("/postman.json")
async def postman(call: Call) -> dict[str, Any]:
    """The same as a Postman collection.

    Set its variable `baseUrl` to where your node is.
    """
    return collection(_document(tuple(call.operations), call.version), BASE_URL)


@documents.get("/docs", media_type="text/html")
async def docs(call: Call) -> Text:  # noqa: ARG001  every handler takes it
    """The same as a page for people, who can try each operation there."""
    return Text(PAGE, "text/html; charset=utf-8", PAGE_HEADERS)


@cache
def _document(operations: tuple[Operation, ...], version: str) -> dict[str, Any]:
    return document(operations, version)

"""What this door can do, told to people and to programs."""

from functools import cache
from typing import Any

from goqueue.doors.http.call import Call
from goqueue.doors.http.docs_page import PAGE, POLICY
from goqueue.doors.http.openapi import document
from goqueue.doors.http.operation import Elsewhere, Handlers, Text
from goqueue.doors.http.postman import collection
from goqueue.model.access import OPEN
from goqueue.model.console import Console
from goqueue.wire.rest.infrastructure import Root, RootQuery
from goqueue.wire.rest.operations import infrastructure as operations

BASE_URL = "http://127.0.0.1:8080/v1"
PAGE_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)

documents = Handlers()


@documents.handles(operations.ROOT, OPEN)
async def root(call: Call, query: RootQuery) -> Root | Elsewhere:
    if "text/html" in query.accept:
        return Elsewhere("docs" if call.console is Console.OFF else "console/")
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


@documents.handles(operations.OPENAPI, OPEN)
async def openapi(call: Call) -> dict[str, Any]:
    return _document(call.version)


@documents.handles(operations.POSTMAN, OPEN)
async def postman(call: Call) -> dict[str, Any]:
    return collection(_document(call.version), BASE_URL)


@documents.handles(operations.DOCS, OPEN)
async def docs(call: Call) -> Text:  # noqa: ARG001  every handler takes it
    return Text(PAGE, "text/html; charset=utf-8", PAGE_HEADERS)


@cache
def _document(version: str) -> dict[str, Any]:
    from goqueue.doors.http.routes.table import ROUTES  # which has these, too

    return document(ROUTES, version)

"""What this door can do, told to people and to programs."""

from typing import Any

from goqueue.doors.http.call import Call
from goqueue.doors.http.openapi import document
from goqueue.doors.http.operation import Operations

documents = Operations("Documents")


@documents.get("/openapi.json")
async def openapi(call: Call) -> dict[str, Any]:
    """This document."""
    return document(call.operations, call.version)

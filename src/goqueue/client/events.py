"""Server-sent events, as they come in lines."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple

from goqueue.client.errors import ClientError

DATA_CHARS_MAX = 64 * 1024 * 1024


class Event(NamedTuple):
    name: str
    data: str
    id: str
    """Where to go on after this one; empty: not said."""


async def events_of(lines: AsyncIterator[str]) -> AsyncGenerator[Event, None]:
    """An event that brings only an id is one too: it says where to go on."""
    name, data, id_ = "", "", ""
    async for line in lines:
        if not line:
            if data or id_:
                yield Event(name, data, id_)
            name, data, id_ = "", "", ""
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "id":
            id_ = value
        elif field == "data":
            data += value
            if len(data) > DATA_CHARS_MAX:
                raise ClientError("an event is too large")

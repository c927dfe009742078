"""A request and its answer, as uvicorn has them, but for how an answer is written: head and body together, since each
write is a call of the system and wakes the client.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from goqueue.wire.asgi import Message


class Cycle(RequestResponseCycle):
    _head = b""
    """Made and not written yet: the body comes behind it."""

    async def send(self, message: Message) -> None:  # type: ignore[override]  # ASGI's messages are dicts
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._begin(message)
        else:
            self._go_on(message.get("body", b""), is_last=not message.get("more_body", False))

    def _begin(self, message: Message) -> None:
        assert not self.response_started
        self.waiting_for_100_continue = False
        status: int = message["status"]
        lines = [STATUS_LINE[status]]
        length = None
        for name, value in (*self.default_headers, *message["headers"]):
            if name == b"content-length":
                length = int(value)
            elif name == b"connection" and value == b"close":
                self.keep_alive = False
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        self.expected_content_length = length or 0
        self.chunked_encoding = length is None and self.scope["method"] != "HEAD" and status not in (204, 304)
        if self.chunked_encoding:
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        if not head.count(b"\r") == head.count(b"\n") == len(lines):
            raise ValueError("a header of an answer must not end its line")
        self._head, self.response_started = head, True
        if self.chunked_encoding:  # what comes may come late, and its reader wants to know that it will
            self._write(b"")

    def _go_on(self, body: bytes, *, is_last: bool) -> None:
        assert self.response_started
        assert not self.response_complete
        if self.scope["method"] == "HEAD":
            self._write(b"")
        elif self.chunked_encoding:
            piece = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._write(piece + b"0\r\n\r\n" if is_last else piece)
        else:
            self.expected_content_length -= len(body)
            assert self.expected_content_length == 0 or not is_last, "an answer is as long as it says"
            self._write(body)
        if is_last:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()

    def _write(self, data: bytes) -> None:
        head, self._head = self._head, b""
        self.transport.write(head + data if head else data)


def make_cycle(connection: Any, *, keep_alive: bool) -> Cycle:
    """Of the request whose head a connection has just read."""
    return Cycle(
        scope=connection.scope,
        transport=connection.transport,
        flow=connection.flow,
        logger=connection.logger,
        access_logger=connection.access_logger,
        access_log=False,
        default_headers=connection.server_state.default_headers,
        message_event=asyncio.Event(),
        expect_100_continue=connection.expect_100_continue,
        keep_alive=keep_alive,
        on_response=connection.on_response_complete,
    )

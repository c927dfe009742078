"""uvicorn's HTTP/1.1 connection with the limits that it lacks: on the time and size of a request's head."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_S_MAX = 10
"""From the first byte of a connection, or of a request on it, to the end of the headers."""
HEAD_BYTES_MAX = 64 * 1024
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class HttpConnection(HttpToolsProtocol):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_deadline = self.loop.call_later(HEAD_S_MAX, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_over()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            if self._head_deadline is None:
                self._head_deadline = self.loop.call_later(HEAD_S_MAX, self.transport.abort)
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_deadline is not None and self._head_bytes > HEAD_BYTES_MAX:
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._head_over()
        super().on_headers_complete()

    def _head_over(self) -> None:
        self._head_bytes = 0
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

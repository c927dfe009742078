"""From a request to a handler's arguments, and from what it returns to a response."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from goqueue.doors.http.asgi import (
    ClientGone,
    Receive,
    Scope,
    Send,
    answer,
    answer_error,
    answer_json,
    invalid,
    read_body,
)
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import BAD_REQUEST, SERVER_FAULT, TIMED_OUT, HttpError, status_and_code
from goqueue.doors.http.operation import Events, Operation, Text, WithStatus
from goqueue.model.errors import GoQueueError
from goqueue.telemetry.logs import get_logger
from goqueue.wire.rest.common import ErrorReply

REQUEST_S_MAX = 30
METHOD_NOT_ALLOWED = 405

events = get_logger("http door")


class Endpoint:
    """One operation."""

    def __init__(self, operation: Operation, call: Call) -> None:
        self._operation = operation
        self._call = call
        self._decode = None if operation.body_type is None else msgspec.json.Decoder(operation.body_type).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._operation.waits:
                arguments = await self._arguments(scope, receive)
                await self._while_there(receive, self._answer(send, arguments))
            else:
                async with asyncio.timeout(REQUEST_S_MAX):
                    await self._answer(send, await self._arguments(scope, receive))
        except GoQueueError as error:
            status, code = status_and_code(error)
            if self._operation.error_type is ErrorReply:
                await answer_error(send, status, code, str(error))
            else:
                await answer_json(send, status, self._operation.error_type.of(error, status, code))
        except ClientGone:
            pass
        except TimeoutError:
            message = f"not done within {REQUEST_S_MAX} s; it may be done later all the same"
            await answer_error(send, TIMED_OUT, "REQUEST_TIMED_OUT", message)
        except Exception as error:  # noqa: BLE001  a bug of ours must not leave its client waiting
            events.error("request failed", method=scope["method"], path=scope["path"], exc_info=error)
            await answer_error(send, SERVER_FAULT, "UNKNOWN_SERVER_ERROR", "a fault of the broker; its log says more")

    async def _arguments(self, scope: Scope, receive: Receive) -> dict[str, Any]:
        operation = self._operation
        arguments: dict[str, Any] = {"call": self._call}
        body = await read_body(scope, receive, operation.body_bytes_max)
        try:
            if operation.path_type is not None:
                arguments["path"] = msgspec.convert(scope["path_params"], operation.path_type, strict=False)
            if operation.query_type is not None:
                query = dict(parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True))
                arguments["query"] = msgspec.convert(query, operation.query_type, strict=False)
            if self._decode is not None:
                arguments["body"] = self._decode(body or b"{}")
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise invalid(error) from None
        except ValueError as error:  # a query of too many fields
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", str(error)) from None
        return arguments

    async def _answer(self, send: Send, arguments: Mapping[str, Any]) -> None:
        reply = await self._operation.handle(**arguments)
        if isinstance(reply, Events):
            await _stream(send, reply)
        elif isinstance(reply, Text):
            content = reply.content if isinstance(reply.content, bytes) else reply.content.encode()
            await answer(send, self._operation.status, content, reply.media_type.encode())
        elif isinstance(reply, WithStatus):
            await answer_json(send, reply.status, reply.body)
        else:
            await answer_json(send, self._operation.status, reply)

    async def _while_there(self, receive: Receive, work: Coroutine[Any, Any, None]) -> None:
        """A client that leaves takes its request along."""
        task = asyncio.current_task()
        assert task is not None
        is_gone = False
        failure: Exception | None = None

        async def watch() -> None:
            nonlocal is_gone
            while (await receive())["type"] != "http.disconnect":
                pass
            is_gone = True
            task.cancel()

        try:
            async with asyncio.TaskGroup() as tasks:
                watcher = tasks.create_task(watch())
                try:
                    await work
                except Exception as error:  # noqa: BLE001  raised below: the group would wrap it
                    failure = error
                finally:
                    watcher.cancel()
        except asyncio.CancelledError:
            if not is_gone or task.uncancel() > 0:
                raise
        if failure is not None:
            raise failure


async def _stream(send: Send, reply: Events) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for piece in reply.stream:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


class Methods:
    """All operations of one path."""

    def __init__(self, operations: list[Operation], call: Call) -> None:
        self._endpoints = {operation.method: Endpoint(operation, call) for operation in operations}
        if "GET" in self._endpoints:
            self._endpoints["HEAD"] = self._endpoints["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        allowed = ", ".join(sorted(self._endpoints))
        message = f"{scope['path']} takes {allowed}, not {scope['method']}"
        headers = ((b"allow", allowed.encode()),)
        await answer_error(send, METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message, headers)

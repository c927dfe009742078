"""From a request to a handler's arguments, and from what it returns to a response."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from goqueue.broker.access import Access
from goqueue.broker.accounts.loop_time import measured
from goqueue.broker.accounts.quotas import Allowance
from goqueue.broker.gate import Gate
from goqueue.doors.http.asgi import (
    PARKED,
    ClientGone,
    Header,
    answer,
    answer_error,
    answer_json,
    answer_raw,
    header,
    read_body,
)
from goqueue.doors.http.audited import changed, host_of, named
from goqueue.doors.http.begun import begin, go_on
from goqueue.doors.http.browsers import LINKED, check_content_type
from goqueue.doors.http.call import Call
from goqueue.doors.http.charging import (
    STREAMS,
    allowance_of,
    charged,
    count_published,
    counting,
    limits_of,
    retry_headers,
)
from goqueue.doors.http.cookies import SHOWN, check_taking, in_session, no_cookie, session_cookie
from goqueue.doors.http.credentials import CHALLENGES, REGISTRY_CHALLENGES, admitted
from goqueue.doors.http.deadlines import within
from goqueue.doors.http.errors import (
    BAD_REQUEST,
    FORBIDDEN,
    SERVER_FAULT,
    TIMED_OUT,
    UNAVAILABLE,
    HttpError,
    status_and_code,
)
from goqueue.doors.http.forward import BODY, Raw, Spreading
from goqueue.doors.http.operation import Elsewhere, Events, Route, Text, WithHeaders, WithStatus
from goqueue.doors.http.visit import Visit
from goqueue.model.access import OPEN
from goqueue.model.accounts import ANONYMOUS
from goqueue.model.credentials import NotAuthenticated, SessionOver
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import CONSUMED, PRODUCED, QuotaExceeded
from goqueue.telemetry.logs import get_logger
from goqueue.wire.asgi import ASKED_AS, ENDS_WITH_CLIENT, SEAT, TURN, Receive, Scope, Send
from goqueue.wire.forwarded import NOT_MINE, PRINCIPAL, VIA
from goqueue.wire.rest.common import ErrorReply

REQUEST_S_MAX = 30
SEE_OTHER, METHOD_NOT_ALLOWED = 303, 405
QUERY_FIELDS_MAX = 100

events = get_logger("http door")


@cache
def _names_of(query_type: type[msgspec.Struct]) -> tuple[str, ...]:
    """Looked up once: it takes longer than all else that an endpoint is made of."""
    return tuple(each.encode_name for each in msgspec.structs.fields(query_type))


class Endpoint:
    """One operation."""

    def __init__(self, route: Route, call: Call, gate: Gate) -> None:
        self._operation, self._handler, self._permission, self._rests_on, self._is_open, self._takes_visit = (
            operation,
            *_,
        ) = route
        self._gate = gate
        self._call = call
        self._charged = charged(operation)
        self._parameters = _names_of(operation.query_type) if operation.query_type else ()
        self._spread = None if gate.forwarding is None else Spreading(operation, gate.forwarding)
        self._decode = None if operation.body_type is None else msgspec.json.Decoder(operation.body_type).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn = None if self._permission is OPEN else self._gate.turns.request()
        try:
            if turn is None:
                await self._serve(scope, receive, send)
            else:
                scope[TURN] = turn
                await turn.timed(self._serve(scope, receive, send))
        finally:
            leave = scope.pop(SEAT, None)
            if leave is not None:
                leave()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply: Any
        try:
            access, call, allowance = await self._admit(scope)
            if allowance is not None:
                allowance.admit(self._charged)
            if self._charged is CONSUMED and (allowance is not None or self._operation.name in STREAMS):
                send = counting(self._gate, partial(allowance_of, access, scope), send)
            send = self._private(send, scope)
            visit = {"visit": Visit(self._gate, access, scope)} if self._takes_visit else {}
            arguments = {"call": call, **visit, **await self._arguments(scope, receive, allowance)}
            work = partial(self._handle, call) if self._spread is None else partial(self._spread_out, scope)
            handling = self._measured(allowance, self._audited(scope, access, arguments, partial(work, arguments)))
            if self._operation.waits:
                reply = await self._while_there(scope, receive, access, _wait(send, handling))
            else:
                reply = await within(REQUEST_S_MAX, scope, handling)
        except ClientGone:
            return
        except NotAuthenticated as error:
            await self._refuse(send, error, self._challenges(scope, error))
        except QuotaExceeded as error:
            await self._refuse(send, error, retry_headers(error))
        except GoQueueError as error:
            await self._refuse(send, error)
        except TimeoutError:
            message = f"not done within {REQUEST_S_MAX} s; it may be done later all the same"
            await answer_error(send, TIMED_OUT, "REQUEST_TIMED_OUT", message)
        except asyncio.CancelledError:  # by the door; this task ends here
            await answer_error(send, UNAVAILABLE, "NODE_STOPS", "the node stops; try again later")
        except Exception as error:  # noqa: BLE001  a bug of ours must not leave its client waiting
            await answer_fault(scope, send, error)
        else:
            await self._answer(send, reply)

    def _challenges(self, scope: Scope, error: NotAuthenticated) -> tuple[Header, ...]:
        challenges = CHALLENGES if self._is_plain else REGISTRY_CHALLENGES
        return (*challenges, no_cookie(scope)) if isinstance(error, SessionOver) else challenges

    def _private(self, send: Send, scope: Scope) -> Send:
        session, logins = scope.get(SHOWN), self._gate.logins
        if session is None or logins is None:
            return send
        renewed, now_ms = logins.sessions.renewed(session), self._gate.clock.now_ms()
        cookie = None if renewed is None else session_cookie(logins.sessions, renewed, now_ms, scope)
        return in_session(send, cookie)

    def _measured(self, allowance: Allowance | None, work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        is_measured = allowance is not None and allowance.measures_time
        return measured(work, allowance, self._gate.now_s) if is_measured else work

    def _audited(
        self, scope: Scope, access: Access, arguments: Mapping[str, Any], work: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Coroutine[Any, Any, Any]:
        """What another node passes on is in its trail."""
        if self._permission is OPEN or scope.get(VIA):
            return work()
        is_look = self._operation.method == "GET"
        audit = None if is_look else self._gate.audited(self._permission, is_person=SHOWN in scope)
        if audit is None:
            self._gate.note(access, self._permission, "http", self._operation.name)
            return work()
        body, resource = arguments.get("body"), " ".join((scope["path"], *named(arguments.values())))
        fields = () if body is None else changed(body)
        asked = access.asked(host_of(scope), "http", self._operation.name, resource, fields)
        return audit.carry_out(asked, work, scope.get(ASKED_AS, ""))

    async def _admit(self, scope: Scope) -> tuple[Access, Call, Allowance | None]:
        """With the broker as this operation of this client may use it, and how much of that."""
        allowance = limits = None
        if self._permission is OPEN:
            scope.setdefault(PRINCIPAL, ANONYMOUS)
            access = self._gate.nobody()
        else:
            access = await admitted(self._gate, scope, "http", is_open=self._is_open)
            if self._gate.quotas.are_set and not self._is_open:
                allowance, limits = allowance_of(access, scope), limits_of(access, scope)
            if not scope.get(VIA):
                scope[SEAT] = self._gate.enter(access.tenancy.tenant)
            if TURN in scope and not await scope[TURN].begin(access.tenancy.tenant):
                raise ClientGone
        view = access.view(self._permission)
        if view is not self._call.broker:
            self._call = replace(self._call, broker=view, principal=access.told, host=access.host)
        if limits is not None and limits.limits_mutations:
            return access, replace(self._call, broker=view.charged(limits)), allowance
        return access, self._call, allowance

    @property
    def _is_plain(self) -> bool:
        """Not of the schema registry."""
        return self._operation.error_type is ErrorReply

    async def _refuse(self, send: Send, error: GoQueueError, headers: tuple[Header, ...] = ()) -> None:
        status, code = status_and_code(error)
        if self._is_plain:
            await answer_error(send, status, code, str(error), headers)
        else:
            body = msgspec.json.encode(self._operation.error_type.of(error, status, code))
            await answer(send, status, body, headers=headers)

    async def _handle(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        kinds = self._rests_on
        if not kinds:
            return await self._handler(**arguments)
        try:
            reply = await self._handler(**arguments)
        except GoQueueError:  # that something is not there is an answer too
            await call.confirmed(call.broker.durable, kinds)
            raise
        await call.confirmed(call.broker.durable, kinds)
        return reply

    async def _arguments(self, scope: Scope, receive: Receive, allowance: Allowance | None) -> dict[str, Any]:
        operation = self._operation
        arguments: dict[str, Any] = {}
        if operation.waits:
            self._check_meant(scope)
        body = await read_body(scope, receive, operation.body_bytes_max)
        if allowance is not None and self._charged is PRODUCED:
            count_published(allowance, body)
        if self._spread is not None:
            scope[BODY] = body
        if self._decode is not None:
            check_content_type(scope, body)
        try:
            if operation.path_type is not None:
                arguments["path"] = msgspec.convert(scope["path_params"], operation.path_type, strict=False)
            query = self._query(scope["query_string"])
            if operation.query_type is not None:
                for name, field in operation.header_fields:
                    value = header(scope, name.encode())
                    if value:
                        query.setdefault(field, value.decode("latin-1"))
                arguments["query"] = msgspec.convert(query, operation.query_type, strict=False)
            if self._decode is not None:
                arguments["body"] = self._decode(body or b"{}")
        except RecursionError:
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", "JSON is malformed: too deep") from None
        except ValueError as error:  # what msgspec raises, and too many fields, digits or bytes that are no text
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", str(error)) from None
        return arguments

    def _check_meant(self, scope: Scope) -> None:
        if LINKED in scope:
            raise HttpError(FORBIDDEN, "FOREIGN_ORIGIN", "a link on another site may not take messages")
        if self._operation.method == "GET" and self._operation.name not in STREAMS and self._gate.logins is not None:
            check_taking(self._gate.logins.sessions, scope)

    def _query(self, given: bytes) -> dict[str, str]:
        """What is not known, or said twice, is refused: an answer to another question helps nobody."""
        if not given:
            return {}
        fields = parse_qsl(given.decode("ascii"), keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
        query = dict(fields)
        if self._operation.takes_any_query:
            return query
        for name in query:
            if name not in self._parameters:
                raise HttpError(BAD_REQUEST, "UNKNOWN_PARAMETER", _unknown(name, self._parameters))
        if len(query) < len(fields):
            name = next(name for name, value in fields if query[name] != value or fields.count((name, value)) > 1)
            raise HttpError(BAD_REQUEST, "INVALID_REQUEST", f"the query parameter {name!r} may be given once")
        return query

    async def _answer(self, send: Send, reply: Any) -> None:
        if isinstance(reply, Text):
            content = reply.content if isinstance(reply.content, bytes) else reply.content.encode()
            await answer(send, self._operation.status, content, reply.media_type.encode(), reply.headers)
        elif isinstance(reply, Raw):
            await answer_raw(send, reply.reply)
        elif isinstance(reply, Elsewhere):
            await answer(send, SEE_OTHER, b"", headers=((b"location", reply.path.encode()), *reply.headers))
        elif isinstance(reply, WithStatus):
            await answer_json(send, reply.status, reply.body)
        elif isinstance(reply, WithHeaders):
            body = msgspec.json.encode(reply.body)
            await answer(send, self._operation.status, body, headers=reply.headers)
        else:
            await answer_json(send, self._operation.status, reply)

    async def _spread_out(self, scope: Scope, arguments: dict[str, Any]) -> Any:
        """In a cluster."""
        assert self._spread is not None
        call: Call = arguments["call"]

        async def handle(other: Mapping[str, Any]) -> Any:
            return await self._handle(call, {**arguments, **other} if other else arguments)

        reply = await self._spread.reply(scope, call, arguments, handle)
        if NOT_MINE in scope:
            raise ClientGone
        return reply

    async def _while_there(self, scope: Scope, receive: Receive, access: Access, work: Coroutine[Any, Any, Any]) -> Any:
        """A client that leaves takes its request along, and so does a node that stops. It ends with the session, the
        key or the token that it was begun with."""
        begun = begin(work)
        if begun.is_done:
            return begun.result
        task = asyncio.current_task()
        assert task is not None
        is_gone = is_over = False
        scope[ENDS_WITH_CLIENT] = True
        parked: dict[asyncio.Task[Any], None] = scope.get("state", {}).get(PARKED, {})
        parked[task] = None

        async def watch() -> None:
            nonlocal is_gone
            while (await receive())["type"] != "http.disconnect":
                pass
            is_gone = True
            task.cancel()

        def end() -> None:
            nonlocal is_over
            is_over = True
            task.cancel()

        access.on_end[end] = None
        # No task group: in an error of `work` it would leave a cycle, and every long poll that finds nothing ends so.
        watcher = asyncio.get_running_loop().create_task(watch())
        try:
            return await go_on(work, begun)
        except asyncio.CancelledError:
            if not (is_gone or is_over) or task.uncancel() > 0:
                raise
            raise (ClientGone if is_gone else NotAuthenticated("what was shown has ended")) from None
        finally:
            access.on_end.pop(end, None)
            parked.pop(task, None)
            watcher.cancel()
            await asyncio.wait((watcher,))


def _unknown(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    guesses = get_close_matches(name[:100], known, n=1)
    if guesses:
        hint = f"did you mean {guesses[0]!r}?"
    else:
        hint = f"there are {', '.join(known)}" if known else "none is taken here"
    return f"there is no query parameter {name[:100]!r}; {hint}"


async def _wait(send: Send, handling: Coroutine[Any, Any, Any]) -> Any:
    reply = await handling
    if isinstance(reply, Events):
        await _stream(send, reply)
        raise ClientGone
    return reply


async def _stream(send: Send, reply: Events) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        async with aclosing(reply.stream) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    except asyncio.CancelledError:  # by the door, or because the client is gone; this task ends soon
        pass
    except Exception as error:  # noqa: BLE001  its beginning has been sent: there is no status left to give
        events.error("stream failed", exc_info=error)
    await send({"type": "http.response.body", "body": b""})


class Methods:
    """All operations of one path."""

    def __init__(self, routes: list[Route], call: Call, gate: Gate) -> None:
        self._endpoints = {route.operation.method: Endpoint(route, call, gate) for route in routes}
        # What waits may also take.
        if any(each.operation.method == "GET" and not each.operation.waits for each in routes):
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


async def answer_fault(scope: Scope, send: Send, error: Exception) -> None:
    events.error("request failed", method=scope["method"], path=scope["path"], exc_info=error)
    await answer_error(send, SERVER_FAULT, "UNKNOWN_SERVER_ERROR", "a fault of the broker; its log says more")

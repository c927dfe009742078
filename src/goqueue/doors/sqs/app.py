"""The door itself: an ASGI application for requests with the header `X-Amz-Target`, whatever their path.

It has no listener of its own: the HTTP door gives it what is for it. Signatures are checked here, where the body is.
"""

import hmac
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from goqueue.broker.access import Access
from goqueue.broker.accounts.loop_time import measured
from goqueue.broker.accounts.quotas import MESSAGES, Allowance
from goqueue.broker.gate import Gate
from goqueue.doors.sqs.call import Call, Desk, Naming, naming_of, told
from goqueue.doors.sqs.forward import Passed, spread
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.doors.sqs.queue import KnownQueues
from goqueue.model.access import Permission
from goqueue.model.credentials import Credentials, NotAuthenticated, WrongSignature
from goqueue.model.errors import GoQueueError
from goqueue.model.quotas import CONSUMED, PRODUCED, QuotaKey
from goqueue.model.secret import Secret
from goqueue.ports.dice import random_uuid
from goqueue.telemetry.logs import get_logger
from goqueue.wire.asgi import ACCESS, ASKED_AS, ENDS_WITH_CLIENT, SEAT, TURN, Receive, Scope, Send
from goqueue.wire.forwarded import PRINCIPAL, VIA
from goqueue.wire.message_counts import messages_in
from goqueue.wire.sqs.errors import SqsError
from goqueue.wire.sqs.sigv4 import Signed, read_signature

ACCOUNT_ID = "000000000000"
REGION = "goqueue"
SERVICE = "AmazonSQS."
TARGET = b"x-amz-target"
BODY_BYTES_MAX = 8 * 1024 * 1024
"""A mebibyte of message may be six of JSON."""
REQUEST_ID = b"x-amzn-requestid"
CLIENT_ID = b"x-client-id"
"""What a client calls itself, for its quotas."""
CHARGED: dict[str, QuotaKey] = {"SendMessage": PRODUCED, "SendMessageBatch": PRODUCED, "ReceiveMessage": CONSUMED}
"""Actions whose bodies, or whose answers, have messages."""
CONTENT_TYPE = b"application/x-amz-json-1.0"
NAMES = ("queue_name", "queue_url", "source_arn", "destination_arn", "task_handle")
"""Fields of requests that say what a change is about."""

events = get_logger("sqs")

_encode = msgspec.json.Encoder().encode


class ClientGone(GoQueueError):
    """Before its request was complete."""


class SqsApp:
    def __init__(self, gate: Gate, *, account_id: str = ACCOUNT_ID, region: str = REGION) -> None:
        self._gate = gate
        self._desk = Desk(Naming(account_id, region), KnownQueues(), {})
        self._has_stopped = False

    def stop(self) -> None:
        """Whoever waits for messages is told that there are none."""
        self._has_stopped = True
        for future in list(self._desk.waiting):
            if not future.done():
                future.set_result([])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only http is spoken here, not {scope['type']}")
        try:
            turn = self._gate.turns.request()
            if turn is None:
                status, headers, body = await self._answer(scope, receive)
            else:
                scope[TURN] = turn
                status, headers, body = await turn.timed(self._answer(scope, receive))
        except ClientGone:
            return
        finally:
            leave = scope.pop(SEAT, None)
            if leave is not None:
                leave()
        request_id = random_uuid(self._gate.dice).encode()
        headers += [(b"content-length", b"%d" % len(body)), (REQUEST_ID, request_id)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        try:
            answer, allowance = await self._handle(scope, receive)
            body = _encode(answer)
            if allowance is not None:
                _count_read(allowance, body)
            return 200, [(b"content-type", CONTENT_TYPE)], body
        except ClientGone:
            raise
        except Passed as passed:
            headers = [each for each in passed.reply.headers if each[0] not in (b"content-length", REQUEST_ID)]
            return passed.reply.status, headers, passed.reply.body
        except GoQueueError as error:
            return _refusal(told(error))  # not kept here: it holds this frame
        except Exception as bug:  # noqa: BLE001  a client gets an answer, the log gets the rest
            events.error("request failed", exc_info=bug)
            return _refusal(
                SqsError("InternalFailure", "The request processing has failed because of an unknown error.")
            )

    async def _handle(self, scope: Scope, receive: Receive) -> tuple[dict[str, Any], Allowance | None]:
        """With what its answer counts for."""
        headers = dict(scope["headers"])
        target = headers.get(TARGET, b"").decode("latin-1")
        action = ACTIONS.get(target.removeprefix(SERVICE)) if target.startswith(SERVICE) else None
        body = await _body(receive)
        if action is None or scope["method"] != "POST":
            raise SqsError("UnknownOperationException", f"The action {target[:100]!r} is not valid for this endpoint.")
        access = await self._access(scope, body)
        if not scope.get(VIA):
            scope[SEAT] = self._gate.enter(access.tenancy.tenant)
        if TURN in scope and not await scope[TURN].begin(access.tenancy.tenant):
            raise ClientGone
        view = access.view(action.permission)
        try:
            request = action.decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError) as mistake:
            raise SqsError("SerializationException", str(mistake)) from None
        host = headers.get(b"host", b"localhost").decode("latin-1")
        charged = self._charge(access, target.removeprefix(SERVICE), scope, body, request)
        allowance = charged if CHARGED.get(target.removeprefix(SERVICE)) is CONSUMED else None
        desk = self._desk._replace(naming=naming_of(access.tenancy.tenant, self._desk.naming))
        call = Call(view.charged(charged), desk, f"{scope['scheme']}://{host}", lambda: self._gone(scope, receive))
        handle: Callable[[], Awaitable[dict[str, Any]]] = partial(action.handle, call, request)
        if self._gate.forwarding is not None:
            handle = partial(spread, self._gate.forwarding, scope, body, action, call, request, handle)
        try:
            work = self._audited(access, action.permission, target.removeprefix(SERVICE), scope, request, handle)
            return await (work if charged is None else measured(work, charged, self._gate.now_s)), allowance
        except Passed as passed:
            if allowance is not None:
                _count_read(allowance, passed.reply.body)
            raise

    async def _audited(
        self,
        access: Access,
        permission: Permission,
        action: str,
        scope: Scope,
        request: Any,
        handle: Callable[[], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        if scope.get(VIA):
            return await handle()
        audit = self._gate.audited(permission)
        if audit is None:
            self._gate.note(access, permission, "sqs", action)
            return await handle()
        named = " ".join(filter(None, (getattr(request, each, None) for each in NAMES)))
        host = (scope.get("client") or ("",))[0]
        return await audit.carry_out(access.asked(host, "sqs", action, named), handle, scope.get(ASKED_AS, ""))

    def _charge(self, access: Access, action: str, scope: Scope, body: bytes, request: Any) -> Allowance | None:
        """By what it is limited. QuotaExceeded: not now."""
        if not self._gate.quotas.are_set or scope.get(VIA):
            return None
        allowance = access.allowance(dict(scope["headers"]).get(CLIENT_ID, b"").decode("latin-1"))
        key = CHARGED.get(action)
        if allowance is not None:
            allowance.admit(key)
            if key is PRODUCED:
                allowance.use(PRODUCED, len(body))
                if allowance.counts(PRODUCED):
                    allowance.use(MESSAGES[PRODUCED], len(getattr(request, "entries", None) or ()) or 1)
        return allowance

    async def _access(self, scope: Scope, body: bytes) -> Access:
        """The listener has looked at the credentials, but for signatures."""
        found = scope.get(ACCESS)
        if isinstance(found, Credentials):
            return await self._signed(found, scope, body)
        if found is None:
            return self._gate.admit(Credentials("sqs"))
        if isinstance(found, NotAuthenticated):
            is_missing = b"authorization" not in dict(scope["headers"])
            raise SqsError("MissingAuthenticationToken" if is_missing else "InvalidClientTokenId", str(found))
        if isinstance(found, GoQueueError):
            raise told(found)  # not itself: the scope holds it, and it would hold the scope
        assert isinstance(found, Access)
        return found

    async def _signed(self, credentials: Credentials, scope: Scope, body: bytes) -> Access:
        try:
            signature = read_signature(credentials.signature)
        except SqsError:
            if self._gate.needs_credentials(credentials.connected):
                raise
            return self._gate.admit(credentials)  # an open node asks for none
        path = scope.get("raw_path") or quote(scope["path"]).encode()
        request = Signed(scope["method"], path.partition(b"?")[0], scope["query_string"], scope["headers"], body)

        def is_signed(secret: Secret[str]) -> bool:
            request.check_date(signature, self._gate.clock.now_ms())
            made = request.signature_with(secret, signature).encode()
            return hmac.compare_digest(made, signature.signature.encode())  # as bytes: it may be no ASCII

        try:
            access = await self._gate.admit_signed(credentials, signature.key_id, is_signed)
        except WrongSignature as error:
            raise SqsError("SignatureDoesNotMatch", str(error)) from None
        except NotAuthenticated as error:
            raise SqsError("InvalidClientTokenId", str(error)) from None
        scope[PRINCIPAL] = access.told
        return access

    async def _gone(self, scope: Scope, receive: Receive) -> None:
        scope[ENDS_WITH_CLIENT] = True
        while not self._has_stopped and (await receive())["type"] != "http.disconnect":
            pass


def _count_read(allowance: Allowance, body: bytes) -> None:
    allowance.use(CONSUMED, len(body))
    if allowance.counts(CONSUMED):
        allowance.use(MESSAGES[CONSUMED], messages_in(body, alone=0))


def _refusal(failed: SqsError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    whose = "Sender" if failed.is_of_sender else "Receiver"
    kind = failed.kind
    headers = [
        (b"content-type", CONTENT_TYPE),
        (b"x-amzn-query-error", f"{kind.code};{whose}".encode()),
    ]
    return kind.status, headers, _encode({"__type": f"{kind.shape}#{failed.name}", "message": str(failed)})


async def _body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise SqsError("RequestEntityTooLargeException", f"A request has at most {BODY_BYTES_MAX} bytes.")
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)

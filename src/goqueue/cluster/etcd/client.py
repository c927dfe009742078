"""The real etcd behind the port. It asks and listens in threads of gRPC's own, so that a listing of ten thousand keys
is not decoded in the broker's loop; answers are handed to that loop, where all that is kept here is changed.

Nothing is repeated but what was refused for an old token: whoever asked knows whether that does harm.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import grpc

from goqueue.cluster.etcd.endpoints import DEADLINE_S, Endpoints, EtcdOptions, code_of, is_stale_token, unary
from goqueue.cluster.etcd.messages import (
    AUTHENTICATE,
    EQUAL,
    GRANT,
    MOD,
    NOT_EQUAL,
    RANGE,
    RENEW,
    REVOKE,
    TXN,
    Compare,
    Method,
    RequestOp,
    range_end,
)
from goqueue.cluster.etcd.port import (
    EtcdFault,
    KeyCompare,
    KeyPut,
    KeyValue,
    OnFault,
    OnKeys,
    OnLease,
    OnRange,
    OnTxn,
    Range,
    Txn,
)
from goqueue.cluster.etcd.watching import Watching

UNDER_WAY_MAX = 16
WAITING_MAX = 4096


class EtcdClient:
    """`goqueue.cluster.etcd.port.Etcd`, for the loop that it was made in."""

    def __init__(self, options: EtcdOptions) -> None:
        self._loop = asyncio.get_running_loop()
        self._endpoints = Endpoints(options)
        self._waiting: deque[_Request] = deque()
        self._under_way: dict[_Request, None] = {}
        self._watches: dict[Watching, None] = {}
        self._is_authenticating = False
        self._is_closed = False

    # -- the port

    def txn(self, compares: Sequence[KeyCompare], puts: Sequence[KeyPut], on_done: OnTxn) -> None:
        request = TXN.request(compare=[_compare(each) for each in compares], success=[_operation(put) for put in puts])
        self._ask(TXN, request, lambda answer: Txn(answer.succeeded, answer.header.revision), on_done)

    def list(self, prefix: bytes, on_done: OnRange) -> None:
        self._ask(RANGE, RANGE.request(key=prefix, range_end=range_end(prefix)), _listed, on_done)

    def watch(self, prefix: bytes, revision: int, on_keys: OnKeys, on_lost: OnFault) -> Callable[[], None]:
        def lost(fault: EtcdFault) -> None:
            self._watches.pop(watching, None)
            on_lost(fault)

        def end() -> None:
            self._watches.pop(watching, None)
            watching.end()

        watching = Watching(self._loop, self._endpoints, on_keys, lost)
        if self._endpoints.needs_token:
            self._authenticate()
            self._loop.call_soon(watching.lose, EtcdFault("etcd has to know first who asks"))
        elif not self._is_closed:
            self._watches[watching] = None
            watching.start(prefix, revision)
        return end

    def grant(self, ttl_s: int, on_done: OnLease) -> None:
        self._ask(GRANT, GRANT.request(TTL=ttl_s), lambda answer: answer.ID, on_done)

    def revoke(self, lease: int, on_done: Callable[[EtcdFault | None], None]) -> None:
        self._ask(REVOKE, REVOKE.request(ID=lease), lambda answer: None, on_done, when_not_found=lambda: None)

    def renew(self, lease: int, on_done: OnLease) -> None:
        self._ask(RENEW, RENEW.request(ID=lease), lambda answer: answer.TTL, on_done)

    def close(self) -> None:
        """Nobody is called after this."""
        self._is_closed = True
        self._waiting.clear()
        for watching in list(self._watches):
            watching.end()
        self._watches.clear()
        for request in list(self._under_way):
            request.cancel()
        self._under_way.clear()
        self._endpoints.close()

    # -- the way of a request

    def _ask(
        self,
        method: Method,
        request: Any,
        read: Callable[[Any], Any],
        on_done: Callable[[Any], None],
        when_not_found: Callable[[], Any] | None = None,
    ) -> None:
        if self._is_closed:
            return
        asked = _Request(method, request, read, on_done, when_not_found, self._loop.time() + DEADLINE_S)
        if len(self._waiting) >= WAITING_MAX:
            self._loop.call_soon(self._tell, asked, EtcdFault("too many requests wait for etcd; it was not asked"))
            return
        self._waiting.append(asked)
        self._send()

    def _send(self) -> None:
        if self._waiting and self._endpoints.needs_token:
            self._authenticate()
            return
        while self._waiting and len(self._under_way) < UNDER_WAY_MAX and not self._is_closed:
            request = self._waiting.popleft()
            if self._loop.time() >= request.send_by_s:
                self._loop.call_soon(self._tell, request, EtcdFault("etcd is too busy; it was not asked"))
                continue
            self._under_way[request] = None
            self._start(request)

    def _start(self, request: "_Request") -> None:
        endpoint = request.endpoint = self._endpoints.current()
        call = unary(self._endpoints.channel(endpoint), request.method)
        future = request.future = call.future(request.request, timeout=DEADLINE_S, metadata=self._endpoints.metadata())
        future.add_done_callback(lambda done: self._answered(request, done))

    def _answered(self, request: "_Request", done: Any) -> None:
        """In a thread of gRPC."""
        try:
            answer = request.read(done.result())
        except grpc.RpcError as error:
            answer = error
        except grpc.FutureCancelledError:
            return  # it was closed
        try:
            self._loop.call_soon_threadsafe(self._finish, request, answer)
        except RuntimeError:
            return  # the loop has ended before this was closed

    def _finish(self, request: "_Request", answer: Any) -> None:
        if self._is_closed:
            return
        del self._under_way[request]
        if isinstance(answer, grpc.RpcError):
            fault = self._endpoints.fault(request.endpoint, answer)
            if code_of(answer) is grpc.StatusCode.NOT_FOUND and request.when_not_found is not None:
                answer = request.when_not_found()
            elif is_stale_token(answer) and not request.is_second:
                request.is_second = True
                self._waiting.appendleft(request)
                self._send()
                return
            else:
                answer = fault
        self._tell(request, answer)
        self._send()

    def _tell(self, request: "_Request", answer: Any) -> None:
        if not self._is_closed:
            request.on_done(answer)

    def _authenticate(self) -> None:
        if self._is_authenticating or self._is_closed:
            return
        self._is_authenticating = True
        credentials = self._endpoints.credentials()
        request = _Request(AUTHENTICATE, credentials, lambda answer: answer.token, self._authenticated, None, 0.0)
        self._under_way[request] = None
        self._start(request)

    def _authenticated(self, token: str | EtcdFault) -> None:
        self._is_authenticating = False
        if isinstance(token, str):
            self._endpoints.set_token(token)
            self._send()
            return
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            self._tell(request, token)


class _Request:
    def __init__(
        self,
        method: Method,
        request: Any,
        read: Callable[[Any], Any],
        on_done: Callable[[Any], None],
        when_not_found: Callable[[], Any] | None,
        send_by_s: float,
    ) -> None:
        self.method = method
        self.request = request
        self.read = read
        self.on_done = on_done
        self.when_not_found = when_not_found
        self.send_by_s = send_by_s
        self.endpoint = ""
        self.is_second = False
        self.future: Any = None

    def cancel(self) -> None:
        if self.future is not None:
            self.future.cancel()


def _compare(compare: KeyCompare) -> Any:
    result = EQUAL if compare.is_equal else NOT_EQUAL
    return Compare(result=result, target=MOD, key=compare.key, mod_revision=compare.revision)


def _operation(put: KeyPut) -> Any:
    if put.value is None:
        return RequestOp(request_delete_range={"key": put.key})
    return RequestOp(request_put={"key": put.key, "value": put.value, "lease": put.lease})


def _listed(answer: Any) -> Range:
    entries = [KeyValue(kv.key, kv.value, kv.mod_revision, kv.create_revision, kv.lease) for kv in answer.kvs]
    return Range(answer.header.revision, entries)

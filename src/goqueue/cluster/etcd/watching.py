"""A watch on the real etcd: one stream, read in a thread. A stream that says nothing for 5 s is asked whether it is
still one: a connection that is cut says nothing either.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any

import grpc

from goqueue.cluster.etcd.endpoints import Endpoints
from goqueue.cluster.etcd.messages import DELETE, WATCH, WatchCreate, WatchProgress, range_end
from goqueue.cluster.etcd.port import EtcdCompacted, EtcdFault, KeyValue, OnFault, OnKeys

SILENT_S_MAX = 5.0
ANSWER_S_MAX = 2.0


class Watching:
    """Invariant: `on_lost` is called once at most, and nobody is called after it or after `end`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, endpoints: Endpoints, on_keys: OnKeys, on_lost: OnFault
    ) -> None:
        self._loop = loop
        self._endpoints = endpoints
        self._on_keys = on_keys
        self._on_lost = on_lost
        self._endpoint = endpoints.current()
        self._requests: SimpleQueue[Any] = SimpleQueue()
        self._call: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._responses: deque[tuple[Any, list[KeyValue]]] = deque()
        """Read, and not handed on yet."""
        self._is_over = False

    def start(self, prefix: bytes, revision: int) -> None:
        create = WatchCreate(key=prefix, range_end=range_end(prefix), start_revision=revision)
        self._requests.put(WATCH.request(create_request=create))
        serialize, parse = WATCH.request.SerializeToString, WATCH.response.FromString
        channel = self._endpoints.channel(self._endpoint)
        stream = channel.stream_stream(WATCH.path, request_serializer=serialize, response_deserializer=parse)
        self._call = stream(_until_none(self._requests), metadata=self._endpoints.metadata())
        # It has not said anything yet, so it must say first that it is there.
        self._timer = self._loop.call_later(ANSWER_S_MAX, self.lose, self._silence())
        threading.Thread(target=self._read, name="etcd-watch", daemon=True).start()

    def end(self) -> None:
        self._is_over = True
        self._requests.put(None)
        if self._timer is not None:
            self._timer.cancel()
        if self._call is not None:
            self._call.cancel()

    # -- in a thread of its own

    def _read(self) -> None:
        try:
            for response in self._call:
                self._responses.append((response, [_key_value(event) for event in response.events]))
                self._hand_over(self._told)
            self._hand_over(self.lose, EtcdFault("etcd has ended the watch"))
        except grpc.RpcError as error:
            self._hand_over(self._fail, error)

    def _hand_over(self, call: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            self._call.cancel()  # the loop has ended before this was closed

    # -- in the loop

    def _told(self) -> None:
        """All that has been read by now: whoever is told makes one image of it. When hundreds of leaders change, there
        is a response for every transaction, and an image for each would hold up those who are served."""
        if self._is_over or not self._responses:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(SILENT_S_MAX, self._ask_for_progress)
        revision = 0
        entries: list[KeyValue] = []
        fault: EtcdFault | None = None
        while self._responses and fault is None:
            response, some = self._responses.popleft()
            if response.canceled:
                compacted = response.compact_revision
                fault = EtcdCompacted(compacted) if compacted else EtcdFault(response.cancel_reason or "canceled")
            elif not response.created:  # what was there before may still come
                revision = _told_up_to(response, some)
                entries += some
        if revision:
            self._on_keys(revision, entries)
        if fault is not None:
            self.lose(fault)

    def _ask_for_progress(self) -> None:
        self._requests.put(WATCH.request(progress_request=WatchProgress()))
        self._timer = self._loop.call_later(ANSWER_S_MAX, self.lose, self._silence())

    def _silence(self) -> EtcdFault:
        return EtcdFault(f"etcd at {self._endpoint}: it does not answer on the watch")

    def _fail(self, error: grpc.RpcError) -> None:
        if not self._is_over:
            self.lose(self._endpoints.fault(self._endpoint, error))

    def lose(self, fault: EtcdFault) -> None:
        if self._is_over:
            return
        self.end()
        if not isinstance(fault, EtcdCompacted):
            self._endpoints.failed(self._endpoint)
        self._on_lost(fault)


def _told_up_to(response: Any, entries: Sequence[KeyValue]) -> int:
    """etcd tells a long history in parts of 1,000 revisions, and each part has the last revision of all in its header:
    whoever went on behind that after a break would miss the parts that had not come."""
    return entries[-1].mod_revision if entries else int(response.header.revision)


def _until_none(requests: "SimpleQueue[Any]") -> Iterator[Any]:
    while (request := requests.get()) is not None:
        yield request


def _key_value(event: Any) -> KeyValue:
    kv = event.kv
    value = None if event.type == DELETE else kv.value
    return KeyValue(kv.key, value, kv.mod_revision, kv.create_revision, kv.lease)

"""A watch whose responses come faster than the loop takes them: what has come by then is told at once, whole and in
order, and as far as it was told a broken watch goes on behind it.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any

import grpc

from goqueue.cluster.etcd.messages import DELETE, PUT, WATCH
from goqueue.cluster.etcd.port import EtcdCompacted, EtcdFault, KeyValue
from goqueue.cluster.etcd.watching import Watching

FAR_S = 60.0


class Stream:
    """What etcd says, as a test puts it there. It is read in the thread of the watch."""

    def __init__(self) -> None:
        self._said: SimpleQueue[Any] = SimpleQueue()
        self._left = 0
        self._all_read = threading.Condition()
        self.is_cancelled = False

    def say(self, *responses: Any) -> None:
        """And wait until they are read. The loop that calls it is busy meanwhile."""
        with self._all_read:
            for each in responses:
                self._left += 1
                self._said.put(each)
            assert self._all_read.wait_for(lambda: self._left == 0, FAR_S), "nobody reads"

    def __iter__(self) -> Iterator[Any]:
        while (response := self._said.get()) is not None:
            yield response  # it comes back when the one before was handed on
            with self._all_read:
                self._left -= 1
                self._all_read.notify_all()

    def cancel(self) -> None:
        self.is_cancelled = True
        self._said.put(None)


class Members:
    """`Endpoints` with one member."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.failures = 0

    def current(self) -> str:
        return "here"

    def metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def failed(self, _endpoint: str) -> None:
        self.failures += 1

    def fault(self, _endpoint: str, error: grpc.RpcError) -> EtcdFault:
        return EtcdFault(str(error))

    def channel(self, _endpoint: str) -> Any:
        return self

    def stream_stream(self, _path: str, **_codec: object) -> Callable[..., Stream]:
        return lambda _requests, metadata: self._stream


class Watched:
    def __init__(self) -> None:
        self.stream = Stream()
        self.members = Members(self.stream)
        self.told: list[tuple[int, list[tuple[bytes, bytes | None]]]] = []
        self.lost: list[EtcdFault] = []
        loop = asyncio.get_running_loop()
        self.watching = Watching(loop, self.members, self._keys, self.lost.append)  # type: ignore[arg-type]
        self.watching.start(b"/", 1)
        self.stream.say(WATCH.response(header={"revision": 1}, created=True))

    def _keys(self, revision: int, entries: Sequence[KeyValue]) -> None:
        self.told.append((revision, [(each.key, each.value) for each in entries]))


def put(key: bytes, value: bytes, revision: int) -> dict[str, Any]:
    return {"type": PUT, "kv": {"key": key, "value": value, "mod_revision": revision, "create_revision": revision}}


def deleted(key: bytes, revision: int) -> dict[str, Any]:
    return {"type": DELETE, "kv": {"key": key, "mod_revision": revision}}


def said(revision: int, *events: dict[str, Any]) -> Any:
    return WATCH.response(header={"revision": revision}, events=list(events))


async def turn() -> None:
    """All that was handed to the loop is done: it is done in order."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done


def run(scenario: Callable[[Watched], Any]) -> Watched:
    async def go() -> Watched:
        watched = Watched()
        await scenario(watched)
        watched.watching.end()
        await turn()
        return watched

    return asyncio.run(go())


def test_responses_that_came_while_the_loop_was_busy_are_told_at_once_and_in_order() -> None:
    async def scenario(watched: Watched) -> None:
        watched.stream.say(
            said(2, put(b"/a", b"1", 2), put(b"/b", b"1", 2)), said(3, deleted(b"/a", 3)), said(4, put(b"/a", b"2", 4))
        )
        await turn()
        assert watched.told == [(4, [(b"/a", b"1"), (b"/b", b"1"), (b"/a", None), (b"/a", b"2")])]
        watched.stream.say(said(5, put(b"/c", b"1", 5)))
        await turn()

    watched = run(scenario)
    assert watched.told[1:] == [(5, [(b"/c", b"1")])]
    assert watched.lost == []


def test_what_came_before_the_end_of_a_watch_is_told_and_then_the_end_and_nothing_behind_it() -> None:
    async def scenario(watched: Watched) -> None:
        watched.stream.say(
            said(2, put(b"/a", b"1", 2)),
            WATCH.response(header={"revision": 9}, canceled=True, compact_revision=7),
            said(3, put(b"/b", b"1", 3)),
        )
        await turn()

    watched = run(scenario)
    assert watched.told == [(2, [(b"/a", b"1")])]
    assert [(type(one), one.revision) for one in watched.lost if isinstance(one, EtcdCompacted)] == [(EtcdCompacted, 7)]
    assert len(watched.lost) == 1
    assert watched.members.failures == 0, "this member is well: its history is not kept for ever"
    assert watched.stream.is_cancelled


def test_a_response_without_keys_says_how_far_all_was_told_and_the_first_says_nothing() -> None:
    async def scenario(watched: Watched) -> None:
        await turn()
        assert watched.told == []
        watched.stream.say(said(2, put(b"/a", b"1", 2)), said(8))
        await turn()

    assert run(scenario).told == [(8, [(b"/a", b"1")])]


def test_a_part_of_a_long_history_is_told_as_far_as_it_goes() -> None:
    """Each part has the last revision of the whole history in its header."""

    async def scenario(watched: Watched) -> None:
        watched.stream.say(said(2500, put(b"/a", b"1", 2), put(b"/b", b"1", 1001)))
        await turn()
        watched.stream.say(said(2500, put(b"/c", b"1", 2001)), WATCH.response(canceled=True, cancel_reason="moved"))
        await turn()

    watched = run(scenario)
    assert watched.told == [(1001, [(b"/a", b"1"), (b"/b", b"1")]), (2001, [(b"/c", b"1")])]
    assert [str(one) for one in watched.lost] == ["moved"]
    assert watched.members.failures == 1


def test_what_was_read_and_not_told_is_told_to_nobody_after_the_end() -> None:
    async def scenario(watched: Watched) -> None:
        watched.stream.say(said(2, put(b"/a", b"1", 2)))
        watched.watching.end()
        await turn()

    watched = run(scenario)
    assert watched.told == []
    assert watched.lost == []

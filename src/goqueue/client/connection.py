"""One connection to one broker: many requests under way, each answered by its correlation id or by a deadline.

A broker answers the requests of a connection in their order, so one that may wait long (a parked Fetch) belongs on a
connection of its own. An answer that does not come makes the whole connection useless, and closes it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from struct import Struct
from typing import Any, NamedTuple, TypeVar, cast

from goqueue.client.clock import Clock, Timer
from goqueue.client.errors import ConnectionLost, TimedOut, Unsupported, refusal
from goqueue.client.frames_in import FramesIn
from goqueue.model.codes import Code
from goqueue.ports.network import Network
from goqueue.wire.kafka.apis import APIS, Api
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.frames import decode_response, request_frame
from goqueue.wire.kafka.messages.classic_groups import FindCoordinatorRequest
from goqueue.wire.kafka.messages.fetch import FetchRequest
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from goqueue.wire.kafka.messages.offsets import OffsetCommitRequest, OffsetFetchRequest
from goqueue.wire.kafka.messages.produce import ProduceRequest
from goqueue.wire.kafka.messages.transactions import AddPartitionsToTxnRequest, EndTxnRequest, TxnOffsetCommitRequest
from goqueue.wire.kafka.notation import Message

HELLO_VERSION = 3
ERROR_AT = 4
"""Where the answer to ApiVersions says that it has an older form."""
SOFTWARE = "goqueue-python"
REQUEST_S_MAX = 30.0

NEWEST_USED: Mapping[type[Message], int] = {
    ProduceRequest: 11,
    FetchRequest: 12,
    OffsetCommitRequest: 9,
    OffsetFetchRequest: 9,
    AddPartitionsToTxnRequest: 3,
    TxnOffsetCommitRequest: 4,
    EndTxnRequest: 4,
    FindCoordinatorRequest: 3,
}
"""What is newer speaks of topic ids, of many keys at once, or means transactions of version 2."""

R = TypeVar("R", bound=Message)

_API_OF = {api.request: api for api in APIS.values()}
_LENGTH = Struct(">i")
_IS_OLDER = Code.UNSUPPORTED_VERSION.to_bytes(2, "big")


class Limits(NamedTuple):
    connect_s_max: float = 10.0
    request_s_max: float = REQUEST_S_MAX
    in_flight_max: int = 256
    frame_bytes_max: int = 256 * 1024 * 1024


class _Pending(NamedTuple):
    future: "asyncio.Future[Any]"
    api: Api
    version: int
    deadline_s: float


class Connection(asyncio.BufferedProtocol):
    def __init__(self, address: str, client_id: str, clock: Clock, limits: Limits) -> None:
        self.address = address
        self._client_id = client_id
        self._clock = clock
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pending: dict[int, _Pending] = {}
        self._next_id = 0
        self._versions: dict[type[Message], int] = {}
        self._offered: dict[int, tuple[int, int]] = {}
        self._frames = FramesIn(limits.frame_bytes_max)
        self._watchdog: Timer | None = None
        self._is_full = False
        self._room: deque[Callable[[], object]] = deque()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.why: Exception | None = None
        """Why it is closed; None while it is open."""
        self.on_lost: Callable[[], object] | None = None

    # -- what its users call

    @property
    def is_open(self) -> bool:
        return self.why is None and self._transport is not None

    @property
    def has_room(self) -> bool:
        """Whether one more request may be sent now. `send` does not refuse: whoever sends many asks first."""
        return not self._is_full and len(self._pending) < self._limits.in_flight_max

    def when_room(self, call: Callable[[], object]) -> None:
        """Call it, once, when there is room or the connection is closed."""
        self._room.append(call)

    def version_of(self, request: type[Message]) -> int:
        """The newest version that both sides speak."""
        version = self._versions.get(request)
        if version is None:
            api = _API_OF[request]
            lowest, highest = self._offered.get(api.key, (0, -1))
            version = min(highest, api.versions.last, NEWEST_USED.get(request, api.versions.last))
            if version < max(lowest, api.versions.first):
                raise Unsupported(f"the broker at {self.address} does not speak {api.name} as this client does")
            self._versions[request] = version
        return version

    def send(self, request: Message, wait_s: float = 0.0, version: int | None = None) -> "asyncio.Future[Any]":
        """The future gets the response, or ConnectionLost or TimedOut. `wait_s`: how long the broker may take on
        purpose. Cancelling the future only means that nobody waits for the answer any more.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        transport = self._transport
        if transport is None or self.why is not None:
            future.set_exception(self.why or ConnectionLost(f"not connected to {self.address}"))
            return future
        number = self._next_id
        self._next_id = (number + 1) & 0x7FFFFFFF
        kind = type(request)
        if version is None:
            version = self._versions.get(kind)
            if version is None:
                version = self.version_of(kind)
        parts = cast(list[bytes], request_frame(request, version, number, self._client_id))
        deadline_s = self._clock.time_s() + self._limits.request_s_max + wait_s
        self._pending[number] = _Pending(future, _API_OF[kind], version, deadline_s)
        if len(parts) == 1:
            transport.write(parts[0])
        else:
            transport.writelines(parts)
        if self._watchdog is None:
            self._watchdog = self._clock.call_after(self._limits.request_s_max + wait_s, self._watch)
        return future

    async def ask(self, request: Message, response: type[R], wait_s: float = 0.0) -> R:
        """`send`, and wait for the answer."""
        while not self.has_room and self.why is None:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self.when_room(lambda waiter=waiter: waiter.done() or waiter.set_result(None))  # type: ignore[misc]
            await waiter
        answer = await self.send(request, wait_s)
        assert isinstance(answer, response)
        return answer

    def abort(self, why: Exception) -> None:
        """Close it now. All that waits for an answer gets `why`."""
        if self.why is not None:
            return
        self.why = why
        if self._transport is not None:
            self._transport.abort()
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        pending, self._pending = self._pending, {}
        for one in pending.values():
            if not one.future.done():
                one.future.set_exception(why)
        self._tell_room()
        if self.on_lost is not None:
            self.on_lost()

    async def close(self) -> None:
        self.abort(ConnectionLost(f"the connection to {self.address} was closed by this client"))
        if self._transport is not None:
            await asyncio.shield(self._closed)

    # -- from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its base class
        if self.why is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        text = f"the connection to {self.address} was lost"
        self.abort(ConnectionLost(f"{text}: {exc}" if exc else text))
        self._transport = None
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._tell_room()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  asyncio's signature
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.take(nbytes):
                self._take(frame)
        except (MalformedRequest, ConnectionLost) as error:
            self.abort(ConnectionLost(f"{self.address} does not answer as a Kafka broker would: {error}"))
        if self._room and self.has_room:
            self._tell_room()

    def eof_received(self) -> bool:
        return False

    def _take(self, frame: memoryview) -> None:
        (number,) = _LENGTH.unpack_from(frame)
        pending = self._pending.get(number)
        if pending is None:
            raise ConnectionLost(f"an answer to request {number}, which does not wait for one")
        future, api, version, _ = pending
        if api.request is ApiVersionsRequest and frame[ERROR_AT : ERROR_AT + 2] == _IS_OLDER:
            version = 0
        answer = None
        if not future.done():
            _, answer, _ = decode_response(api.response, version, frame)
        del self._pending[number]
        if answer is not None:
            future.set_result(answer)

    def _watch(self) -> None:
        """One timer for all that is under way: set for the earliest deadline, looked at again when it has passed."""
        self._watchdog = None
        if not self._pending:
            return
        now_s = self._clock.time_s()
        earliest_s = min(one.deadline_s for one in self._pending.values())
        if earliest_s <= now_s:
            self.abort(TimedOut(f"{self.address} did not answer in time"))
        else:
            self._watchdog = self._clock.call_after(earliest_s - now_s, self._watch)

    def _tell_room(self) -> None:
        waiting, self._room = self._room, deque()
        for call in waiting:
            call()

    # -- the first words

    async def shake_hands(self, version: str) -> None:
        """Ask which versions the broker speaks: nothing else may be sent before."""
        hello = self.send(ApiVersionsRequest(SOFTWARE, version), version=HELLO_VERSION)
        answer: ApiVersionsResponse = await hello
        if answer.error_code not in (Code.NONE, Code.UNSUPPORTED_VERSION):
            raise refusal(answer.error_code)
        self._offered = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


async def connect(
    address: str,
    client_id: str,
    clock: Clock,
    network: Network,
    limits: Limits,
    version: str,
    show: Callable[[Connection], Awaitable[None]] | None = None,
) -> Connection:
    """ConnectionLost or TimedOut: there is nobody, or nobody who speaks Kafka. `show`: says who this is."""
    host, port = split_address(address)
    connection = Connection(address, client_id, clock, limits)
    # A machine that has vanished refuses nobody: who wants answers soon does not wait longer for a connection.
    within_s = min(limits.connect_s_max, limits.request_s_max)
    try:
        async with asyncio.timeout(within_s):
            await network.connect(lambda: connection, host, port)
            await connection.shake_hands(version)
            if show is not None:
                await show(connection)
    except TimeoutError:
        late = TimedOut(f"{address} could not be reached within {within_s} s")
        connection.abort(late)
        raise late from None
    except (OSError, UnicodeError) as error:  # UnicodeError: a host that no name server could be asked for
        why = getattr(error, "strerror", None) or error
        raise ConnectionLost(f"cannot connect to {address}: {why}") from error
    except BaseException:
        connection.abort(ConnectionLost(f"the connection to {address} was given up"))
        raise
    return connection

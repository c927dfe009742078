"""Reads ahead: one Fetch under way to each broker that leads a partition of ours, as long as there is room.

Every Fetch asks for all partitions of its broker, so that one that is parked is answered whatever comes first. When a
partition is added or jumps, a parked Fetch is given up: its answer would come late, or never.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

from goqueue.client.assigned import Assigned, Place
from goqueue.client.cluster import FETCH, NO_LEADER, Cluster
from goqueue.client.connection import Connection
from goqueue.client.errors import ClientError, ConnectionLost, TimedOut, code_of, refusal
from goqueue.client.reading import visible_batches
from goqueue.client.tasks import Tasks
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Batch
from goqueue.wire.kafka.messages.fetch import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

READ_COMMITTED, READ_UNCOMMITTED = 1, 0


class GivenUp(ConnectionLost):
    """By ourselves, to ask for something else."""


class FetchOptions(NamedTuple):
    is_committed: bool
    wait_ms_max: int
    bytes_max: int
    partition_bytes_max: int
    prefetch_bytes_max: int


class Chunk(NamedTuple):
    """A batch that waits for its reader."""

    state: Assigned
    version: int
    batch: Batch


OnGone = Callable[[Assigned, FetchedPartition], None]


class Fetcher:
    def __init__(self, cluster: Cluster, options: FetchOptions, tasks: Tasks, on_gone: OnGone) -> None:
        self._cluster = cluster
        self._options = options
        self._tasks = tasks
        self._on_gone = on_gone
        self.states: dict[Place, Assigned] = {}
        self.ready: deque[Chunk] = deque()
        self._bytes = 0
        """Of what is fetched and not taken. Invariant: a chunk counts exactly while it is in `ready`."""
        self._loops: dict[int, asyncio.Event] = {}
        self._parked: dict[int, Connection] = {}
        self._arrivals: asyncio.Future[None] | None = None
        self._is_refreshing = False

    @property
    def is_committed(self) -> bool:
        return self._options.is_committed

    # -- what is read

    def add(self, states: Iterable[Assigned]) -> None:
        for state in states:
            self.states[state.place] = state
        self.changed()

    def drop(self, places: Iterable[Place]) -> None:
        for place in places:
            state = self.states.pop(place, None)
            if state is not None:
                state.jump(state.position)
        self._forget_stale()
        self.changed()

    def changed(self) -> None:
        """Partitions were added, have jumped, or were resumed: what is parked asks for the wrong things."""
        for connection in list(self._parked.values()):
            connection.abort(GivenUp("given up for another Fetch"))
        self._parked.clear()
        for place in self.states:
            node_id = self._cluster.leader(*place)
            if node_id == NO_LEADER:
                self._refresh_soon()
            elif node_id not in self._loops:
                self._loops[node_id] = asyncio.Event()
                self._tasks.start(self._run(node_id), f"goqueue fetch from node {node_id}")
        for event in self._loops.values():
            event.set()

    def jumped(self) -> None:
        self._forget_stale()
        self.changed()

    def _forget_stale(self) -> None:
        kept = [chunk for chunk in self.ready if chunk.version == chunk.state.version]
        self.ready = deque(kept)
        self._bytes = sum(chunk.batch.size for chunk in kept)

    # -- what has come

    def take(self) -> Chunk | None:
        """The next batch for the reader, of a partition that is not paused."""
        while self.ready:
            chunk = self.ready.popleft()
            self._bytes -= chunk.batch.size
            state = chunk.state
            if chunk.version != state.version:
                continue
            if state.is_paused:
                state.held.append(chunk.batch)
                continue
            if self._bytes < self._options.prefetch_bytes_max:
                for event in self._loops.values():
                    event.set()
            return chunk
        return None

    def resume(self, state: Assigned) -> None:
        """What was held back comes first."""
        for batch in reversed(state.held):
            self.ready.appendleft(Chunk(state, state.version, batch))
            self._bytes += batch.size
        state.held.clear()
        self.tell()

    async def arrival(self) -> None:
        """Until something has come, or `tell` is called. One waits at a time."""
        if self._arrivals is None or self._arrivals.done():
            self._arrivals = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._arrivals)

    def tell(self) -> None:
        if self._arrivals is not None and not self._arrivals.done():
            self._arrivals.set_result(None)

    # -- the loop of one broker

    async def _run(self, node_id: int) -> None:
        event = self._loops[node_id]
        cluster, failures = self._cluster, 0
        while True:
            if self._bytes >= self._options.prefetch_bytes_max or not self._wanted(node_id):
                event.clear()
                await event.wait()
                continue
            try:
                connection = await cluster.connection(node_id, FETCH)
                wanted = self._wanted(node_id)
                if wanted:
                    await self._fetch(node_id, connection, wanted)
                failures = 0
            except GivenUp:
                continue
            except ClientError as error:
                if not error.retriable:
                    self._blame(self._wanted(node_id), error)
                if isinstance(error, ConnectionLost | TimedOut):
                    cluster.doubt(node_id)
                await cluster.clock.sleep(cluster.backoff.pause_s(failures, cluster.dice))
                failures += 1
                self._refresh_soon()

    async def _fetch(self, node_id: int, connection: Connection, wanted: list[Assigned]) -> None:
        versions = {state: state.version for state in wanted}
        self._parked[node_id] = connection
        try:
            answer = await connection.ask(self._request(wanted), FetchResponse, self._options.wait_ms_max / 1000)
        finally:
            self._parked.pop(node_id, None)
        if answer.error_code != Code.NONE:
            raise refusal(answer.error_code)
        self._learn(answer, versions, node_id)

    def _wanted(self, node_id: int) -> list[Assigned]:
        leader = self._cluster.leader
        return [
            state
            for state in self.states.values()
            if not state.is_paused and not state.is_resetting and not state.is_away and state.error is None
            and leader(state.topic, state.partition) == node_id
        ]  # fmt: skip

    def _request(self, wanted: list[Assigned]) -> FetchRequest:
        options = self._options
        topics: dict[str, FetchTopic] = {}
        for state in wanted:
            topic = topics.setdefault(state.topic, FetchTopic(state.topic))
            topic.partitions.append(
                FetchPartition(
                    state.partition, fetch_offset=state.fetch_offset, partition_max_bytes=options.partition_bytes_max
                )
            )
        return FetchRequest(
            max_wait_ms=options.wait_ms_max,
            min_bytes=1,
            max_bytes=options.bytes_max,
            isolation_level=READ_COMMITTED if options.is_committed else READ_UNCOMMITTED,
            topics=list(topics.values()),
        )

    def _learn(self, answer: FetchResponse, versions: dict[Assigned, int], node_id: int) -> None:
        for topic in answer.responses:
            for one in topic.partitions:
                state = self.states.get((topic.topic, one.partition_index))
                if state is None or versions.get(state) != state.version:
                    continue
                if one.error_code == Code.NONE:
                    self._keep(state, one)
                else:
                    self._refused(state, one, node_id)

    def _keep(self, state: Assigned, one: FetchedPartition) -> None:
        state.refusals = 0
        state.high_watermark = one.last_stable_offset if self._options.is_committed else one.high_watermark
        records = cast(memoryview, one.records)
        if not records:
            return
        aborted = one.aborted_transactions if self._options.is_committed else None
        try:
            for batch, is_visible in visible_batches(records, aborted):
                if batch.next_offset <= state.fetch_offset:
                    continue
                if is_visible:
                    self.ready.append(Chunk(state, state.version, batch))
                    state.unread += 1
                    self._bytes += batch.size
                state.fetch_offset = batch.next_offset
        except GoQueueError as error:  # damage: all before it is delivered, then its reader hears of it
            state.error = error
        state.read_all()
        self.tell()

    def _refused(self, state: Assigned, one: FetchedPartition, node_id: int) -> None:
        code = code_of(one.error_code)
        if code is Code.OFFSET_OUT_OF_RANGE:
            state.is_resetting = True
            self._on_gone(state, one)
            return
        error = refusal(code)
        if not error.retriable:
            self._blame([state], error)
            return
        if self._cluster.follow((state.topic, state.partition), node_id, one.current_leader):
            self.changed()
            return
        state.refusals += 1
        state.is_away = True
        self._refresh_soon()

    def _blame(self, states: Iterable[Assigned], error: GoQueueError) -> None:
        for state in states:
            state.error = error
        self.tell()

    def _refresh_soon(self) -> None:
        if not self._is_refreshing:
            self._is_refreshing = True
            self._tasks.start(self._refresh(), "goqueue consumer: metadata")

    async def _refresh(self) -> None:
        """Until all of our partitions have a leader. One that was refused again and again waits longer each time, and
        another broker is asked who leads it: the last one may be behind."""
        cluster, attempt = self._cluster, 0
        try:
            refusals = max((state.refusals for state in self.states.values() if state.is_away), default=0)
            if refusals > 1:
                await cluster.clock.sleep(cluster.backoff.pause_s(refusals - 2, cluster.dice))
                cluster.doubt_contact()
            while True:
                try:
                    await cluster.refresh({topic for topic, _ in self.states})
                except ClientError:
                    pass  # nobody can be reached now
                else:
                    if all(cluster.leader(*place) != NO_LEADER for place in self.states):
                        return
                await cluster.clock.sleep(cluster.backoff.pause_s(attempt, cluster.dice))
                attempt += 1
        finally:
            self._is_refreshing = False
            for state in self.states.values():
                state.is_away = False
            self.changed()

"""Where a worker's jobs come from: it fetches as many as there is room for, and keeps their leases alive."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from goqueue.client.clock import Timer
from goqueue.client.cluster import NO_LEADER, Cluster
from goqueue.client.errors import MOVED, BrokerRefused, ClientError, Closed, ConnectionLost, LeaseLost, code_of
from goqueue.client.job import Job
from goqueue.client.lease_session import LeaseSession
from goqueue.client.message import Message
from goqueue.client.share_member import ShareMember, TopicIdPartition
from goqueue.client.tasks import Tasks
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import Batch, split
from goqueue.records.decode import DecodedRecord
from goqueue.records.portions import portions
from goqueue.records.wishes import lane_and_expiry
from goqueue.telemetry.logs import get_logger
from goqueue.wire.kafka.messages.share_groups import AcquiredRecords, ShareFetchedPartition, ShareFetchResponse

WAIT_S = 5.0
"""How long the broker lets a fetch wait for messages."""
TURN_S = 0.2
"""The same, while other brokers wait for their turn to be asked."""
OVERDUE_S = 1.0
"""A broker whose answer is so late may be gone: is it still the leader?"""
RENEW_PAUSES = 4
"""In the time of a lease: how often to look which leases need to be renewed."""
SHORTEST_PAUSE_S = 0.05

log = get_logger("goqueue.client")


class JobOptions(NamedTuple):
    jobs_max: int
    """Leased at once: those that are worked on, and those that wait for their turn."""
    start: str
    lease_ms: int
    """0: as topic and group say."""
    hold_s_max: float
    """For how long a lease is kept alive."""


class Jobs:
    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str], options: JobOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._member = ShareMember(cluster, group, topics, self._reassigned)
        self._sessions: dict[int, LeaseSession] = {}
        self._tasks = Tasks()
        self._waiting: deque[Job] = deque()
        self._held: dict[Job, float] = {}
        """All that is leased and not settled, and since when."""
        self._newest: dict[tuple[TopicIdPartition, int], Job] = {}
        """Of what is held: the job that was made last of a message, by where it is stored."""
        self._asked: dict[LeaseSession, int] = {}
        """How many messages each fetch that is under way may bring."""
        self._turn = 0
        self._turns: defaultdict[LeaseSession, int] = defaultdict(int)
        """When each was asked last."""
        self._news = asyncio.Event()
        """There is room again, or a job, or nothing more will come."""
        self._timer: Timer | None = None
        self._is_open = False
        self._is_seeking = False
        """Some of ours have no leader, and are asked for until they have."""
        self.failure: ClientError | None = None

    async def start(self) -> None:
        pause_s = await self._member.join()
        self._is_open = True
        self._tasks.start(self._beat(pause_s), "heartbeats")
        await self._assign()

    async def _beat(self, pause_s: float) -> None:
        try:
            await self._member.run(pause_s)
        except ClientError as error:
            self._fail(error)

    def _fail(self, error: ClientError) -> None:
        if self.failure is None:
            self.failure = error
        self._is_open = False
        self._wake()

    # -- taking jobs

    async def next(self) -> Job | None:
        """The next job; None: there will be no more, because it was stopped."""
        while True:
            while self._waiting and self._is_open:
                job = self._waiting.popleft()
                if job.is_ours:
                    return job
                self.settled(job)  # not begun, and delivered again, perhaps to somebody else
            if not self._is_open:
                if self.failure is not None:
                    raise self.failure
                return None
            await self._changed()

    async def _changed(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _wake(self) -> None:
        self._news.set()

    def settled(self, job: Job) -> None:
        self._held.pop(job, None)
        if self._newest.get(job.place) is job:
            del self._newest[job.place]
        self._wake()

    @property
    def held(self) -> int:
        return len(self._held)

    async def subscribe(self, topics: Sequence[str]) -> None:
        await self._member.subscribe(topics)

    def limit(self, jobs_max: int) -> None:
        self._options = self._options._replace(jobs_max=jobs_max)
        self._wake()

    # -- stopping

    def stop_fetching(self, *, gives_back: bool = False) -> None:
        """What waits for its turn is given back when the worker closes, or now."""
        self._is_open = False
        self._wake()
        if gives_back:
            self._tasks.start(self._give_back(), "giving back")

    async def _give_back(self) -> None:
        """What was not handed out, and what fetches bring that are under way."""
        while self._waiting or self._asked:
            if not self._waiting:
                await self._changed()
                continue
            job = self._waiting.popleft()
            if not job.is_ours:
                self.settled(job)
                continue
            try:
                await job.nack(0, "its worker has stopped")
            except ClientError as error:
                log.info("a job was not given back", job=repr(job), reason=str(error))

    async def close(self) -> None:
        """All that is still leased goes back at once."""
        self.stop_fetching()
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.stop()
        for session in self._sessions.values():
            await session.close()
        await self._member.leave()
        self._held.clear()
        self._newest.clear()
        self._waiting.clear()

    # -- fetching

    def _reassigned(self) -> None:
        if self._is_open:
            self._tasks.start(self._assign(), "assignment")

    async def _assign(self) -> None:
        """One session, and one loop, for every broker that leads something of ours."""
        unknown = {topic_id for topic_id, _ in self._member.assigned if self._cluster.name_of(topic_id) is None}
        try:
            if unknown:
                await self._cluster.refresh_ids(unknown)
        except ClientError as error:
            log.warning("cannot ask for topics", reason=str(error))
        leaders = set(map(self._leader, self._member.assigned))
        for node_id in leaders - {NO_LEADER} - self._sessions.keys():
            member, options = self._member, self._options
            session = LeaseSession(self._cluster, node_id, member.group, member.id, options.start, options.lease_ms)
            self._sessions[node_id] = session
            self._tasks.start(self._fetch(session), f"fetching from node {node_id}")
        self._wake()
        if NO_LEADER in leaders and not self._is_seeking and self._is_open:
            self._is_seeking = True
            self._tasks.start(self._seek_leaders(), "looking for leaders")

    async def _seek_leaders(self) -> None:
        """Where nobody leads, nobody is asked who would say that this has changed."""
        attempt = 0
        try:
            while self._is_open and NO_LEADER in map(self._leader, self._member.assigned):
                await self._cluster.clock.sleep(self._cluster.backoff.pause_s(attempt, self._cluster.dice))
                attempt += 1
                await self._look_round(None)
        finally:
            self._is_seeking = False

    def _leader(self, key: TopicIdPartition) -> int:
        name = self._cluster.name_of(key[0])
        return NO_LEADER if name is None else self._cluster.leader(name, key[1])

    async def _fetch(self, session: LeaseSession) -> None:
        failures = 0
        while self._is_open:
            ours = frozenset(key for key in self._member.assigned if self._leader(key) == session.node_id)
            room, wait_s = self._room(session) if ours else (0, 0.0)
            if room <= 0:
                await self._changed()
                continue
            self._asked[session] = room
            try:
                has_moved = await self._fetch_once(session, ours, room, wait_s)
                if has_moved:
                    await self._rest(session, failures)
                    await self._look_round(None)
                failures = failures + 1 if has_moved else 0
            except Closed:
                return
            except ClientError as error:
                log.info("a fetch failed", node=session.node_id, reason=str(error))
                failures += 1
                await self._rest(session, failures)
                await self._look_round(error)
            finally:
                del self._asked[session]
                self._wake()

    async def _fetch_once(
        self, session: LeaseSession, ours: frozenset[TopicIdPartition], room: int, wait_s: float
    ) -> bool:
        """Whether it was told that somebody else leads some of them."""
        is_over = asyncio.Event()

        def doubt() -> None:
            self._tasks.start(self._doubt(session, ours, is_over), "asking who leads")

        overdue = self._cluster.clock.call_after(wait_s + OVERDUE_S, doubt)
        try:
            answer = await session.fetch(ours, room, wait_s)
        finally:
            overdue.cancel()
            is_over.set()
        self._take(session, answer)
        return any(code_of(part.error_code) in MOVED for topic in answer.responses for part in topic.partitions)

    async def _doubt(self, session: LeaseSession, ours: frozenset[TopicIdPartition], is_over: asyncio.Event) -> None:
        """A machine that is gone closes no connections. Until the answer is given up, which takes `request_timeout`,
        nobody else could be asked for as many messages as it was asked for.
        """
        while self._is_open and not is_over.is_set():
            self._cluster.doubt(session.node_id)
            try:
                await self._cluster.refresh()
            except ClientError as failure:
                log.info("no broker answers", reason=str(failure))
            if is_over.is_set():
                return
            if all(self._leader(key) != session.node_id for key in ours):
                session.give_up(ConnectionLost("it does not answer, and others lead what it has led"))
                return
            await self._cluster.clock.sleep(OVERDUE_S)

    async def _rest(self, session: LeaseSession, failures: int) -> None:
        """Before it is asked again. Others have the room meanwhile; and whoever told of this leader may be behind."""
        self._asked[session] = 0
        self._wake()
        if failures:
            await self._cluster.clock.sleep(self._cluster.backoff.pause_s(failures - 1, self._cluster.dice))
            self._cluster.doubt_contact()

    def _room(self, session: LeaseSession) -> tuple[int, float]:
        """How many messages a broker may be asked for now, and how long it may wait. Brokers share the room, and take
        turns where that is not one for each: else the first would hold all of it while others have messages.
        """
        leaders = {self._leader(key) for key in self._member.assigned}
        idle = [each for each in self._sessions.values() if each.node_id in leaders and each not in self._asked]
        free = self._options.jobs_max - len(self._held) - sum(self._asked.values())
        if free <= sum(self._turns[each] < self._turns[session] for each in idle):
            return 0, 0.0
        self._turn += 1
        self._turns[session] = self._turn
        room = max(1, free // len(idle))
        return room, WAIT_S if free - room >= len(idle) - 1 else TURN_S

    async def _look_round(self, error: ClientError | None) -> None:
        """Perhaps somebody else leads these partitions now."""
        if isinstance(error, BrokerRefused) and error.code not in MOVED:
            return
        try:
            await self._cluster.refresh()
        except ClientError as failure:
            log.info("no broker answers", reason=str(failure))
        await self._assign()

    def _take(self, session: LeaseSession, answer: ShareFetchResponse) -> None:
        now_s = self._cluster.clock.time_s()
        jobs: list[Job] = []
        for topic in answer.responses:
            for part in topic.partitions:
                key = (topic.topic_id, part.partition_index)
                name = self._cluster.name_of(topic.topic_id)
                if part.error_code != Code.NONE and code_of(part.error_code) not in MOVED:
                    log.warning("cannot lease", topic=name, partition=key[1], reason=part.error_message)
                if name is not None and part.acquired_records:
                    jobs += self._jobs(session, key, name, part)
        for job in jobs:
            job.lease_s, job.lease_until_s = session.lease_s, now_s + session.lease_s
            self._held[job] = now_s
            before, self._newest[job.place] = self._newest.get(job.place), job
            if before is not None:  # still in hand, and its message came to us again
                before.is_replaced = True
                self._lapse(before)
        if jobs:
            self._renew_after(session.lease_s / RENEW_PAUSES)
        # Fetched together they lie in the order of the log: the urgent ones go first.
        jobs.sort(key=lambda job: lane_and_expiry(job.message.header_pairs)[0])
        self._waiting += jobs
        self._wake()

    def _jobs(
        self, session: LeaseSession, key: TopicIdPartition, name: str, part: ShareFetchedPartition
    ) -> Iterator[Job]:
        attempts = dict(_attempts(part.acquired_records))
        records = part.records
        assert isinstance(records, bytes | bytearray | memoryview)
        for batch in split(memoryview(records)):
            for record in _leased(batch, attempts, (name, key[1])):
                message = Message(
                    name, key[1], record.offset, record.timestamp, record.key, record.value, record.headers
                )
                attempt = attempts.pop(record.offset)
                yield Job(message, attempt, session, key, self._options.lease_ms, self.settled)

    # -- holding

    def _renew_after(self, pause_s: float) -> None:
        if self._timer is None:
            self._timer = self._cluster.clock.call_after(max(SHORTEST_PAUSE_S, pause_s), self._renew)

    def _renew(self) -> None:
        """Whoever works longer than a lease lasts goes on holding it; but not for ever."""
        self._timer = None
        now_s = self._cluster.clock.time_s()
        for job, since_s in list(self._held.items()):
            if job.is_settled or job.has_lapsed or job.lease_until_s - now_s > job.lease_s / 2:
                continue
            if now_s - since_s > self._options.hold_s_max:
                log.warning("held for too long, its lease ends", job=repr(job))
                self._lapse(job)
                continue
            job.lease_until_s = now_s + job.lease_s
            self._tasks.start(self._renew_one(job), "renewing a lease")
        if self._held:
            self._renew_after(min(job.lease_s for job in self._held) / RENEW_PAUSES)

    async def _renew_one(self, job: Job) -> None:
        try:
            await job.extend()
        except LeaseLost:
            log.info("a lease was lost", job=repr(job))
            self._lapse(job)
        except ClientError as error:
            log.info("a lease was not renewed", job=repr(job), reason=str(error))

    def _lapse(self, job: Job) -> None:
        """Whoever has it in hand may go on, and takes up room as long; nobody else need begin."""
        job.has_lapsed = True
        if job in self._waiting:
            self._waiting.remove(job)
            self.settled(job)


def _leased(batch: Batch, wanted: Mapping[int, int], place: tuple[str, int]) -> Iterator[DecodedRecord]:
    """A portion of `batch` at a time, and none behind the last that is wanted."""
    offsets = [offset for offset in wanted if batch.base_offset <= offset <= batch.last_offset]
    if not offsets:
        return
    try:
        for portion in portions(batch, from_offset=min(offsets)):
            for record in portion.records:
                if record.offset in wanted:
                    yield record
            if portion.records and portion.records[-1].offset >= max(offsets):
                return
    except GoQueueError as damage:
        log.error("messages that cannot be read", topic=place[0], partition=place[1], reason=str(damage))


def _attempts(acquired: Sequence[AcquiredRecords]) -> Iterator[tuple[int, int]]:
    for run in acquired:
        for offset in range(run.first_offset, run.last_offset + 1):
            yield offset, max(1, run.delivery_count)

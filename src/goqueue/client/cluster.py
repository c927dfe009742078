"""What a client knows of its brokers: who they are, which leads what, and a connection to each as it is needed.

Nothing here is believed for ever: an answer that contradicts what is known leads to `refresh`, and a connection that
was lost is made again, each attempt a little later than the last.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from goqueue.client.addresses import join_address, parse_servers
from goqueue.client.clock import Backoff, Clock, LoopClock
from goqueue.client.connection import Connection, Limits, connect
from goqueue.client.contact import Contact
from goqueue.client.errors import (
    COORDINATOR_MOVED,
    BrokerRefused,
    ClientError,
    Closed,
    ConnectionLost,
    TimedOut,
    UnknownTopic,
    code_of,
    refusal,
)
from goqueue.client.sasl import authenticate
from goqueue.client.security import Security
from goqueue.model.codes import Code
from goqueue.model.names import check_topic_name
from goqueue.model.own_version import own_version
from goqueue.ports.dice import Dice, system_dice
from goqueue.ports.network import LoopNetwork, Network
from goqueue.records.partitioners import DEFAULT, Partitioner, named
from goqueue.wire.kafka.messages.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from goqueue.wire.kafka.messages.common import LeaderIdAndEpoch, NodeEndpoint
from goqueue.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from goqueue.wire.kafka.notation import Message

DATA = "data"
FETCH = "fetch"
"""For requests that the broker parks until there is something to tell."""
GROUP = "group"
GROUP_KEY, TRANSACTION_KEY = 0, 1
NO_LEADER = -1
UNKNOWN_TOPIC_S_MAX = 1.0
"""How long a topic that the broker does not know may take to come up: it may have been made a moment ago."""

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Topic(NamedTuple):
    name: str
    id: bytes
    leaders: tuple[int, ...]
    """The node that leads each partition, or NO_LEADER."""
    epochs: tuple[int, ...]
    partitioner: Partitioner = DEFAULT
    """How its option says that keys choose their partition."""


class Cluster:
    """One per producer, consumer or worker. `clock`, `dice` and `network` are for tests; `start` first."""

    def __init__(  # noqa: PLR0913  one for each option, by name only
        self,
        servers: str | Iterable[str],
        *,
        client_id: str = "goqueue",
        limits: Limits | None = None,
        backoff: Backoff | None = None,
        creates_topics: bool = False,
        clock: Clock | None = None,
        dice: Dice | None = None,
        network: Network | None = None,
        security: Security | None = None,
    ) -> None:
        self._security = security
        self.client_id = client_id
        self.limits = limits or Limits()
        self.backoff = backoff or Backoff()
        self.dice = dice or system_dice()
        self._network = network or LoopNetwork(
            security.ssl_context() if security is not None and security.tls else None
        )
        self._servers = parse_servers(servers)
        self._creates_topics = creates_topics
        self._given_clock = clock
        self._clock: Clock | None = clock
        self._brokers: dict[int, str] = {}
        self._topics: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._connecting: dict[tuple[int, str], asyncio.Lock] = {}
        self._contact = Contact(self._connect, self._servers, self.dice)
        self._refresh_lock = asyncio.Lock()
        self._lookup_lock = asyncio.Lock()
        self._coordinators: dict[tuple[int, str], int] = {}
        self._is_closed = False
        self.on_topics: list[Callable[[], object]] = []
        """Called when something new is known of topics."""

    @property
    def clock(self) -> Clock:
        if self._clock is None:
            self._clock = LoopClock()
        return self._clock

    async def start(self, absent_s_max: float | None = None) -> None:
        """Until one of the servers has answered. `absent_s_max`: for how long there may be none, if not for as long as
        a request may take. One that is there and slow is waited for.
        """
        await self.retry(self._any_connection, None if absent_s_max is None else self.clock.time_s() + absent_s_max)
        await self.refresh(())

    async def close(self) -> None:
        """A second time is fine."""
        self._is_closed = True
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            await connection.close()
        await self._contact.close()

    # -- topics

    def known(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def leader(self, topic: str, partition: int) -> int:
        """NO_LEADER: not known, or there is none now."""
        found = self._topics.get(topic)
        if found is None or not 0 <= partition < len(found.leaders):
            return NO_LEADER
        return found.leaders[partition]

    async def topic(self, name: str, absent_s_max: float | None = None) -> Topic:
        """UnknownTopic: there is none, and the broker does not make it. `absent_s_max`: for how long no broker may be
        there, if not for as long as a request may take.
        """
        found = self._topics.get(name)
        if found is not None:
            return found
        check_topic_name(name)
        absent_until_s = None if absent_s_max is None else self.clock.time_s() + absent_s_max
        give_up_s: float | None = None
        attempt = 0
        while True:
            async with self._lookup_lock:  # many may want to know the same
                found = self._topics.get(name)
                codes = {} if found is not None else await self.refresh([name], absent_until_s)
            found = self._topics.get(name)
            if found is not None:
                return found
            code = codes.get(name, Code.UNKNOWN_TOPIC_OR_PARTITION)
            if code is not Code.UNKNOWN_TOPIC_OR_PARTITION and code is not Code.LEADER_NOT_AVAILABLE:
                raise refusal(code, f"topic {name!r}: {code.name.lower().replace('_', ' ')}")
            if give_up_s is None:  # counted from the first answer
                give_up_s = self.clock.time_s() + UNKNOWN_TOPIC_S_MAX
            if self.clock.time_s() > give_up_s:
                raise UnknownTopic(code, f"there is no topic {name!r}, and the broker does not make it")
            await self.clock.sleep(self.backoff.pause_s(attempt, self.dice))
            attempt += 1

    async def refresh(self, names: Iterable[str] | None = None, give_up_s: float | None = None) -> dict[str, Code]:
        """Ask anew about these topics, or about all that are known. Gives what is wrong with some of them."""
        async with self._refresh_lock:
            wanted = sorted(self._topics if names is None else names)
            request = MetadataRequest([MetadataRequestTopic(name=name) for name in wanted], self._creates_topics)
            answer = await self.ask_any(request, MetadataResponse, give_up_s)
            codes = self._learn(answer)
            self._look_for_leaders(wanted)
            return codes

    async def refresh_ids(self, topic_ids: Iterable[bytes]) -> None:
        """Topics of which only the ids are known yet."""
        async with self._refresh_lock:
            request = MetadataRequest([MetadataRequestTopic(one, None) for one in sorted(topic_ids)], False)
            self._learn(await self.ask_any(request, MetadataResponse))

    def _look_for_leaders(self, names: Iterable[str]) -> None:
        """Whoever names none for long may be cut off from those who lead."""
        for name in names:
            found = self._topics.get(name)
            if found is not None and NO_LEADER in found.leaders:
                self.suspect(name)
            else:
                self._contact.trust(name)

    def _learn(self, answer: MetadataResponse) -> dict[str, Code]:
        self._contact.told()
        self._brokers = {one.node_id: join_address(one.host, one.port) for one in answer.brokers}
        codes: dict[str, Code] = {}
        for one in answer.topics:
            code = code_of(one.error_code)
            if code is not Code.NONE:
                codes[one.name or ""] = code
                if code is Code.UNKNOWN_TOPIC_OR_PARTITION:
                    self._topics.pop(one.name or "", None)
            elif one.name:
                self._topics[one.name] = _topic(one.name, one)
                self._names[one.topic_id] = one.name
        for call in self.on_topics:
            call()
        return codes

    def follow(
        self,
        place: tuple[str, int],
        asked: int,
        leader: LeaderIdAndEpoch | None,
        endpoints: Iterable[NodeEndpoint] = (),
    ) -> bool:
        """The node that was asked for a partition has named its leader. True: it can be asked at once. A leader of an
        older epoch than is known is not believed, or nodes that are behind would send us to and fro; nor is one that
        names itself: it does not lead yet.
        """
        topic, partition = place
        known = self._topics.get(topic)
        if leader is None or leader.leader_id in (asked, NO_LEADER):
            return False
        if known is None or not 0 <= partition < len(known.epochs) or leader.leader_epoch < known.epochs[partition]:
            return False
        if leader.leader_epoch == known.epochs[partition]:
            return leader.leader_id == known.leaders[partition]
        for each in endpoints:
            self._brokers[each.node_id] = join_address(each.host, each.port)
        if leader.leader_id not in self._brokers:
            return False
        leaders, epochs = list(known.leaders), list(known.epochs)
        leaders[partition], epochs[partition] = leader.leader_id, leader.leader_epoch
        self._topics[topic] = known._replace(leaders=tuple(leaders), epochs=tuple(epochs))
        return True

    # -- connections

    def ready(self, node_id: int, channel: str = DATA) -> Connection | None:
        """The connection to a broker, if there is one already."""
        return self._connections.get((node_id, channel))

    async def connection(self, node_id: int, channel: str = DATA) -> Connection:
        """One attempt: ConnectionLost or TimedOut if it fails."""
        place = (node_id, channel)
        found = self._connections.get(place)
        if found is not None:
            return found
        async with self._connecting.setdefault(place, asyncio.Lock()):
            found = self._connections.get(place)
            if found is not None:
                return found
            address = self._brokers.get(node_id)
            if address is None:
                raise ConnectionLost(f"no address is known of node {node_id}")
            connection = await self._connect(address)
            connection.on_lost = lambda: self._connections.pop(place, None)
            if self._is_closed or not connection.is_open:
                await connection.close()
                raise connection.why or Closed("closed")
            self._connections[place] = connection
            self._contact.trust(node_id)
            return connection

    async def _connect(self, address: str) -> Connection:
        if self._is_closed:
            raise Closed("closed")
        security, show = self._security, None
        if security is not None and security.has_credentials:
            show = partial(authenticate, security=security, dice=self.dice)
        return await connect(address, self.client_id, self.clock, self._network, self.limits, own_version(), show)

    async def _any_connection(self) -> Connection:
        connection = await self._contact.connection(self._brokers.values())
        if self._is_closed:  # while it was made
            await self._contact.close()
            raise Closed("closed")
        return connection

    def doubt_contact(self) -> None:
        """What it told has led to a refusal: it may be cut off from those who know better. Ask another one next."""
        self._contact.doubt(self._brokers.values())

    def doubt(self, node_id: int) -> None:
        """It does not answer: if it is the one that metadata is asked of, another one is asked next."""
        if self._brokers.get(node_id) == self._contact.address:
            self._contact.leave(self._brokers.values())
        else:
            self.suspect(node_id)

    def suspect(self, what: int | str) -> bool:
        """A node that does not do what a leader does, or a topic that has none. True: that has lasted, and another
        broker is asked next."""
        return self._contact.suspect(what, self.clock.time_s(), self._brokers.values())

    # -- questions

    async def retry(self, attempt: Callable[[], Awaitable[T]], give_up_s: float | None = None) -> T:
        """`attempt` until it succeeds, fails for good, or `give_up_s` (of the clock) has passed."""
        deadline_s = self.clock.time_s() + self.limits.request_s_max if give_up_s is None else give_up_s
        failures = 0
        while True:
            try:
                return await attempt()
            except ClientError as error:
                pause_s = self.backoff.pause_s(failures, self.dice)
                if not error.retriable or self._is_closed or self.clock.time_s() + pause_s > deadline_s:
                    raise
            failures += 1
            await self.clock.sleep(pause_s)

    async def ask_any(self, request: Message, response: type[R], give_up_s: float | None = None) -> R:
        """What any broker can answer."""

        async def attempt() -> R:
            connection = await self._any_connection()
            return await connection.ask(request, response)

        return await self.retry(attempt, give_up_s)

    async def ask_coordinator(
        self,
        kind: int,
        key: str,
        request: Callable[[], Message],
        response: type[R],
        check: Callable[[R], None],
        give_up_s: float | None = None,
    ) -> R:
        """Ask whoever coordinates a group or a transactional id. `check` raises what is wrong with an answer; where
        that may pass, it is asked again, of the coordinator that is then found. `request` is made for each attempt.
        """

        async def attempt() -> R:
            try:
                node_id = await self.coordinator(kind, key)
                connection = await self.connection(node_id, GROUP)
                answer = await connection.ask(request(), response)
                check(answer)
            except (ConnectionLost, TimedOut):
                self.forget_coordinator(kind, key)
                self.doubt_contact()
                raise
            except BrokerRefused as error:
                if error.code in COORDINATOR_MOVED:
                    self.forget_coordinator(kind, key)
                    self.doubt_contact()
                raise
            return answer

        return await self.retry(attempt, give_up_s)

    async def coordinator(self, kind: int, key: str) -> int:
        """The node that coordinates it, as far as is known."""
        found = self._coordinators.get((kind, key))
        if found is not None:
            return found
        answer = await (await self._any_connection()).ask(FindCoordinatorRequest(key, kind), FindCoordinatorResponse)
        self._contact.told()
        if answer.error_code != Code.NONE:
            raise refusal(answer.error_code, answer.error_message)
        self._brokers[answer.node_id] = join_address(answer.host, answer.port)
        self._coordinators[kind, key] = answer.node_id
        return answer.node_id

    def forget_coordinator(self, kind: int, key: str) -> None:
        self._coordinators.pop((kind, key), None)


def _topic(name: str, found: MetadataResponseTopic) -> Topic:
    partitions = sorted(found.partitions, key=lambda one: one.partition_index)
    return Topic(
        name,
        found.topic_id,
        tuple(NO_LEADER if one.error_code else one.leader_id for one in partitions),
        tuple(one.leader_epoch for one in partitions),
        named(found.gq_partitioner),
    )

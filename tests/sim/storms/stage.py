"""What all programs of a storm share: the cluster, the book, when to stop, and an HTTP client that tells "surely not
done" from "may be".
"""

import asyncio
import io
import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from goqueue.client import Admin, ClientError, Consumer
from goqueue.client.exchange import Ask, ExchangeFailed, PlainExchange
from goqueue.client.loop_streams import LoopStreams
from goqueue.model.errors import GoQueueError
from goqueue.testing.simulated_node import HTTP_PORT
from goqueue.testing.simulation import Process, Simulation
from goqueue.testing.virtual_loop import let_pass
from tools.nemesis.history import Book, Operation, read_history

CONNECT_S, ANSWER_S = 2.0, 6.0
REFUSED_FROM, BROKEN_FROM = 400, 500
REQUEST = "3s"
QUIET_S_MAX = 60.0
"""When all is well again, whoever is not done by then is stuck."""
Records = dict[int, list[tuple[int, str]]]
"""Offset and value, by partition, in order."""


class Stage:
    def __init__(self, simulation: Simulation) -> None:
        self.sim = simulation
        self.servers = [node.kafka for node in simulation.nodes]
        self._file = io.StringIO()
        self.book = Book(self._file, simulation.loop.time)
        self.is_ending = False
        """Nothing new is asked for; what is there is finished."""
        self.troubled_until_s = 0.0
        """Leaders may change until then, and forget leases."""
        self.processes: list[Process] = []
        self._starts: Counter[str] = Counter()

    def process(self, name: str) -> Process:
        self._starts[name] += 1
        me = self.sim.process(name, self._starts[name])
        self.processes.append(me)
        return me

    def history(self) -> list[Operation]:
        return read_history(self._file.getvalue().splitlines())

    @property
    def is_troubled(self) -> bool:
        return self.sim.loop.time() < self.troubled_until_s

    @property
    def wall_ahead_s(self) -> float:
        """What to add to the clock of the loop to get the time of day."""
        return self.sim.now_ms() / 1000 - self.sim.loop.time()

    async def make_topic(self, name: str, partitions: int, **options: str | int) -> None:
        me = self.process("operator")
        async with Admin(",".join(node.http for node in self.sim.nodes), **me.ports) as admin:
            await admin.create_topic(name, partitions=partitions, **options)

    async def read_all(self, topic: str, partitions: int) -> Records:
        """Everything that is committed, from the start to the end of each partition, when all is healed."""
        me = self.process(f"auditor of {topic}")

        async def read() -> Records:
            found: Records = {number: [] for number in range(partitions)}
            async with asyncio.timeout(QUIET_S_MAX), Consumer(self.servers, topic, **me.ports) as consumer:
                while True:
                    messages = await consumer.poll(timeout="1s")
                    for message in messages:
                        found[message.partition].append((message.offset, (message.value or b"").decode()))
                    if not messages and all(consumer.lag(topic, number) == 0 for number in range(partitions)):
                        return found

        return await me.spawn(read())


Work = Callable[[Process], Coroutine[Any, Any, None]]


class Program(Protocol):
    name: str

    async def prepare(self, stage: Stage) -> None:
        """Make topics and queues, while all is well."""

    def works(self, stage: Stage) -> dict[str, Work]:
        """What is done at once, by the names of processes."""

    async def finish(self, stage: Stage) -> None:
        """When all is healed and all works are over: the last reading."""


async def again_and_again(stage: Stage, attempt: Callable[[], Awaitable[None]]) -> None:
    """Until it is over; a client that fails is followed by another."""
    while not stage.is_ending:
        try:
            await attempt()
        except (ClientError, GoQueueError, OSError):
            await let_pass(0.3)


class NotDone(Exception):
    """Surely not: it was refused, or never sent."""


class Unanswered(Exception):
    """It may have been done."""


class Http:
    """To one node; to the next one when that does not answer. It never asks twice."""

    def __init__(self, stage: Stage, me: Process, first: int = 0) -> None:
        nodes = stage.sim.nodes
        self._me = me
        self._hosts = itertools.cycle([node.name for node in nodes[first:] + nodes[:first]])
        self._exchange = self._next()

    def _next(self) -> PlainExchange:
        return PlainExchange(next(self._hosts), HTTP_PORT, CONNECT_S, LoopStreams(self._me.ports["network"]))

    async def _turn(self) -> None:
        last, self._exchange = self._exchange, self._next()
        await last.close()

    async def __aenter__(self) -> "Http":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._exchange.close()

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        return await self._send(method, f"/v1{path}", body, {"content-type": "application/json"})

    async def sqs(self, action: str, **body: Any) -> Any:
        headers = {"x-amz-target": f"AmazonSQS.{action}", "content-type": "application/x-amz-json-1.0"}
        return await self._send("POST", "/", body, headers)

    async def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        content = None if body is None else json.dumps(body).encode()
        try:
            answer = await self._exchange.ask(Ask(method, path, headers, content, ANSWER_S))
        except ExchangeFailed as error:
            await self._turn()
            raise (NotDone if error.is_unsent else Unanswered)(str(error)) from error
        text = answer.body.decode()
        if answer.status >= BROKEN_FROM:
            await self._turn()
            raise Unanswered(f"{answer.status} {text[:150]}")
        if answer.status >= REFUSED_FROM:
            raise NotDone(f"{answer.status} {text[:150]}")
        return json.loads(text) if text else None

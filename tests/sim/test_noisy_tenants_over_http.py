"""One noisy and 99 quiet tenants on one node, over HTTP and SQS: how long requests of the quiet ones wait until they
are begun. The node is a whole one, with its listener, on a virtual loop; that each request takes a millisecond is said
by the test, and that time passes while others wait is how a node with one busy processor behaves.
"""

import asyncio
import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

from goqueue.broker.tenants.turns import Turns
from goqueue.doors.http.endpoint import Endpoint
from goqueue.doors.http.listener import HttpConnection
from goqueue.doors.sqs.app import SqsApp
from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.codes import Code
from goqueue.model.tenancy import Tenant
from goqueue.testing import Process, Simulation
from goqueue.testing.virtual_loop import VirtualLoop, let_pass
from goqueue.testing.virtual_network import Weather

pytestmark = pytest.mark.second_layer
QUIET = 99
REQUESTS = 300
WORK_S = 0.001
LOAD = 0.5
"""Of what the node can do, by the quiet ones alone."""
CONNECTIONS = 20
"""Of the noisy one."""
FIRST_S = 0.3
"""Before the quiet ones begin."""
NOISY = "noisy"
CALM = Weather((0.05, 0.05), 0.0, (1.0, 1.0), 0.0)

Made = Callable[[str], tuple[str, str, Any]]


def over_http(value: str) -> tuple[str, str, Any]:
    return "/topics/orders/messages", "content-type: application/json", {"messages": [{"value": value}]}


def over_sqs(value: str) -> tuple[str, str, Any]:
    return "/", "x-amz-target: AmazonSQS.SendMessage", {"QueueUrl": "http://node-1/0/orders", "MessageBody": value}


class Work:
    """What a request takes, and when it was begun."""

    def __init__(self) -> None:
        self.begun: dict[str, float] = {}
        self.connections: list[HttpConnection] = []
        """Of the node, in the order in which they were made."""

    def begin(self, value: str) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.begun[value] = loop.time()
        loop.pass_time(WORK_S)

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        handle, audited, connected = Endpoint._handle, SqsApp._audited, HttpConnection.connection_made

        def made(connection: HttpConnection, transport: Any) -> None:
            connected(connection, transport)
            self.connections.append(connection)

        async def handled(endpoint: Endpoint, call: Any, arguments: Any) -> Any:
            if "body" in arguments:
                self.begin(arguments["body"].messages[0].value)
            return await handle(endpoint, call, arguments)

        async def noted(app: SqsApp, *about: Any) -> Any:
            self.begin(about[-2].message_body)
            return await audited(app, *about)

        patch.setattr(HttpConnection, "connection_made", made)
        patch.setattr(Endpoint, "_handle", handled)
        patch.setattr(SqsApp, "_audited", noted)


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, tenant: str, made: Made) -> None:
        self._tenant, self._made = tenant, made
        self.transport: asyncio.Transport
        self.answered = 0
        self.on_answer: Callable[[], None] = lambda: None

    async def connect(self, me: Process) -> None:
        transport, _ = await me.ports["network"].connect(lambda: self, "node-1", 8080)
        self.transport = transport

    def request(self, value: str) -> bytes:
        path, header, body = self._made(value)
        content = json.dumps(body)
        head = f"host: node-1\r\nx-goqueue-tenant: {self._tenant}\r\n{header}\r\ncontent-length: {len(content)}"
        return f"POST {path} HTTP/1.1\r\n{head}\r\n\r\n{content}".encode()

    def data_received(self, data: bytes) -> None:
        answers = data.count(b"HTTP/1.1 200")  # two, if it asked again while it waited
        assert answers == data.count(b"HTTP/1.1 "), data
        self.answered += answers
        for _ in range(answers):
            self.on_answer()


class Noisy(Client):
    """Sends its next request as soon as the last one was answered."""

    def __init__(self, number: int, made: Made) -> None:
        super().__init__(NOISY, made)
        self._number = number
        self.on_answer = self.send

    def send(self) -> None:
        self.transport.write(self.request(f"{NOISY}-{self._number}-{self.answered}"))


async def furnish(sim: Simulation) -> None:
    broker = sim.nodes[0].broker

    async def ask(submit: Callable[[Callable[[Any], None]], None]) -> Any:
        told: asyncio.Future[Any] = sim.loop.create_future()
        submit(told.set_result)
        return await told

    for tenant in (NOISY, *(f"quiet-{number}" for number in range(QUIET))):
        assert await ask(partial(broker.tenants.create, Tenant(tenant, tenant))) is None
        topic = CreateTopic(f"{tenant}~orders", broker.topics.new_id(), 1)
        assert (await ask(partial(broker.topics.submit, topic))).code is Code.NONE


def waits_of_the_quiet(made: Made, *, is_noisy: bool, seed: int = 1) -> list[float]:
    """Seconds between the arrival of each of their requests at the node and its beginning."""
    work = Work()
    came: dict[str, float] = {}

    async def scenario(sim: Simulation) -> int:
        sim.network.weather = CALM
        sim.nodes[0].sync_ms = 0.1, 0.1
        await furnish(sim)
        me, dice = sim.process("me"), sim.dice("arrivals")
        clients = [Client(f"quiet-{number}", made) for number in range(QUIET)]
        noisy = [Noisy(number, made) for number in range(CONNECTIONS if is_noisy else 0)]
        for client in (*clients, *noisy):
            await client.connect(me)
            await let_pass(0.001)
        for tenant in (NOISY, "quiet-0"):  # they have been there a moment ago
            sim.nodes[0].broker.tenants.turns.spend(tenant, 0.0, sim.loop.time())
        for each in noisy:
            each.send()
        at_s = sim.loop.time() + FIRST_S
        for number in range(REQUESTS):
            at_s += dice.expovariate(LOAD / WORK_S)
            chosen = dice.randrange(QUIET)
            came[value := f"request-{number}"] = at_s
            sim.loop.call_at(at_s, work.connections[chosen].data_received, clients[chosen].request(value))
        while sum(client.answered for client in clients) < REQUESTS:
            await let_pass(0.01)
        assert not sim.loop.exceptions
        return sum(client.answered for client in noisy)

    with pytest.MonkeyPatch.context() as patch:
        work.patch(patch)
        served = Simulation(seed).run(scenario)
    assert served > 20 * CONNECTIONS or not is_noisy, "what the quiet ones leave it may use"
    return sorted(work.begun[value] - at_s for value, at_s in came.items())


def p99(waits: list[float]) -> float:
    return waits[len(waits) * 99 // 100]


@cache
def alone(made: Made) -> float:
    return p99(waits_of_the_quiet(made, is_noisy=False))


@pytest.mark.parametrize("made", [over_http, over_sqs])
def test_a_tenant_with_many_connections_takes_its_turn_as_one(made: Made) -> None:
    together = p99(waits_of_the_quiet(made, is_noisy=True))
    assert alone(made) > WORK_S
    assert together <= 2 * alone(made), (together, alone(made))


def test_were_it_not_for_turns_of_tenants_the_others_would_wait_for_each_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That the test above can fail."""
    monkeypatch.setattr(Turns, "may_begin", lambda *_: True)
    assert p99(waits_of_the_quiet(over_http, is_noisy=True)) > 2 * alone(over_http)

"""Nodes ask each other over kept connections that both sides have proved, and always learn what became of it."""

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from goqueue.doors.kafka.peer_door import STRANGERS_MAX
from goqueue.model.errors import Indeterminate, NotReached
from goqueue.model.placements import NodeInfo
from goqueue.ports.peers import PeerRequest
from goqueue.testing.simulation import Simulation
from tests.unit.cluster.peer_hosts import PEER_PORT, Host

ECHO = 20001
HOLD = 20002


def echo(request: PeerRequest) -> None:
    request.answer((b"echo ", bytes(request.body)))


def run(scenario: Callable[[Simulation], Awaitable[None]], seed: int = 1) -> None:
    Simulation(seed, nodes=0).run(scenario)


async def two(sim: Simulation, secret: bytes = b"secret") -> tuple[Host, Host]:
    book: dict[int, NodeInfo] = {}
    one, other = await Host(sim, 1, book).start(), await Host(sim, 2, book, secret).start()
    other.door.handlers[ECHO] = echo
    return one, other


def test_a_node_is_answered_by_another() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        asked_by: list[int] = []

        def note(request: PeerRequest) -> None:
            asked_by.append(request.node_id)
            request.answer((b"",))

        other.door.handlers[HOLD] = note
        assert await one.ask(2, ECHO, b"hello") == b"echo hello"
        assert await one.ask(2, ECHO, b"x" * 300_000) == b"echo " + b"x" * 300_000
        assert await one.ask(2, HOLD, b"") == b""
        assert asked_by == [1]

    run(scenario)


def test_an_answer_that_takes_long_holds_up_no_other() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        held: list[PeerRequest] = []
        other.door.handlers[HOLD] = held.append
        waiting = asyncio.ensure_future(one.ask(2, HOLD, b"", timeout_ms=10_000))
        await sim.let_pass("100 ms")
        assert await one.ask(2, ECHO, b"meanwhile") == b"echo meanwhile"
        held[0].answer((b"at last",))
        assert await waiting == b"at last"

    run(scenario)


def test_a_stranger_is_asked_for_a_proof_and_answered_nothing_else() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim, secret=b"another")
        assert isinstance(await one.ask(2, ECHO, b"hello"), NotReached)
        assert isinstance(await other.ask(1, ECHO, b"hello"), NotReached)
        reader: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        class Stranger(asyncio.Protocol):
            got = b""

            def data_received(self, data: bytes) -> None:
                self.got += data

            def connection_lost(self, exc: Exception | None) -> None:
                reader.set_result(self.got)

        transport, _ = await sim.network.at("stranger").connect(Stranger, "n2", PEER_PORT)
        transport.write(b"\0\0\0\x0c\x4e\x21\0\0\0\0\0\1\xff\xff\0x")
        assert await reader == b""
        assert other.door.refused >= 1

    run(scenario)


def test_a_connection_without_a_proof_is_closed_after_a_while() -> None:
    async def scenario(sim: Simulation) -> None:
        _, other = await two(sim)
        lost: asyncio.Future[float] = asyncio.get_running_loop().create_future()

        class Silent(asyncio.Protocol):
            def connection_lost(self, exc: Exception | None) -> None:
                lost.set_result(sim.loop.time())

        begun_s = sim.loop.time()
        await sim.network.at("stranger").connect(Silent, "n2", PEER_PORT)
        assert 4 < await lost - begun_s < 7
        assert other.door.refused == 1

    run(scenario)


def test_strangers_that_hold_every_place_keep_no_node_out() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        lost: list[int] = []

        class Silent(asyncio.Protocol):
            def __init__(self, number: int) -> None:
                self.number = number

            def connection_lost(self, exc: Exception | None) -> None:
                lost.append(self.number)

        for number in range(STRANGERS_MAX + 50):
            await sim.network.at("stranger").connect(lambda number=number: Silent(number), "n2", PEER_PORT)  # type: ignore[misc]
        assert await one.ask(2, ECHO, b"hello") == b"echo hello"
        assert sorted(lost) == list(range(len(lost))), "the oldest make room"
        assert 50 <= len(lost) <= 52
        assert other.door.refused == len(lost)

    run(scenario)


def test_what_strangers_say_fills_no_log() -> None:
    async def scenario(sim: Simulation) -> None:
        await two(sim)
        for _ in range(50):
            transport, _ = await sim.network.at("stranger").connect(asyncio.Protocol, "n2", PEER_PORT)
            transport.write(b"GET / HTTP/1.1\r\n\r\n")
        await sim.let_pass("1s")

    with capture_logs() as told:
        run(scenario)
    assert len([each for each in told if each["event"] == "bad request"]) == 10


def test_an_address_that_belongs_to_another_node_now_is_not_taken_for_the_first() -> None:
    async def scenario(sim: Simulation) -> None:
        one, _ = await two(sim)
        one.book[3] = one.book[2]._replace(node_id=3)
        assert isinstance(await one.ask(3, ECHO, b"hello"), NotReached)

    run(scenario)


def test_what_was_sent_and_not_answered_may_have_been_done() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        held: list[PeerRequest] = []
        other.door.handlers[HOLD] = held.append
        assert isinstance(await one.ask(2, HOLD, b"", timeout_ms=300), Indeterminate)
        waiting = asyncio.ensure_future(one.ask(2, HOLD, b"", timeout_ms=10_000))
        await sim.let_pass("100 ms")
        other.process.kill()
        assert isinstance(await waiting, Indeterminate)

    run(scenario)


def test_what_is_not_offered_was_not_done() -> None:
    async def scenario(sim: Simulation) -> None:
        one, _ = await two(sim)
        assert isinstance(await one.ask(2, 20003, b""), NotReached)
        assert isinstance(await one.ask(9, ECHO, b""), NotReached)

    run(scenario)


def test_a_node_that_was_killed_is_told_of_after_two_refusals_and_found_again_later() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        assert await one.ask(2, ECHO, b"a") == b"echo a"
        life = one.book[2]
        killed_s = sim.loop.time()
        other.process.kill()
        while not one.refused:
            await sim.let_pass("10 ms")
        assert sim.loop.time() - killed_s < 0.5
        assert one.refused == [life]
        again = await Host(sim, 2, one.book, start=2).start()
        again.door.handlers[ECHO] = echo
        await sim.let_pass("1 s")
        assert await one.ask(2, ECHO, b"b") == b"echo b"
        assert one.refused == [life]

    run(scenario)


def test_a_node_that_is_back_is_connected_to_before_anybody_asks_it() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        assert await one.ask(2, ECHO, b"a") == b"echo a"
        way = one.peers.way(2)
        other.process.kill()
        await sim.let_pass("5 s")
        assert way.connection_number == 0
        one.book[2] = one.book[2]._replace(incarnation=2)  # it joins before its door is open
        one.peers.nodes_changed()
        await sim.let_pass("300 ms")
        assert way.connection_number == 0
        await Host(sim, 2, one.book, start=2).start()
        await sim.let_pass("1 s")
        assert way.connection_number == 2

    run(scenario)


def test_a_node_whose_connection_broke_is_suspected_until_it_is_reached_and_asked_all_the_same() -> None:
    """Its clients were cut off in the same moment: who asks for a leader now must not be sent to it again."""

    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        life = one.book[2]
        assert await one.ask(2, ECHO, b"a") == b"echo a"
        ((_, connection),) = [(each, each._connection) for each in one.peers._ways.values()]
        assert connection is not None
        connection.connection_lost(None)
        assert one.peers.is_suspected(life)
        assert await one.ask(2, ECHO, b"b") == b"echo b"
        assert not one.peers.is_suspected(life)
        assert other.door.refused == 0

    run(scenario)


def test_a_node_that_was_killed_is_suspected_for_a_while_or_until_it_is_reached() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        life = one.book[2]
        assert await one.ask(2, ECHO, b"a") == b"echo a"
        assert not one.peers.is_suspected(life)
        other.process.kill()
        while not one.peers.is_suspected(life):
            await sim.let_pass("1 ms")
        assert one.refused == [], "before it is declared dead"
        while not one.peers.is_refusing(life):
            await sim.let_pass("1 ms")
        assert one.refused == [], "likewise"
        assert not one.peers.is_suspected(life._replace(incarnation=life.incarnation + 1)), "another life"
        await sim.let_pass("1500 ms")
        assert not one.peers.is_suspected(life), "etcd may not be there to end its session"
        again = await Host(sim, 2, one.book, start=2).start()
        again.door.handlers[ECHO] = echo
        assert await one.ask(2, ECHO, b"b") == b"echo b"
        one.peers.suspect(life)
        one.peers.way(2, "another").ask(ECHO, b"", lambda answer: None, 1000)
        await sim.let_pass("100 ms")
        assert not one.peers.is_suspected(life), "it was reached"
        assert not one.peers.is_refusing(life)

    run(scenario)


def test_a_node_that_cannot_be_reached_is_not_called_dead() -> None:
    async def scenario(sim: Simulation) -> None:
        one, _ = await two(sim)
        assert await one.ask(2, ECHO, b"a") == b"echo a"
        sim.network.cut("n1", "n2")
        assert isinstance(await one.ask(2, ECHO, b"b"), Indeterminate)
        await sim.let_pass("10 s")
        assert isinstance(await one.ask(2, ECHO, b"c"), NotReached)
        assert one.refused == []
        assert not one.peers.is_suspected(one.book[2])
        assert not one.peers.is_refusing(one.book[2])
        sim.network.heal()
        await sim.let_pass("3 s")
        assert await one.ask(2, ECHO, b"d") == b"echo d"

    run(scenario)


def test_a_suspected_node_is_asked_nothing_and_that_is_known_not_to_be_done() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        asked: list[bytes] = []
        other.door.handlers[HOLD] = lambda request: asked.append(bytes(request.body))
        one.peers.suspect(one.book[2])
        assert isinstance(await one.ask(2, HOLD, b"lost"), NotReached)
        assert asked == []
        one.peers.reached(2)
        assert await one.ask(2, ECHO, b"a") == b"echo a"

    run(scenario)


def test_no_answer_is_waited_for_of_a_node_whose_session_has_ended_and_that_is_silent() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        held: list[PeerRequest] = []
        other.door.handlers[HOLD] = held.append
        waiting = asyncio.ensure_future(one.ask(2, HOLD, b"", timeout_ms=30_000))
        await sim.let_pass("100 ms")
        one.peers.nodes_changed()
        await sim.let_pass("1 s")
        assert not waiting.done(), "it is the same life"
        del one.book[2]
        one.peers.nodes_changed()
        await sim.let_pass("200 ms")
        assert not waiting.done(), "it may have lost its session only"
        await sim.let_pass("100 ms")
        assert isinstance(await asyncio.wait_for(waiting, 0.01), Indeterminate)

    run(scenario)


def test_a_node_that_has_lost_its_session_only_still_answers() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        held: list[PeerRequest] = []
        other.door.handlers[HOLD] = held.append
        waiting = asyncio.ensure_future(one.ask(2, HOLD, b"", timeout_ms=30_000))
        asked = asyncio.ensure_future(one.ask(2, HOLD, b"", timeout_ms=30_000))
        await sim.let_pass("100 ms")
        one.book[2] = one.book[2]._replace(incarnation=2)
        one.peers.nodes_changed()
        held[1].answer((b"not here any more",))
        await sim.let_pass("1 s")
        assert await asked == b"not here any more"
        held[0].answer((b"nor this",))
        assert await waiting == b"nor this"

    run(scenario)


def test_whoever_waits_when_the_door_closes_is_told() -> None:
    async def scenario(sim: Simulation) -> None:
        one, other = await two(sim)
        lost: list[str] = []
        other.door.handlers[HOLD] = lambda request: request.when_lost(lambda: lost.append("lost"))
        waiting = asyncio.ensure_future(one.ask(2, HOLD, b"", timeout_ms=10_000))
        await sim.let_pass("100 ms")
        await other.process.spawn(other.door.close())
        assert isinstance(await waiting, Indeterminate)
        assert lost == ["lost"]
        await one.process.spawn(one.peers.close())
        assert isinstance(await one.ask(2, ECHO, b""), NotReached)

    run(scenario)

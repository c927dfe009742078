"""The network of a simulation behaves as one of machines does, and as a test tells it to."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from goqueue.testing.trace import Trace
from goqueue.testing.virtual_loop import Life, Stuck, VirtualLoop, let_pass
from goqueue.testing.virtual_network import VirtualNetwork, Weather


class Talk(asyncio.Protocol):
    """Notes what it gets."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.ends = 0
        self.lost: list[Exception | None] = []
        self.told: list[str] = []
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got.append(data)

    def eof_received(self) -> bool:
        self.ends += 1
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("go on")


class Pair:
    """A connection from host `a` to host `b`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.network = VirtualNetwork(loop, Random(1), Trace())
        self.here, self.there = Talk(), Talk()

    async def connect(self) -> None:
        await self.network.at("b").listen(lambda: self.there, "b", 80)
        await self.network.at("a").connect(lambda: self.here, "b", 80)
        await let_pass(1)


def run(scenario: Callable[[Pair], Awaitable[None]]) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(scenario(Pair(loop)))
    finally:
        loop.close()


def test_a_year_passes_at_once_and_timers_fire_in_their_order() -> None:
    loop, fired = VirtualLoop(), list[str]()
    loop.call_later(365 * 86_400, fired.append, "year")
    loop.call_later(3600, fired.append, "hour")
    begin_s = loop.time()
    loop.run_until_complete(let_pass(400 * 86_400))
    assert (fired, round(loop.time() - begin_s)) == (["hour", "year"], 400 * 86_400)
    loop.close()


def test_a_loop_in_which_everybody_waits_for_ever_says_so() -> None:
    loop = VirtualLoop()
    with pytest.raises(Stuck):
        loop.run_until_complete(loop.create_future())
    loop.close()


def test_nothing_happens_any_more_on_behalf_of_a_process_that_is_gone() -> None:
    loop, life, words = VirtualLoop(), Life("one"), list[str]()

    async def talk() -> None:
        try:
            await let_pass(1)
            words.append("before")
            await let_pass(10)
            words.append("after")
        finally:
            words.append("finally")

    loop.create_task(talk(), context=life.context())
    loop.call_later(5, loop.end, life)
    loop.run_until_complete(let_pass(100))
    assert words == ["before"]
    loop.close()


def test_what_is_sent_arrives_whole_and_in_order_however_it_is_split_and_delayed() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.connect()
        pair.network.weather = Weather(delay_ms=(1, 500), split=1.0)
        sent = [bytes([number]) * (number + 1) for number in range(100)]
        for piece in sent:
            pair.here.transport.write(piece)
        await let_pass(60)
        assert b"".join(pair.there.got) == b"".join(sent)
        assert len(pair.there.got) != len(sent)

    run(scenario)


def test_a_cut_link_holds_data_up_until_it_is_healed_and_the_other_way_stays_open() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.connect()
        pair.network.cut("a", "b", both_ways=False)
        pair.here.transport.write(b"question")
        pair.there.transport.write(b"news")
        await let_pass(5)
        assert (pair.there.got, pair.here.got) == ([], [b"news"])
        pair.network.heal("a", "b")
        await let_pass(5)
        assert pair.there.got == [b"question"]

    run(scenario)


def test_who_sends_into_a_cut_for_too_long_loses_the_connection_and_the_other_end_does_not_know() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.connect()
        pair.network.cut("a", "b")
        pair.here.transport.write(b"question")
        await let_pass(60)
        (error,) = pair.here.lost
        assert isinstance(error, OSError)
        assert error.errno == errno.ETIMEDOUT
        assert pair.there.lost == []
        pair.network.heal()
        pair.there.transport.write(b"are you there?")
        await let_pass(5)
        assert [getattr(each, "errno", None) for each in pair.there.lost] == [errno.ECONNRESET]

    run(scenario)


def test_a_reset_takes_along_what_is_on_its_way() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.connect()
        pair.here.transport.write(b"question")
        assert pair.network.reset("a") == 1
        await let_pass(5)
        assert pair.there.got == []
        assert len(pair.here.lost) == len(pair.there.lost) == 1

    run(scenario)


def test_a_close_lets_data_arrive_first() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.connect()
        pair.here.transport.write(b"farewell")
        pair.here.transport.close()
        await let_pass(5)
        assert (pair.there.got, pair.there.ends, pair.there.lost) == ([b"farewell"], 1, [None])
        assert pair.here.lost == [None]

    run(scenario)


def test_a_sender_is_told_to_pause_while_the_receiver_does_not_read() -> None:
    async def scenario(pair: Pair) -> None:
        await pair.connect()
        pair.there.transport.pause_reading()
        pair.here.transport.write(bytes(1_000_000))
        await let_pass(60)
        assert (pair.here.told, pair.there.got) == (["pause"], [])
        pair.there.transport.resume_reading()
        await let_pass(5)
        assert pair.here.told == ["pause", "go on"]
        assert sum(map(len, pair.there.got)) == 1_000_000

    run(scenario)


def test_nobody_listens_where_nobody_is_and_a_host_without_power_does_not_even_refuse() -> None:
    async def scenario(pair: Pair) -> None:
        with pytest.raises(ConnectionRefusedError):
            await pair.network.at("a").connect(Talk, "b", 80)
        pair.network.switch("b", on=False)
        started_s = pair.loop.time()
        with pytest.raises(TimeoutError):
            await pair.network.at("a").connect(Talk, "b", 80)
        assert pair.loop.time() - started_s >= 30

    run(scenario)


def test_an_address_is_taken_once_and_only_on_its_own_host() -> None:
    async def scenario(pair: Pair) -> None:
        network = pair.network.at("b")
        listener = await network.listen(Talk, "b", 80)
        with pytest.raises(OSError, match="in use"):
            await network.listen(Talk, "b", 80)
        with pytest.raises(OSError, match="assign"):
            await network.listen(Talk, "a", 80)
        listener.close()
        await network.listen(Talk, "b", 80)

    run(scenario)

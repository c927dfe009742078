"""Several addresses of one cluster over HTTP: what one node does not take the next one gets, once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from goqueue.client.errors import InvalidArgument
from goqueue.client.exchange import Answer, Ask, ExchangeFailed, Streamed
from goqueue.client.exchanges import Exchanges
from goqueue.client.http import Http

EMPTY = b""
ASK = Ask("POST", "/topics", {}, b"{}", 1.0)


class Node:
    """Answers with `status`; 0: it cannot be reached; -1: the connection breaks."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.asked = 0
        self.is_closed = False

    async def ask(self, _ask: Ask) -> Answer:
        self.asked += 1
        if self.status == 0:
            raise ExchangeFailed("refused").unsent()
        if self.status < 0:
            raise ExchangeFailed("reset")
        return Answer(self.status, "", b"{}")

    @asynccontextmanager
    async def stream(self, _ask: Ask) -> AsyncGenerator[Streamed, None]:
        if self.status <= 0:
            raise ExchangeFailed("refused").unsent()
        yield Streamed(self.status, "", _nothing())

    async def close(self) -> None:
        self.is_closed = True


async def _nothing() -> AsyncGenerator[bytes, None]:
    if EMPTY:
        yield EMPTY


def ask(*statuses: int, times: int = 1) -> tuple[list[int], list[Node]]:
    nodes = [Node(status) for status in statuses]
    exchanges = Exchanges(nodes)

    async def inside() -> list[int]:
        return [(await exchanges.ask(ASK)).status for _ in range(times)]

    return asyncio.run(inside()), nodes


def test_a_node_that_is_down_is_passed_over_and_not_asked_again_first() -> None:
    answers, nodes = ask(0, 200, times=3)
    assert answers == [200, 200, 200]
    assert [each.asked for each in nodes] == [1, 3]


def test_a_node_that_cannot_serve_now_answers_once() -> None:
    answers, nodes = ask(503, 200, times=2)
    assert answers == [503, 200]
    assert [each.asked for each in nodes] == [1, 1]


def test_what_may_have_been_done_is_not_asked_of_another() -> None:
    nodes = [Node(-1), Node(200)]
    with pytest.raises(ExchangeFailed):
        asyncio.run(Exchanges(nodes).ask(ASK))
    assert [each.asked for each in nodes] == [1, 0]


def test_when_all_are_down_the_last_one_says_so() -> None:
    nodes = [Node(0), Node(0)]
    with pytest.raises(ExchangeFailed):
        asyncio.run(Exchanges(nodes).ask(ASK))
    assert [each.asked for each in nodes] == [1, 1]


def test_a_stream_that_fails_begins_elsewhere_the_next_time() -> None:
    nodes = [Node(0), Node(200)]
    exchanges = Exchanges(nodes)

    async def inside() -> int:
        with pytest.raises(ExchangeFailed):
            async with exchanges.stream(ASK):
                pass
        return (await exchanges.ask(ASK)).status

    assert asyncio.run(inside()) == 200


def test_addresses_are_written_with_commas_and_share_their_path() -> None:
    async def inside() -> None:
        http = Http("node-1:8080, http://node-2:8080/,node-3:8080")
        await http.close()
        with pytest.raises(InvalidArgument):
            Http("http://node-1/a,http://node-2/b")

    asyncio.run(inside())

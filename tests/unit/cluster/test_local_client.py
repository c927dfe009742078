"""A member's connection to the store, when the store does not read, or cuts it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from goqueue.cluster.etcd.port import EtcdFault, KeyPut
from goqueue.cluster.local.client import UNSENT_BYTES_MAX, LocalStoreClient
from tests.unit.testing.loops import turn


def run(scenario: Callable[[LocalStoreClient, socket.socket], Awaitable[None]]) -> None:
    async def connected() -> None:
        here, there = socket.socketpair()
        with there:
            client = await LocalStoreClient.connect(here)
            await scenario(client, there)
            client.close()

    asyncio.run(connected())


def test_a_member_is_told_that_the_store_has_cut_it_off() -> None:
    async def scenario(client: LocalStoreClient, store: socket.socket) -> None:
        lost = asyncio.Event()
        client.on_lost = lost.set
        store.close()
        async with asyncio.timeout(10):
            await lost.wait()

    run(scenario)


def test_a_member_that_has_closed_it_is_told_nothing() -> None:
    async def scenario(client: LocalStoreClient, store: socket.socket) -> None:
        lost: list[None] = []
        client.on_lost = lambda: lost.append(None)
        client.close()
        for _ in range(5):
            await turn()
        assert not lost

    run(scenario)


def test_a_store_that_reads_nothing_is_asked_nothing_more() -> None:
    async def scenario(client: LocalStoreClient, store: socket.socket) -> None:
        answers: list[Any] = []
        put = KeyPut(b"key", bytes(UNSENT_BYTES_MAX // 4))
        for _ in range(8):
            client.txn([], [put], answers.append)
        await turn()
        assert len(answers) == 3, answers
        assert all(isinstance(each, EtcdFault) and "too much" in str(each) for each in answers)

    run(scenario)

"""Back pressure: whoever does not fit waits in turn."""

import asyncio

import pytest

from goqueue.client.errors import Closed, MessageTooLarge
from goqueue.client.room import Room
from tests.unit.testing.loops import in_loop, turn


@in_loop
async def test_who_waits_is_let_in_in_turn() -> None:
    room = Room(100)
    assert room.take(90)
    large = asyncio.ensure_future(room.wait(50))
    await turn()
    assert not room.take(5), "it would fit, but another has waited longer"
    small = asyncio.ensure_future(room.wait(5))
    await turn()
    assert not large.done()
    assert not small.done()
    room.give(90)
    await asyncio.gather(large, small)
    assert room.bytes == 55


@in_loop
async def test_who_is_cancelled_takes_nothing_and_stops_nobody() -> None:
    room = Room(100)
    assert room.take(100)
    large = asyncio.ensure_future(room.wait(80))
    small = asyncio.ensure_future(room.wait(10))
    await turn()
    room.give(50)
    await turn()
    assert not small.done()
    large.cancel()
    await small
    assert room.bytes == 60


@in_loop
async def test_cancelled_in_the_moment_of_being_let_in_gives_it_back() -> None:
    room = Room(100)
    assert room.take(100)
    waiting = asyncio.ensure_future(room.wait(40))
    await turn()
    room.give(100)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert room.bytes == 0


@in_loop
async def test_what_never_fits_and_what_comes_too_late_is_refused() -> None:
    room = Room(100)
    with pytest.raises(MessageTooLarge, match="101 bytes do not fit into the buffer of 100 bytes"):
        await room.wait(101)
    assert room.take(100)
    waiting = asyncio.ensure_future(room.wait(1))
    await turn()
    room.close()
    with pytest.raises(Closed, match="before there was room"):
        await waiting
    with pytest.raises(Closed):
        await room.wait(1)

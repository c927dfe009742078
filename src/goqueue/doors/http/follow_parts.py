"""Following a topic whose partitions several nodes lead: each of the others is asked again and again for what is new
in its partitions, and answers when there is something, or after a while.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping

import msgspec

from goqueue.doors.http.call import Call
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Forwarding, NotHere, OnReply, Stop
from goqueue.wire.forwarded import encode
from goqueue.wire.rest.follow import FollowQuery

FOLLOW = "follow"
"""A kind of question between nodes."""
WAIT_MS = 10_000
ANSWER_MS_MAX = 5_000
AGAIN_S = 0.5
"""Until a leader that could not be reached is looked for again."""
WAITING_MAX = 16


class FollowPart(msgspec.Struct, array_like=True):
    topic: str
    query: FollowQuery
    partitions: list[int]
    positions: dict[int, int] | None
    """None: where the query says."""
    wait_ms: int
    principal: str = ""
    """Who asks."""
    host: str = ""
    """From where, if there are rules about addresses."""


class FollowedPart(msgspec.Struct, array_like=True):
    positions: dict[int, int]
    """From where to go on."""
    events: list[tuple[str, bytes, dict[int, int]]]
    """Name, data, and the positions behind it."""


Look = Callable[[FollowPart, Callable[[FollowedPart | GoQueueError], None]], Stop | None]
"""How this node does it."""

_request = msgspec.msgpack.Decoder(FollowPart).decode
_reply = msgspec.msgpack.Decoder(FollowedPart).decode


def serve(forwarding: Forwarding, look: Look) -> None:
    def answer(payload: bytes, _timeout_ms: int, on_reply: OnReply) -> Stop | None:
        def looked(found: FollowedPart | GoQueueError) -> None:
            on_reply(NotHere(str(found)) if isinstance(found, GoQueueError) else encode(found))

        try:
            return look(_request(payload), looked)
        except (msgspec.MsgspecError, GoQueueError) as error:
            on_reply(NotHere(str(error)))
        return None

    forwarding.serve(FOLLOW, answer)


async def elsewhere(
    call: Call,
    forwarding: Forwarding,
    topic: str,
    query: FollowQuery,
    partitions: Mapping[int, int | None],
    told: "asyncio.Queue[FollowedPart]",
) -> None:
    """Put what other leaders say into `told`, for ever. `partitions`: and where to go on, where that is known."""
    positions, who = {each: at for each, at in partitions.items() if at is not None}, (call.principal, call.host)
    kept = call.broker.kept(topic)
    while True:
        by_node: dict[int | None, list[int]] = {}
        for number in partitions:
            by_node.setdefault(forwarding.homes.partition(kept, number), []).append(number)
        async with asyncio.TaskGroup() as tasks:
            for node_id, numbers in by_node.items():
                known = {each: positions[each] for each in numbers if each in positions}
                part = FollowPart(topic, query, numbers, known if len(known) == len(numbers) else None, WAIT_MS, *who)
                tasks.create_task(_ask(call, forwarding, node_id, part, positions, told))


async def _ask(
    call: Call,
    forwarding: Forwarding,
    node_id: int | None,
    part: FollowPart,
    positions: dict[int, int],
    told: "asyncio.Queue[FollowedPart]",
) -> None:
    """Until that node does not lead these partitions any more, or cannot be reached."""
    while node_id is not None:
        payload = encode(part)
        try:
            answer: bytes = await call.ask(
                lambda done, payload=payload: forwarding.ask(  # type: ignore[misc]
                    node_id, FOLLOW, payload, done, WAIT_MS + ANSWER_MS_MAX
                )
            )
        except GoQueueError:
            break
        found = _reply(answer)
        positions.update(found.positions)
        part.positions = found.positions
        await told.put(found)
    await asyncio.sleep(AGAIN_S)


async def merged(
    own: AsyncGenerator[FollowedPart, None], others: "asyncio.Queue[FollowedPart]"
) -> AsyncGenerator[FollowedPart, None]:
    """What this node and others say, as it comes."""

    async def feed() -> None:
        async for each in own:
            await others.put(each)

    feeding = asyncio.get_running_loop().create_task(feed())
    try:
        while not feeding.done() or not others.empty():
            waiting = asyncio.ensure_future(others.get())
            try:
                await asyncio.wait({waiting, feeding}, return_when=asyncio.FIRST_COMPLETED)
            finally:  # whoever follows may leave at any time
                waiting.cancel()
            if waiting.done():
                yield waiting.result()
        feeding.result()
    finally:
        feeding.cancel()
        await asyncio.wait((feeding,))
        await own.aclose()

"""The broker answers by callback, since its hot paths have no tasks. Here is how a coroutine waits for an answer."""

import asyncio
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Protocol, TypeAlias, TypeVar, cast

from goqueue.broker.durable import Durable
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.ledgers import LedgerKind
from goqueue.model.refusal import Refused

T = TypeVar("T")
Submit: TypeAlias = Callable[[Callable[[T | GoQueueError], None]], object]
"""A call of the broker, given where to put its answer."""


class Coded(Protocol):
    """A reply that says whether it was done."""

    @property
    def code(self) -> Code: ...


class Explained(Coded, Protocol):
    """And why not."""

    @property
    def message(self) -> str: ...


C = TypeVar("C", bound=Coded)
E = TypeVar("E", bound=Explained)


class Asking:
    """What doors with coroutines have in common."""

    async def ask(self, submit: Submit[T]) -> T:
        """Wait for what a call of the broker gives to its callback; raise it if it is an error of ours. What the call
        returns is cancelled with the wait, if it can be: nobody shall be leased what nobody waits for.
        """
        future: asyncio.Future[None] | None = None
        replies: list[T | GoQueueError] = []

        def answer(reply: T | GoQueueError) -> None:
            if future is None or not future.done():
                replies.append(reply)
                if future is not None:
                    future.set_result(None)

        parked = submit(answer)
        if not replies:
            future = asyncio.get_running_loop().create_future()
            try:
                await future
            except asyncio.CancelledError:
                if hasattr(parked, "cancel"):
                    parked.cancel()
                raise
        reply = replies.pop()
        if isinstance(reply, GoQueueError):
            try:
                raise reply.kept()
            finally:
                del reply  # the error holds this frame
        return reply

    async def in_turns(self, steps: Generator[None, None, T]) -> T:
        """What a long walk comes to. After each of its steps others have their turn."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(T, end.value)
            await asyncio.sleep(0)

    async def confirmed(self, durable: Durable, kinds: Iterable[LedgerKind]) -> None:
        """Wait until what was read of these states is durable. Raises if it never will be."""
        await self.ask(partial(durable.confirm, kinds))

    async def order(self, submit: Submit[E]) -> E:
        """As `ask`, for calls whose reply has a code and says why: raises if that says no."""
        reply = await self.ask(submit)
        if reply.code is not Code.NONE:
            raise Refused(reply.code, reply.message)
        return reply

    async def order_by_code(self, submit: Submit[C]) -> C:
        """As `order`, for replies that have a code alone."""
        reply = await self.ask(submit)
        if reply.code is not Code.NONE:
            raise Refused(reply.code)
        return reply

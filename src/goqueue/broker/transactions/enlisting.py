"""Transactions v2 (KIP-890): the first write to a partition, or commit to a group, enlists it in the transaction.

A batch must not stand in a log before the coordinator knows of it for good, or nobody would ever end its transaction.
So the request waits for that, and whatever the same producer sends meanwhile waits behind it: its sequence numbers
would be out of order otherwise.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from goqueue.machines.transactions.commands import AddGroup, AddPartitions, CodeReply, Partition
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.transactions import Writer
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock, Timer

WAITING_BYTES_MAX = 64 * 1024 * 1024
"""Of all requests that wait. A client with five requests under way has five megabytes of it."""
SETTLE_MS_MAX = 1000
"""How long a request waits for the markers of the producer's last transaction before the client is asked to wait."""

OnEnlisted = Callable[[Code], None]


class Enlistment:
    """One request that waits."""

    __slots__ = ("command", "due_s", "joins", "size", "then", "timer")

    def __init__(self, command: AddPartitions | AddGroup, size: int, then: OnEnlisted, *, joins: bool) -> None:
        self.command = command
        self.joins = joins
        self.size = size
        self.then = then
        self.timer: Timer | None = None
        """Set while it waits for the markers of the last transaction."""
        self.due_s: float | None = None
        """Until when it does so, however often its coordinator is asked meanwhile."""


class Enlisting:
    def __init__(
        self,
        clock: Clock,
        submit: Callable[[AddPartitions | AddGroup, bool, OnReply[CodeReply]], None],
        when_settled: Callable[[str, Callable[[], None]], None],
    ) -> None:
        """`submit`: with whether what it names is to join; else it is only asked whether it has."""
        self._clock = clock
        self._submit = submit
        self._when_settled = when_settled
        self._queues: dict[str, deque[Enlistment]] = {}
        """By transactional id, in the order in which they came. Invariant: the first of each is being decided."""
        self._waiting_bytes = 0
        self._settling: set[str] = set()
        """Whose markers we wait to hear of: once for each id, however often its client asks meanwhile."""
        self._served = ""
        """Whose turn it is: this one need not wait for those behind it."""

    def is_waited_for(self, transactional_id: str) -> bool:
        """Whether a request of this producer has to wait for others of it."""
        return transactional_id in self._queues and transactional_id != self._served

    @property
    def is_idle(self) -> bool:
        return not self._queues

    def add_partitions(
        self, writer: Writer, partitions: tuple[Partition, ...], size: int, then: OnEnlisted, *, joins: bool = True
    ) -> None:
        """`then` gets the coordinator's verdict, in the order of the calls. `size`: the bytes that wait for it.
        `joins`: False, if the producer has said so itself."""
        self._add(AddPartitions(*writer, partitions), size, then, joins=joins)

    def add_group(self, writer: Writer, group: str, then: OnEnlisted, *, joins: bool = True) -> None:
        self._add(AddGroup(*writer, group), 0, then, joins=joins)

    def _add(self, command: AddPartitions | AddGroup, size: int, then: OnEnlisted, *, joins: bool) -> None:
        if self._waiting_bytes + size > WAITING_BYTES_MAX:
            then(Code.CONCURRENT_TRANSACTIONS)
            return
        one = Enlistment(command, size, then, joins=joins)
        self._waiting_bytes += size
        queue = self._queues.setdefault(command.transactional_id, deque())
        queue.append(one)
        if queue[0] is one:
            self._ask(one)

    def _ask(self, one: Enlistment) -> None:
        self._submit(one.command, one.joins, partial(self._answered, one))

    def _answered(self, one: Enlistment, reply: CodeReply | GoQueueError) -> None:
        code = Code.COORDINATOR_NOT_AVAILABLE if isinstance(reply, GoQueueError) else reply.code
        if code is Code.CONCURRENT_TRANSACTIONS:
            now_s = self._clock.monotonic_s()
            one.due_s = now_s + SETTLE_MS_MAX / 1000 if one.due_s is None else one.due_s
            one.timer = self._clock.call_after(max(0.0, one.due_s - now_s) * 1000, partial(self._end, one, code))
            name = one.command.transactional_id
            if name not in self._settling:
                self._settling.add(name)
                self._when_settled(name, partial(self._settled, name))
        else:
            self._end(one, code)

    def _settled(self, name: str) -> None:
        self._settling.discard(name)
        queue = self._queues.get(name)
        if queue and queue[0].timer is not None:  # else nobody waits for it any more
            queue[0].timer.cancel()
            queue[0].timer = None
            self._ask(queue[0])

    def _end(self, one: Enlistment, code: Code) -> None:
        one.timer = None
        name = one.command.transactional_id
        queue = self._queues[name]
        queue.popleft()
        self._waiting_bytes -= one.size
        self._served = name
        try:
            one.then(code)
        finally:
            self._served = ""
            if queue:
                self._ask(queue[0])
            else:
                del self._queues[name]

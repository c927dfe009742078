"""Several brokers that ask each other, without connections: what one sends the other has after a turn of the clock."""

from collections.abc import Callable, Sequence
from typing import Any

from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.homes import Homes
from goqueue.broker.forwarding.spread import spread
from goqueue.broker.queues.settle import Wanted
from goqueue.model.errors import GoQueueError, Indeterminate, NotReached
from goqueue.ports.peers import OnAnswer
from goqueue.records.messages import NewMessage, Sent
from goqueue.testing import VirtualClock
from tests.unit.broker.queue_node import Got, Parked, QueueNode

KEY = b"k" * 16
"""Of receipts: all nodes of a cluster have the same."""


class AskedNow:
    """A `PeerRequest`."""

    version = 0
    not_before_ms = 0
    connection = None

    def __init__(self, node_id: int, body: bytes, on_answer: Callable[[bytes | GoQueueError], None]) -> None:
        self.node_id = node_id
        self.body = memoryview(body)
        self._on_answer = on_answer

    def when_lost(self, call: Callable[[], None]) -> None: ...

    def answer(self, body: Sequence[bytes | memoryview]) -> None:
        self._on_answer(b"".join(body))

    def refuse(self, why: str) -> None:
        self._on_answer(NotReached(why))


class Cut:
    """What happens on the way to a node."""

    is_down = False
    """It cannot be reached."""
    loses_answers = 0
    """So many."""


class Wires:
    """Of one node, to all others."""

    def __init__(self, me: int, nodes: "SpreadNodes") -> None:
        self._me = me
        self._nodes = nodes

    def ask(self, node_id: int, _api_key: int, body: bytes, on_done: OnAnswer, _timeout_ms: int) -> None:
        clock, cut = self._nodes.clock, self._nodes.cuts[node_id]

        def answered(answer: bytes | GoQueueError) -> None:
            if cut.loses_answers and not isinstance(answer, GoQueueError):
                cut.loses_answers -= 1
                answer = Indeterminate("its answer was lost")
            told = answer
            clock.call_soon(lambda: on_done(told))

        if cut.is_down:
            answered(NotReached("down"))
        else:
            self._nodes.asked.append((self._me, node_id))
            asked = AskedNow(self._me, body, answered)
            clock.call_soon(lambda: self._nodes.forwarding[node_id].handle(asked))


class FixedHomes(Homes):
    """A test says who leads; what it does not say is led by node `partition mod nodes`."""

    def __init__(self, me: int, nodes: "SpreadNodes") -> None:
        self.me = me
        self._nodes = nodes

    @property
    def revision(self) -> int:
        return self._nodes.revision

    def nodes(self) -> list[int]:
        return list(range(len(self._nodes.all)))

    def leads(self, topic: str, partition: int) -> bool:
        return self.partition(topic, partition) == self.me

    def partition(self, topic: str, partition: int) -> int | None:
        return self._nodes.leaders.get((topic, partition), partition % len(self._nodes.all))

    def transaction(self, transactional_id: str) -> int | None:
        """They are all coordinated by the first node."""
        return 0


class SpreadNodes:
    def __init__(self, count: int = 2, partitions: int = 4) -> None:
        self.clock = VirtualClock()
        self.all = [QueueNode(clock=self.clock) for _ in range(count)]
        self.cuts = [Cut() for _ in range(count)]
        self.leaders: dict[tuple[str, int], int | None] = {}
        self.revision = 0
        self.asked: list[tuple[int, int]] = []
        self.forwarding: list[Forwarding] = []
        for number, node in enumerate(self.all):
            node.broker.settler._key = KEY
            self.forwarding.append(spread(node.broker, Wires(number, self), FixedHomes(number, self)))
            node.create("orders", partitions)
        self.run()

    def run(self) -> None:
        """Until nothing more happens without time."""
        for _ in range(50):
            for node in self.all:
                node.commit()

    def pass_ms(self, some: int) -> None:
        for _ in range(max(1, some // 50)):
            self.clock.advance(50)
            self.run()

    # -- asking one of them

    def reply(self, submit: Callable[[Callable[[Any], None]], object]) -> Any:
        replies: list[Any] = []
        submit(replies.append)
        self.run()
        (reply,) = replies
        return reply

    def send(self, number: int, *messages: NewMessage | bytes) -> list[Sent]:
        made = [NewMessage(each) if isinstance(each, bytes) else each for each in messages]
        sender = self.all[number].broker.sender
        return self.reply(lambda done: sender.send("orders", made, done))  # type: ignore[no-any-return]

    def park(self, number: int, **options: Any) -> Parked:
        parked = self.all[number].park(**options)
        self.run()
        return parked

    def drain(self, number: int) -> list[Got]:
        """All that can be received through one node, without waiting."""
        found: list[Got] = []
        while got := self.park(number).got:
            found += got
        return found

    def settle(self, number: int, *wanted: Wanted) -> list[Any]:
        settler = self.all[number].broker.settler
        return self.reply(lambda done: settler.settle(wanted, done))  # type: ignore[no-any-return]

"""Questions between nodes, by their numbers."""

from collections.abc import Callable, Sequence

from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.homes import Homes
from goqueue.model.topics import Image
from goqueue.ports.forwarding import OnReply, Stop
from goqueue.ports.peers import OnAnswer
from goqueue.testing import VirtualClock


class Asked:
    """A `PeerRequest` of node 2."""

    node_id, version, not_before_ms, connection = 2, 0, 0, None

    def __init__(self, body: bytes) -> None:
        self.body = memoryview(body)
        self.lose: Callable[[], None] = lambda: None
        self.answers: list[bytes] = []

    def when_lost(self, call: Callable[[], None]) -> None:
        self.lose = call

    def answer(self, body: Sequence[bytes | memoryview]) -> None:
        self.answers.append(b"".join(body))

    def refuse(self, why: str) -> None:
        raise AssertionError(why)


class Wire:
    """To node 1."""

    def __init__(self, there: Forwarding) -> None:
        self._there = there
        self.asked: list[Asked] = []

    def ask(self, _node_id: int, _api_key: int, body: bytes, _on_done: OnAnswer, _timeout_ms: int) -> None:
        self.asked.append(Asked(body))
        self._there.handle(self.asked[-1])


def test_a_question_of_a_node_that_was_restarted_is_not_stopped_with_one_of_its_earlier_life() -> None:
    clock, stopped = VirtualClock(), list[bytes]()
    replies: dict[bytes, OnReply] = {}

    def serve(payload: bytes, _timeout_ms: int, on_reply: OnReply) -> Stop:
        replies[payload] = on_reply
        return lambda: stopped.append(payload)

    def life() -> tuple[Forwarding, Wire]:
        wire = Wire(there)
        return Forwarding(wire, Homes(2, Image), clock), wire

    there = Forwarding(Wire.__new__(Wire), Homes(1, Image), clock)
    there.serve("slow", serve)
    first, first_wire = life()
    first.ask(1, "slow", b"first", lambda answer: None, 1000)
    clock.advance(100)
    second, second_wire = life()
    second.ask(1, "slow", b"second", lambda answer: None, 1000)
    first_wire.asked[0].lose()  # that the first is gone is noticed late
    assert stopped == [b"first"]
    replies[b"second"](b"done")
    assert second_wire.asked[0].answers == [b"done"]

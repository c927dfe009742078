"""Questions between nodes, by their numbers."""

from collections.abc import Callable, Sequence

import pytest

from goqueue.broker.forwarding.forwarding import LOOK_AGAIN_MS, NEWS_MS_MAX, Forwarding
from goqueue.broker.forwarding.homes import Homes
from goqueue.model.topics import Image
from goqueue.ports.forwarding import NotHere, OnReply, Stop
from goqueue.ports.peers import OnAnswer
from goqueue.testing import VirtualClock


class Asked:
    """A `PeerRequest` of node 2."""

    node_id, version, not_before_ms, connection = 2, 0, 0, None

    def __init__(self, body: bytes) -> None:
        self.body = memoryview(body)
        self.lose: Callable[[], None] = lambda: None
        self.answers: list[bytes] = []
        self.refusals: list[str] = []

    def when_lost(self, call: Callable[[], None]) -> None:
        self.lose = call

    def answer(self, body: Sequence[bytes | memoryview]) -> None:
        self.answers.append(b"".join(body))

    def refuse(self, why: str) -> None:
        self.refusals.append(why)


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


class Asking:
    """Node 2 asks node 1, which leads what it is asked for as soon as it has metadata of revision 7."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.revision = 5
        self.there = Forwarding(Wire.__new__(Wire), Homes(1, lambda: Image(self.revision)), self.clock)
        self.there.serve("send", self._serve)
        self.wire = Wire(self.there)
        self.served: list[bytes] = []

    def _serve(self, payload: bytes, _timeout_ms: int, on_reply: OnReply) -> Stop | None:
        if self.revision < 7:
            on_reply(NotHere("it is led elsewhere"))
        else:
            self.served.append(payload)
            on_reply(b"done")
        return None

    def ask(self, revision: int) -> Asked:
        """By metadata of that revision."""
        forwarding = Forwarding(self.wire, Homes(2, lambda: Image(revision)), self.clock)
        forwarding.ask(1, "send", b"a", lambda answer: None, 5000)
        return self.wire.asked[-1]

    def learn(self, revision: int) -> None:
        self.revision = revision
        self.there.image_changed()
        self.clock.run()


def test_whoever_is_asked_for_what_it_does_not_know_yet_to_lead_waits_for_the_metadata_of_the_asker() -> None:
    asking = Asking()
    asked = asking.ask(revision=7)
    asking.learn(6)
    assert (asked.answers, asked.refusals) == ([], [])
    asking.learn(7)
    assert (asked.answers, asked.refusals, asking.served) == ([b"done"], [], [b"a"])
    assert asking.clock.timers == 0


@pytest.mark.parametrize("revision", [4, 5])
def test_whoever_knows_as_much_as_the_asker_refuses_at_once(revision: int) -> None:
    asked = Asking().ask(revision)
    assert asked.refusals == ["it is led elsewhere"]


def test_whoever_waits_in_vain_for_the_metadata_of_the_asker_refuses_in_the_end() -> None:
    asking = Asking()
    asked = asking.ask(revision=7)
    asking.clock.advance(NEWS_MS_MAX)
    asking.clock.run()
    assert (asked.answers, asked.refusals) == ([], ["it is led elsewhere"])


def test_what_was_taken_back_while_it_waited_for_metadata_is_not_done() -> None:
    asking = Asking()
    asked = asking.ask(revision=7)
    asked.lose()
    asking.learn(7)
    assert (asked.answers, asked.refusals, asking.served) == ([], [], [])


def test_a_home_that_has_moved_is_asked_with_the_metadata_that_says_so_and_not_later() -> None:
    clock, home, called = VirtualClock(), [1], list[int | None]()
    forwarding = Forwarding(Wire.__new__(Wire), Homes(2, Image), clock)

    def look(node_id: int | None) -> None:
        forwarding.when_moved(node_id, lambda: home[0], lambda: called.append(node_id))

    look(1)
    look(3)
    clock.run()
    assert called == [3], "it is another already"
    forwarding.image_changed()
    clock.run()
    assert called == [3]
    home[0] = 4
    forwarding.image_changed()
    clock.run()
    assert called == [3, 1]
    look(4)
    clock.advance(LOOK_AGAIN_MS)
    clock.run()
    assert called == [3, 1, 4], "it may be reached by now"
    assert clock.timers == 0

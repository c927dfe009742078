"""The session of a node on a virtual etcd: when it may still speak for itself, and when it must not."""

from random import Random
from typing import Any

import pytest

from goqueue.cluster.etcd.port import KeyPut
from goqueue.cluster.session import LOOP_SILENT_S_MAX, LoopRenewer, Session
from goqueue.testing.virtual_clock import VirtualClock
from goqueue.testing.virtual_etcd import VirtualEtcd

TTL_S = 3
KEY = b"/goqueue/main/live/1"


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.etcd = VirtualEtcd(self.clock, Random(3))
        self.suspended_s = 0.0
        client = self.etcd.client("node-1")
        self.session = Session(self.clock, self.now_s, TTL_S, LoopRenewer(client, self.clock))
        self.lost: list[float] = []
        self.session.on_lost = lambda: self.lost.append(self.now_s())
        leases: list[Any] = []
        sent_s = self.now_s()
        client.grant(TTL_S, leases.append)
        self.clock.advance(20)
        self.lease = leases[0]
        self.etcd.do_txn([], [KeyPut(KEY, b"{}", self.lease)])
        self.session.begin(self.lease, sent_s)

    def now_s(self) -> float:
        return self.clock.monotonic_s() + self.suspended_s

    @property
    def is_known(self) -> bool:
        return KEY in self.etcd.keys


@pytest.fixture
def world() -> World:
    return World()


def test_a_session_that_is_renewed_goes_on(world: World) -> None:
    for _ in range(100):
        world.clock.advance(300)
        assert world.session.is_valid()
        assert world.is_known
    assert world.lost == []


def test_a_session_is_not_valid_for_longer_than_others_must_believe_in_it(world: World) -> None:
    world.clock.advance(5000)
    world.etcd.cut("node-1")
    cut_s = world.now_s()
    while world.session.is_valid():
        assert world.is_known
        world.clock.advance(10)
    assert world.now_s() - cut_s <= TTL_S * 2 / 3
    assert world.is_known
    world.clock.advance(2500)
    assert not world.is_known


def test_the_deadline_counts_from_when_the_renewal_was_sent(world: World) -> None:
    world.clock.advance(2000)
    world.etcd.weather_of("node-1").delay_ms = (700, 700)  # 1.4 s for both ways, and then a rest
    world.clock.advance(2400)
    world.etcd.cut("node-1")
    before_s = world.now_s()
    while world.session.is_valid():
        world.clock.advance(10)
    # The last answer came lately, to a renewal that had been sent 1.4 s before it.
    assert world.now_s() - before_s < TTL_S * 2 / 3 - 1.3


def test_a_session_that_could_not_be_renewed_is_valid_again_with_the_next_renewal(world: World) -> None:
    world.clock.advance(1500)
    world.etcd.pause()
    world.clock.advance(3500)
    assert not world.session.is_valid()
    world.etcd.go_on()
    world.clock.advance(2000)
    assert world.session.is_valid()
    assert world.lost == []


def test_a_lease_that_others_have_revoked_is_told_once_and_nothing_is_renewed_any_more(world: World) -> None:
    world.clock.advance(1500)
    world.etcd.do_revoke(world.lease)
    world.clock.advance(1100)
    assert len(world.lost) == 1
    assert not world.session.is_valid()
    assert world.session.lease == 0
    world.clock.advance(20_000)
    assert len(world.lost) == 1
    assert world.clock.timers == 0


def test_a_suspended_machine_has_no_session_when_it_wakes(world: World) -> None:
    world.clock.advance(1500)
    world.suspended_s += 3
    assert not world.session.is_valid()


def test_an_ended_session_is_not_valid_whatever_answer_still_comes(world: World) -> None:
    world.clock.advance(1000)  # a renewal is under way
    world.session.end()
    world.session.end()
    world.clock.advance(5000)
    assert not world.session.is_valid()
    assert world.lost == []
    world.session.renewed(world.lease, world.now_s())
    assert not world.session.is_valid()


def test_a_new_session_is_not_touched_by_answers_to_the_old_one(world: World) -> None:
    world.clock.advance(1000)
    lease = world.etcd.do_grant(TTL_S)
    world.session.begin(lease, world.now_s())
    world.session.lost(world.lease)
    world.session.renewed(world.lease, world.now_s() + 100)
    world.clock.advance(5000)
    assert world.session.is_valid()
    assert world.session.lease == lease
    world.clock.advance(3000)
    world.etcd.cut("node-1")
    world.clock.advance(TTL_S * 1000)
    assert not world.session.is_valid()


def test_a_loop_that_was_not_heard_of_for_long_is_stuck(world: World) -> None:
    world.clock.advance(10_000)
    world.suspended_s += LOOP_SILENT_S_MAX + 0.6
    assert not world.session.is_loop_stuck(), "it opens logs before it serves, and leads none of them"
    world.session.serve()
    assert not world.session.is_loop_stuck()
    world.suspended_s += LOOP_SILENT_S_MAX + 0.6
    assert world.session.is_loop_stuck()
    world.clock.advance(600)
    assert not world.session.is_loop_stuck()

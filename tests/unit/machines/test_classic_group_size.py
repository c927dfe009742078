"""What a large classic group costs: each member its own part, not a look at all the others."""

from msgspec.structs import replace

from goqueue.machines.groups.classic.rebalance import ClassicChanged
from goqueue.machines.groups.classic.state import NOT_STARTED, ClassicGeneration
from goqueue.machines.groups.commands import Heartbeat, JoinReply, LeaveGroup, LeavingMember, SyncGroup
from goqueue.machines.groups.machine import Groups
from goqueue.machines.machine import Outcome, Tick
from goqueue.model.codes import Code
from tests.steps import count_steps
from tests.unit.machines.group_driver import SESSION_MS, join

FEW, MANY = 250, 1000
RATIO_MAX = 5
"""4 is linear, 16 is quadratic."""


class Large:
    """A coordinator without the checks of `Driver`, which look at everything."""

    def __init__(self, size: int) -> None:
        self.machine = Groups()
        self.member_ids = [f"m{number:04}" for number in range(size)]
        self.now_ms = 1_000_000
        self.generation = 0
        self._tickets = 0

    def tell(self, command: object) -> Outcome:
        self._tickets += 1
        outcome = self.machine.decide(command, self._tickets, self.now_ms)
        for fact in outcome.facts:
            self.machine.apply(fact)
        self.machine.next_deadline_ms()  # a coordinator asks every time
        return outcome

    def begin(self) -> None:
        for member_id in self.member_ids:
            self.tell(join(new_id=member_id))
        self.join_and_sync()

    def join_and_sync(self) -> None:
        replies = [reply for member_id in self.member_ids for reply in self.tell(join(member_id)).replies]
        assert len(replies) == len(self.member_ids)
        told: JoinReply = replies[0][1]
        self.generation = told.generation
        assigned = tuple((member_id, b"assigned") for member_id in self.member_ids)
        answers = []
        for member_id in reversed(self.member_ids):
            assignments = assigned if member_id == told.leader else ()
            command = SyncGroup("g", self.generation, member_id, assignments=assignments)
            answers += [reply.code for _, reply in self.tell(command).replies]
        assert answers == [Code.NONE] * len(self.member_ids)

    def beat(self) -> None:
        for member_id in self.member_ids:
            (reply,) = self.tell(Heartbeat("g", self.generation, member_id)).replies
            assert reply[1].code is Code.NONE

    def leave(self) -> None:
        for member_id in self.member_ids:
            self.tell(LeaveGroup("g", (LeavingMember(member_id),)))

    def expire(self) -> None:
        self.now_ms += 24 * 60 * 60 * 1000
        self.tell(Tick())


def costs(size: int) -> dict[str, int]:
    """Of each thing that can happen to a group of this size."""
    group, doomed = Large(size), Large(size)
    doomed.begin()
    happenings = {
        "first joins": group.begin,
        "rebalance": group.join_and_sync,
        "heartbeats": group.beat,
        "leaving": group.leave,
        "expiry": doomed.expire,
    }
    return {name: count_steps(happen) for name, happen in happenings.items()}


def test_a_group_of_a_thousand_costs_about_four_times_one_of_a_quarter() -> None:
    few, many = costs(FEW), costs(MANY)
    assert {name: (few[name], many[name]) for name in few if many[name] > RATIO_MAX * few[name]} == {}


def test_after_a_restart_the_clocks_of_many_groups_are_started_bit_by_bit() -> None:
    """One tick is one moment in which nobody else is heard."""
    large = Large(1)
    large.begin()
    (generation,) = large.machine.facts()
    assert isinstance(generation, ClassicGeneration)
    large.machine = Groups()
    for number in range(2_500):
        large.machine.apply(replace(generation, group_id=f"g{number}"))
    counts = []
    while large.machine.next_deadline_ms() == NOT_STARTED:
        counts.append(sum(isinstance(fact, ClassicChanged) for fact in large.tell(Tick()).facts))
    assert counts == [1_000, 1_000, 500]
    large.expire()
    assert large.machine.next_deadline_ms() == large.now_ms - 24 * 60 * 60 * 1000 + SESSION_MS, "more are due at once"

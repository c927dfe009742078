"""What receive + ack of one record costs through ShareFetch, in lines of Python: it must not grow unnoticed."""

from goqueue.wire.kafka.messages import share_groups as wire
from tests.steps import count_steps
from tests.unit.doors.kafka.share_members import ACCEPT, House, Member
from tests.unit.doors.kafka.transports import feed

FEW, MANY = 2, 10
ROUNDS = 3
STEPS_MAX, STEPS_ALONE_MAX = 925, 1125


class Consumers:
    """Each asks for one record at a time, of a topic that need not wait for the disk."""

    def __init__(self, count: int) -> None:
        self._house = House(durability="os")
        for _ in range(count * ROUNDS):
            self._house.publish(b"v" * 100)
        self._members = [Member(self._house, f"m{number}", version=2) for number in range(count)]
        self._held: dict[Member, int] = {}

    def _frame(self, member: Member) -> bytes:
        held = self._held.get(member)
        acks = None if held is None else {0: [(held, held, [ACCEPT])]}
        return member.encode(member.request(acks, max_records=1, share_acquire_mode=1, max_bytes=1 << 20), 2)

    def turn(self) -> int:
        """All in one turn of the loop, each with what it got before; how many lines that takes."""
        frames = [(member, self._frame(member)) for member in self._members]

        def happen() -> None:
            for member, frame in frames:
                feed(member._connection, frame)
            self._house.broker.clock.run()

        steps = count_steps(happen)
        for member in self._members:
            (answer,) = member.replies(wire.ShareFetchResponse, 2)
            ((part,),) = (topic.partitions for topic in answer.responses)
            assert part.acknowledge_error_code == 0
            (acquired,) = part.acquired_records
            self._held[member] = acquired.first_offset
        assert len(set(self._held.values())) == len(self._members)
        return steps


def steps(count: int) -> int:
    consumers = Consumers(count)
    for _ in range(ROUNDS - 1):  # a session is opened, and what is used first is prepared for what comes next
        consumers.turn()
    return consumers.turn()


def test_one_consumer_more_in_a_turn_costs_few_steps() -> None:
    assert (steps(MANY) - steps(FEW)) / (MANY - FEW) <= STEPS_MAX


def test_a_consumer_that_is_alone_costs_few_steps() -> None:
    assert steps(1) <= STEPS_ALONE_MAX

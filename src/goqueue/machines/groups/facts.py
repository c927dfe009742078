"""What a ledger of groups stores, whichever kind of group it is of."""

from goqueue.machines.groups.classic.state import ClassicGeneration
from goqueue.machines.groups.consumer.facts import ConsumerGroupKept, ConsumerMemberKept
from goqueue.machines.groups.offsets import CoordinatorNoted, OffsetCommitted, OffsetPending
from goqueue.machines.machine import Fact

GROUP_FACTS: tuple[type[Fact], ...] = (
    ClassicGeneration,
    ConsumerGroupKept,
    ConsumerMemberKept,
    CoordinatorNoted,
    OffsetCommitted,
    OffsetPending,
)

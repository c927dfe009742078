"""What the node wires ledgers to: the broker's machines, and the facts that each of them stores."""

from goqueue.machines.classic_state import ClassicGeneration
from goqueue.machines.consumer_group_facts import ConsumerGroupKept, ConsumerGroupOptions, ConsumerMemberKept
from goqueue.machines.consumer_group_kind import consumer_kind
from goqueue.machines.delay import Delays
from goqueue.machines.delay_facts import DELAY_FACTS
from goqueue.machines.delivery import Deliveries
from goqueue.machines.delivery_facts import DELIVERY_FACTS
from goqueue.machines.group_offsets import OffsetCommitted, OffsetPending
from goqueue.machines.groups import Groups as GroupsMachine
from goqueue.machines.machine import Fact
from goqueue.machines.schema_facts import SCHEMA_FACTS
from goqueue.machines.schemas import SchemaMachine
from goqueue.machines.share_group_kind import share_kind
from goqueue.machines.transaction import TransactionMachine
from goqueue.machines.transaction_facts import MarkSet, ProducerIdsReserved, TransactionChanged

__all__ = [
    "CONSUMER_GROUPS",
    "DELAY_FACTS",
    "DELIVERY_FACTS",
    "GROUP_FACTS",
    "SCHEMA_FACTS",
    "TRANSACTION_FACTS",
    "Delays",
    "Deliveries",
    "GroupsMachine",
    "SchemaMachine",
    "TransactionMachine",
    "consumer_kind",
    "share_kind",
]

CONSUMER_GROUPS = ConsumerGroupOptions(heartbeat_ms=400)
"""Members hear of a revocation with their next heartbeat, and who waits for the partition with its own: a rebalance
takes at most this and `settling_heartbeat_ms` together."""
GROUP_FACTS: tuple[type[Fact], ...] = (
    ClassicGeneration,
    ConsumerGroupKept,
    ConsumerMemberKept,
    OffsetCommitted,
    OffsetPending,
)
TRANSACTION_FACTS: tuple[type[Fact], ...] = (ProducerIdsReserved, TransactionChanged, MarkSet)

"""What the node wires ledgers to: the broker's machines, and the facts that each of them stores."""

from goqueue.broker.delays.earlier import EARLIER_FACTS as EARLIER_DELAY_FACTS
from goqueue.broker.delays.earlier import EarlierDelays, copy_delays
from goqueue.broker.shards import shard_of_group_fact, shard_of_transaction_fact
from goqueue.broker.transactions.earlier import EARLIER_FACTS as EARLIER_TRANSACTION_FACTS
from goqueue.broker.transactions.earlier import EarlierTransactions
from goqueue.machines.delays.facts import DELAY_FACTS
from goqueue.machines.delays.machine import Delays
from goqueue.machines.deliveries.facts import DELIVERY_FACTS, OptionsStored
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.groups.classic.state import ClassicGeneration
from goqueue.machines.groups.consumer.facts import CONSUMER_GROUPS, ConsumerGroupKept, ConsumerMemberKept
from goqueue.machines.groups.consumer.kind import consumer_kind
from goqueue.machines.groups.machine import Groups as GroupsMachine
from goqueue.machines.groups.offsets import CoordinatorNoted, OffsetCommitted, OffsetPending
from goqueue.machines.groups.share.kind import share_kind
from goqueue.machines.machine import Fact
from goqueue.machines.retired import RETIRED
from goqueue.machines.schemas.facts import SCHEMA_FACTS
from goqueue.machines.schemas.machine import SchemaMachine
from goqueue.machines.transactions.facts import MarkSet, TransactionChanged
from goqueue.machines.transactions.machine import TransactionMachine

__all__ = [
    "CONSUMER_GROUPS",
    "DELAY_FACTS",
    "DELIVERY_FACTS",
    "EARLIER_DELAY_FACTS",
    "EARLIER_TRANSACTION_FACTS",
    "GROUP_FACTS",
    "RETIRED",
    "SCHEMA_FACTS",
    "TRANSACTION_FACTS",
    "Delays",
    "Deliveries",
    "EarlierDelays",
    "EarlierTransactions",
    "GroupsMachine",
    "OptionsStored",
    "SchemaMachine",
    "TransactionMachine",
    "consumer_kind",
    "copy_delays",
    "shard_of_group_fact",
    "shard_of_transaction_fact",
    "share_kind",
]

GROUP_FACTS: tuple[type[Fact], ...] = (
    ClassicGeneration,
    ConsumerGroupKept,
    ConsumerMemberKept,
    CoordinatorNoted,
    OffsetCommitted,
    OffsetPending,
)
TRANSACTION_FACTS: tuple[type[Fact], ...] = (TransactionChanged, MarkSet)

"""The broker as doors see it: topics, publishing, reading, groups and transactions of one node."""

from dataclasses import dataclass

from goqueue.broker.accounts.accounts import Accounts
from goqueue.broker.accounts.audit import Audit
from goqueue.broker.cluster_watch import ClusterWatch
from goqueue.broker.dead_letters.moves import Moves
from goqueue.broker.dead_letters.redrive import DeadLetters
from goqueue.broker.delays.recurring import RecurringSchedules
from goqueue.broker.delays.schedules import Schedules
from goqueue.broker.durable import Durable
from goqueue.broker.groups.groups import Groups
from goqueue.broker.groups.lag import Lag
from goqueue.broker.groups.members import Members
from goqueue.broker.health import Health
from goqueue.broker.metrics.metrics import Metrics
from goqueue.broker.publishing.publish import Publisher
from goqueue.broker.publishing.send import Sender
from goqueue.broker.publishing.validation import Validation
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.receive import Receiver
from goqueue.broker.queues.reliability import Reliabilities
from goqueue.broker.queues.replay import Replays
from goqueue.broker.queues.settle import Settler
from goqueue.broker.queues.whole_leases import WholeLeases
from goqueue.broker.reading.fetch import Fetcher
from goqueue.broker.schemas.schemas import Schemas
from goqueue.broker.shown_settings import ShownSetting
from goqueue.broker.tenants.tenants import Tenants
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.tracing import Tracing
from goqueue.broker.transactions.listing import TransactionList
from goqueue.broker.transactions.steps import TransactionSteps
from goqueue.broker.transactions.transactions import Transactions
from goqueue.model.compaction import Compact
from goqueue.ports.dice import Dice
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Journeys

DEFAULT_PARTITIONS = 3


@dataclass(frozen=True)
class Identity:
    """Who this node says it is."""

    node_id: int
    cluster_id: str


@dataclass(frozen=True)
class Broker:
    identity: Identity
    clock: Clock
    dice: Dice
    topics: Topics
    publisher: Publisher
    fetcher: Fetcher
    groups: Groups
    lag: Lag
    transactions: Transactions
    queues: Queues
    receiver: Receiver
    settler: Settler
    schedules: Schedules
    recurring: RecurringSchedules
    sender: Sender
    dead_letters: DeadLetters
    members: Members
    reliabilities: Reliabilities
    moves: Moves
    replays: Replays
    schemas: Schemas
    validation: Validation
    transaction_steps: TransactionSteps
    compact: Compact
    tracing: Tracing
    metrics: Metrics
    health: Health
    durable: Durable
    accounts: Accounts
    tenants: Tenants
    audit: Audit | None = None
    """Where clients have to show who they are."""
    default_partitions: int = DEFAULT_PARTITIONS
    creates_topics: bool = True
    """A topic that a client asks for and nobody made is made, if the client wants that too."""
    settings: tuple[ShownSetting, ...] = ()
    """Of this node, for those who ask."""

    @property
    def cluster(self) -> ClusterWatch:
        return self.health.cluster

    @property
    def leases(self) -> WholeLeases:
        return WholeLeases(self.queues, self.settler)

    @property
    def journeys(self) -> Journeys:
        return self.tracing.journeys

    @property
    def transaction_list(self) -> TransactionList:
        return TransactionList(self.transactions, self.transaction_steps)

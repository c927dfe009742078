"""How the parts of one node fit together: disk, ledgers, machines, broker."""

import secrets
from base64 import urlsafe_b64encode

from goqueue.broker.broker import Broker, Identity
from goqueue.broker.fetch import Fetcher
from goqueue.broker.groups import Groups
from goqueue.broker.lag import Lag
from goqueue.broker.publish import Publisher
from goqueue.broker.stored import (
    CONSUMER_GROUPS,
    GROUP_FACTS,
    TRANSACTION_FACTS,
    GroupsMachine,
    TransactionMachine,
    consumer_kind,
)
from goqueue.broker.topics import Topics
from goqueue.broker.transactions import Transactions
from goqueue.cluster.embedded_store import STORED_FACTS, Controller, EmbeddedStore, NameCluster
from goqueue.model.errors import DiskFull, LogPoisoned
from goqueue.model.topics import Topic
from goqueue.replica.replicas import Replicas
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Fact, Ledger, Machine

GROUP_LEDGERS = 4
LEDGER_OPTIONS = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024), "durability": "disk"}


class Assembly:
    """`broker` is ready when this is made. `stop` before the replicas are closed."""

    def __init__(self, replicas: Replicas, clock: Clock, node_id: int, default_partitions: int, creates_topics: bool):
        self._replicas = replicas
        self._clock = clock
        self._coordinators: list[Coordinator] = []
        controller = Controller()
        store = EmbeddedStore(controller, self._coordinator("__metadata", 0, controller, STORED_FACTS))
        topics = Topics(store, replicas, clock)
        groups = self._groups()
        topics.on_change.append(groups.topics_changed)
        transactions = self._transactions(topics, groups)
        self._load()
        self._name_cluster(controller, store)
        topics.reconcile()
        self.broker = Broker(
            identity=Identity(node_id, controller.cluster_id),
            clock=clock,
            topics=topics,
            publisher=Publisher(topics, clock, transactions.verify),
            fetcher=Fetcher(topics, clock),
            groups=groups,
            lag=Lag(groups, topics, clock),
            transactions=transactions,
            default_partitions=default_partitions,
            creates_topics=creates_topics,
        )

    def _load(self) -> None:
        # Groups first, since the topics announce themselves to them; then the topics, into which transactions write.
        metadata, *groups, transactions = self._coordinators
        for coordinator in (*groups, metadata, transactions):
            coordinator.load()

    def _name_cluster(self, controller: Controller, store: EmbeddedStore) -> None:
        """A node must not serve under a name that it could not store: clients that remember it would not come back."""
        new_id = urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
        replies: list[object] = []
        store.submit(NameCluster(new_id), replies.append)
        if not controller.cluster_id:
            raise DiskFull(f"this node is new and cannot store the id of its cluster: {replies[0]}")

    def _coordinator(self, ledger: str, partition: int, machine: Machine, facts: tuple[type[Fact], ...]) -> Coordinator:
        topic = Topic(ledger, ledger.encode().ljust(16, b"\0")[:16], partition + 1, LEDGER_OPTIONS)
        replica = self._replicas.open(topic, partition, self._clock.now_ms())
        if replica is None:
            raise LogPoisoned(f"ledger {ledger} cannot be opened: {self._replicas.failed[ledger, partition]}")
        kind = ledger.strip("_")
        coordinator = Coordinator(f"{kind}-{partition}", machine, Ledger(replica, kind, facts), self._clock)
        self._coordinators.append(coordinator)
        return coordinator

    def _groups(self) -> Groups:
        coordinators = []
        for number in range(GROUP_LEDGERS):
            machine = GroupsMachine(kinds=(consumer_kind(CONSUMER_GROUPS),))
            coordinators.append(self._coordinator("__groups", number, machine, GROUP_FACTS))
        return Groups(coordinators, self._clock)

    def _transactions(self, topics: Topics, groups: Groups) -> Transactions:
        machine = TransactionMachine()
        coordinator = self._coordinator("__transactions", 0, machine, TRANSACTION_FACTS)
        return Transactions(machine, coordinator, topics, self._clock, groups.end_transaction)

    def stop(self) -> None:
        for coordinator in self._coordinators:
            coordinator.stop()

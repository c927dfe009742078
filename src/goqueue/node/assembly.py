"""How the parts of one node fit together: disk, ledgers, machines, broker."""

import secrets
from base64 import urlsafe_b64encode

from goqueue.broker.broker import Broker, Identity
from goqueue.broker.compact import Compact
from goqueue.broker.dead_letters import DeadLetterWriter
from goqueue.broker.dedup import Deduplication
from goqueue.broker.fetch import Fetcher
from goqueue.broker.groups import Groups
from goqueue.broker.health import Health
from goqueue.broker.lag import Lag
from goqueue.broker.loop_watch import LoopWatch
from goqueue.broker.members import Members
from goqueue.broker.metrics.metrics import Metrics, MetricsOptions, Sources
from goqueue.broker.moves import Moves
from goqueue.broker.noting import Forgetting, Step
from goqueue.broker.publish import Publisher
from goqueue.broker.queues import Queues
from goqueue.broker.receive import Receiver
from goqueue.broker.redrive import DeadLetters
from goqueue.broker.reliability import Reliabilities
from goqueue.broker.replay import Replays
from goqueue.broker.schedules import Schedules
from goqueue.broker.send import Sender
from goqueue.broker.settle import Settler
from goqueue.broker.stored import (
    CONSUMER_GROUPS,
    DELAY_FACTS,
    DELIVERY_FACTS,
    GROUP_FACTS,
    TRANSACTION_FACTS,
    Delays,
    Deliveries,
    GroupsMachine,
    TransactionMachine,
    consumer_kind,
    share_kind,
)
from goqueue.broker.topics import Topics
from goqueue.broker.transaction_steps import TransactionSteps
from goqueue.broker.transactions import Ends, Transactions
from goqueue.cluster.embedded_store import STORED_FACTS, Controller, EmbeddedStore, NameCluster
from goqueue.model.errors import DiskFull, LogPoisoned
from goqueue.model.topics import INTERNAL_PREFIX, Topic
from goqueue.node.tracing import Askable, Memory, TracingOptions, build_tracing
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import Aside, at_once
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.ledger import Fact, Ledger, Machine
from goqueue.telemetry.meters import Meters

PERSISTED = Step.PERSISTED
GROUP_LEDGERS = 4
BOOT_BITS = 32
LEDGER_OPTIONS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 * 1024 * 1024),
    # One command may store much at once: all delayed records of a batch, which may have come compressed.
    "max.message.bytes": str(15 * 1024 * 1024),
    "durability": "disk",
}


class Assembly:
    """`broker` is ready when this is made. `stop` before the replicas are closed."""

    def __init__(  # noqa: PLR0913  all that a node is made of
        self,
        replicas: Replicas,
        clock: Clock,
        node_id: int,
        default_partitions: int,
        *,
        creates_topics: bool,
        compact: Compact,
        aside: Aside = at_once,
        tracing: TracingOptions = TracingOptions(),  # noqa: B008  a tuple
        metrics: MetricsOptions = MetricsOptions(),  # noqa: B008  likewise
    ) -> None:
        self._replicas = replicas
        self._clock = clock
        self._aside = aside
        self._coordinators: list[Coordinator] = []
        memory = Memory(tracing.sampling)
        self._journeys = journeys = memory.journeys
        self._meters = meters = Meters()
        self.loop_watch = LoopWatch(clock, meters.loop_lag_s)
        replicas.on_open = self._opened
        controller = Controller()
        store = EmbeddedStore(controller, self._coordinator("__metadata", 0, controller, STORED_FACTS))
        topics = Topics(store, replicas, clock)
        groups = self._groups()
        queues = Queues([self._delivery(number) for number in range(GROUP_LEDGERS)], topics, clock, journeys)
        schedules = Schedules(self._coordinator("__delays", 0, Delays(), DELAY_FACTS), topics, clock, journeys)
        forgetting = Forgetting(journeys, memory.parents, memory.moved, meters, schedules.second_places)
        told = (groups, queues, schedules, forgetting)
        topics.on_change += [each.topics_changed for each in told]
        transactions = self._transactions(topics, groups, schedules)
        schedules.new_producer = transactions.new_producer
        self._load()
        self._name_cluster(controller, store)
        topics.reconcile()
        dedup = Deduplication(topics, schedules, clock)
        dedup.start()
        publisher = Publisher(topics, clock, transactions.verify, schedules, dedup, journeys, meters)
        sender = Sender(topics, publisher, dedup, clock)
        lag, receiver = Lag(groups, queues, topics, clock), Receiver(queues, topics, clock)
        letters = DeadLetters(queues, topics, sender, clock, journeys)
        moves = Moves(queues, receiver, letters, topics, clock)
        topics.on_change += [each.topics_changed for each in (dedup, sender, moves)]
        dead_letter_writer = DeadLetterWriter(queues, topics, publisher, clock, journeys)
        identity = Identity(node_id, controller.cluster_id)
        askable = Askable(queues, receiver, schedules, lag)
        health = Health(topics, replicas, self._coordinators, self.loop_watch)
        sources = Sources(
            topics, replicas, groups, queues, schedules, transactions, publisher, journeys, meters, health, {}
        )
        traced = build_tracing(tracing, memory, topics, replicas, clock, identity, askable)
        self.broker = Broker(
            identity=identity,
            clock=clock,
            topics=topics,
            publisher=publisher,
            fetcher=Fetcher(topics, clock, journeys, meters),
            groups=groups,
            lag=lag,
            transactions=transactions,
            queues=queues,
            receiver=receiver,
            settler=Settler(queues, secrets.randbits(BOOT_BITS), controller.secret),
            schedules=schedules,
            sender=sender,
            dead_letters=letters,
            moves=moves,
            members=Members(groups, queues, topics, clock),
            reliabilities=Reliabilities(queues, dead_letter_writer),
            replays=Replays(queues, groups, topics, clock),
            transaction_steps=TransactionSteps(transactions, topics, publisher, sender, clock),
            compact=compact,
            journeys=journeys,
            tracing=traced,
            metrics=Metrics(sources, traced.identities, node_id, metrics),
            health=health,
            default_partitions=default_partitions,
            creates_topics=creates_topics,
        )
        dead_letter_writer.write_pending()

    def _opened(self, replica: Replica) -> None:
        topic, partition = replica.place
        if topic.startswith(INTERNAL_PREFIX):
            return
        note, now_ms = self._journeys.note, self._clock.now_ms

        def persisted(first: int, last: int) -> None:
            note(now_ms(), PERSISTED, topic, partition, first, last)

        replica.on_persisted = persisted

    def _load(self) -> None:
        # Groups first, since the topics announce themselves to them; then the topics, into which the others write.
        names = ("groups", "deliveries", "metadata", "delays", "transactions")
        for name in names:
            for coordinator in self._coordinators:
                if coordinator.name.rpartition("-")[0] == name:
                    coordinator.load()

    def _name_cluster(self, controller: Controller, store: EmbeddedStore) -> None:
        """A node must not serve under a name that it could not store: clients that remember it would not come back."""
        new_id = urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
        replies: list[object] = []
        store.submit(NameCluster(new_id, secrets.token_bytes(32)), replies.append)
        if not controller.secret:
            raise DiskFull(f"this node is new and cannot store the id of its cluster: {replies[0]}")

    def _coordinator(self, ledger: str, partition: int, machine: Machine, facts: tuple[type[Fact], ...]) -> Coordinator:
        topic = Topic(ledger, ledger.encode().ljust(16, b"\0")[:16], partition + 1, LEDGER_OPTIONS)
        replica = self._replicas.open(topic, partition, self._clock.now_ms())
        if replica is None:
            raise LogPoisoned(f"ledger {ledger} cannot be opened: {self._replicas.failed[ledger, partition]}")
        kind = ledger.strip("_")
        coordinator = Coordinator(
            f"{kind}-{partition}", machine, Ledger(replica, kind, facts, self._aside), self._clock
        )
        self._coordinators.append(coordinator)
        return coordinator

    def _groups(self) -> Groups:
        coordinators = []
        for number in range(GROUP_LEDGERS):
            machine = GroupsMachine(kinds=(consumer_kind(CONSUMER_GROUPS), share_kind()))
            coordinators.append(self._coordinator("__groups", number, machine, GROUP_FACTS))
        return Groups(coordinators, self._clock, self._meters)

    def _delivery(self, number: int) -> Coordinator:
        return self._coordinator("__deliveries", number, Deliveries(), DELIVERY_FACTS)

    def _transactions(self, topics: Topics, groups: Groups, schedules: Schedules) -> Transactions:
        machine = TransactionMachine()
        coordinator = self._coordinator("__transactions", 0, machine, TRANSACTION_FACTS)
        ends = Ends(groups.end_transaction, schedules.end_transaction)
        return Transactions(machine, coordinator, topics, self._clock, ends)

    def stop(self) -> None:
        self.loop_watch.stop()
        self.broker.tracing.journal.stop()
        for coordinator in self._coordinators:
            coordinator.stop()

"""What a node remembers: its ledgers, the machines on them, and the services that are nothing but these."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TypeVar

from goqueue.broker.delays.recurring import RecurringSchedules
from goqueue.broker.delays.schedules import Companions, Schedules
from goqueue.broker.groups.groups import Groups, commands
from goqueue.broker.queues.companions import Opening
from goqueue.broker.queues.queues import Queues
from goqueue.broker.schemas.schemas import Schemas
from goqueue.broker.stored import (
    CONSUMER_GROUPS,
    DELAY_FACTS,
    DELIVERY_FACTS,
    GROUP_FACTS,
    SCHEMA_FACTS,
    TRANSACTION_FACTS,
    Delays,
    Deliveries,
    GroupsMachine,
    SchemaMachine,
    TransactionMachine,
    consumer_kind,
    share_kind,
)
from goqueue.broker.topics.topics import Topics
from goqueue.broker.tracing.noting import Journeys
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.broker.transactions.transactions import Ends, Transactions
from goqueue.cluster.embedded_store import STORED_FACTS, Controller, EmbeddedStore, NameCluster, PartitionLimits
from goqueue.cluster.metadata import Metadata
from goqueue.model.errors import DiskFull
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.placements import NodeInfo
from goqueue.model.topics import Topic
from goqueue.node.metadata_check import METADATA, refuse_damaged_metadata
from goqueue.node.upgrade import Upgrade
from goqueue.node.upgrade_deliveries import DeliveriesUpgrade
from goqueue.ports.dice import Dice, random_id
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import Aside
from goqueue.runtime.clock import Clock, SteadyClock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.coordinators import AllCoordinators, Coordinators
from goqueue.runtime.ledger import Fact, Ledger, Machine
from goqueue.storage.starts import count_start
from goqueue.telemetry.meters import Meters

DELAYS = "delays"
DELIVERIES = "deliveries"
SECRET_BYTES = 32
LEASES_PER_MACHINE = 2**40
M = TypeVar("M", bound=Machine)


class State:
    """Services are made first and loaded last, since a machine tells others what it finds in its ledger."""

    def __init__(  # noqa: PLR0913  all that remembering rests on
        self,
        replicas: Replicas,
        clock: Clock,
        dice: Dice,
        aside: Aside,
        journeys: Journeys,
        meters: Meters,
        limits: PartitionLimits,
        group_options: commands.GroupOptions,
        node_id: int,
    ) -> None:
        self._replicas = replicas
        self._clock = clock
        self._dice = dice
        self._aside = aside
        self._meters = meters
        refuse_damaged_metadata(replicas.directory.disk)
        replicas.directory.note_formats()
        self.coordinators = AllCoordinators()
        self._made = count()
        """Machines of deliveries."""
        self._is_new = True
        """Nothing was ever stored here: ledgers are made, and none is missed."""
        me = NodeInfo(node_id, count_start(replicas.directory))
        replicas.epoch = me.incarnation
        revisions = count(1)
        controllers = self._open(METADATA, lambda: Controller(limits, revisions), STORED_FACTS)
        self._store = EmbeddedStore(controllers.of(0), me)
        make_groups = partial(GroupsMachine, group_options, kinds=(consumer_kind(CONSUMER_GROUPS), share_kind()))
        Upgrade(replicas, self._metadata, make_groups, clock.now_ms()).run()
        DeliveriesUpgrade(replicas, self._metadata, clock.now_ms()).run()
        self.topics = Topics(Metadata(self._store), replicas, clock, dice)
        self._ids = ProducerIds(self._store.submit, lambda: self._store.producer_ids_end)
        self.groups = self._groups(make_groups)
        self.queues = self._queues(journeys)
        self.schedules = self._schedules(journeys)
        self.recurring = RecurringSchedules(self.schedules, self._store, self.topics, clock)
        self.transactions = self._transactions()
        self.schemas = Schemas(self._open("@schemas", SchemaMachine, SCHEMA_FACTS).of(0))

    @property
    def cluster_id(self) -> str:
        return self._store.cluster_id

    @property
    def secret(self) -> bytes:
        """Known to this cluster only; receipts are signed with it."""
        return self._store.secret

    def load(self) -> None:
        # Groups first, since the topics announce themselves to them; then the topics, into which the others write.
        # Deliveries and delays are opened by their topics.
        for kind in ("groups", "metadata", "transactions", "schemas"):
            for coordinator in self.coordinators.of_kind(kind):
                coordinator.load_now()
        self._name_cluster()
        self.topics.reconcile()
        self.topics.work_aside(self._aside)

    def stop(self) -> None:
        for coordinator in self.coordinators:
            coordinator.stop()

    def _name_cluster(self) -> None:
        """A node must not serve under a name that it could not store: clients that remember it would not come back."""
        new_id = urlsafe_b64encode(random_id(self._dice)).rstrip(b"=").decode()
        replies: list[object] = []
        self._store.submit(NameCluster(new_id, self._dice.randbytes(SECRET_BYTES)), replies.append)
        if not self.secret:
            raise DiskFull(f"this node is new and cannot store the id of its cluster: {replies[0]}")

    def _open(
        self,
        ledger: str,
        make_machine: Callable[[], M],
        facts: tuple[type[Fact], ...],
        shards: int = 1,
        *,
        is_steady: bool = False,
    ) -> Coordinators[int, M]:
        """`is_steady`: its deadlines are the ends of durations, which a step of the wall clock must not change."""
        kind = ledger.removeprefix(LEDGER_PREFIX)
        opened = self.coordinators.add(Coordinators[int, M](kind))
        for number in range(shards):
            replica = self._replicas.open_ledger(ledger, number, LEDGER_OPTIONS, self._clock.now_ms())
            if ledger == METADATA:
                self._is_new, self._metadata = replica.end_offset == 0, replica
            elif replica.log.is_new and not self._is_new:
                self._replicas.note_made_anew(replica)
            stored = Ledger(replica, kind, facts, self._aside)
            clock = SteadyClock(self._clock, stored.newest_ms) if is_steady else self._clock
            opened.add(number, Coordinator(f"{kind}-{number}", make_machine, stored, clock))
        return opened

    def _sharded(
        self, kind: str, make_machine: Callable[[Replica], M], facts: tuple[type[Fact], ...]
    ) -> Coordinators[int, M]:
        """Those that there are, and others when they are first needed. Their deadlines are the ends of durations, which
        a step of the wall clock must not change."""

        def make(number: int) -> Coordinator[M]:
            now_ms = self._clock.now_ms()
            replica = self._replicas.open_ledger(f"@{kind}", number, LEDGER_OPTIONS, now_ms, is_lazy=True)
            ledger = Ledger(replica, kind, facts, self._aside)
            clock = SteadyClock(self._clock, ledger.newest_ms)
            return Coordinator(f"{kind}-{number}", lambda: make_machine(replica), ledger, clock)

        opened = self.coordinators.add(Coordinators[int, M](kind, make))
        for number in self._replicas.directory.partitions_of(f"@{kind}"):
            opened.add(number, make(number))
        return opened

    def _queues(self, journeys: Journeys) -> Queues:
        def on_disk() -> list[tuple[bytes, int]]:
            names = self._replicas.companions.on_disk()
            return [(name.topic_id, name.partition) for name in names if name.kind == DELIVERIES]

        def options_changed(topic: Topic, partition: int) -> None:
            self._delivery_replica(topic, partition)

        opening = Opening(on_disk, self._open_deliveries, options_changed)
        queues = Queues(opening, self._store, self.topics, self._clock, journeys, self._meters)
        self.coordinators.add(queues.companions.coordinators)
        return queues

    def _open_deliveries(self, topic: Topic, partition: int) -> Coordinator[Deliveries]:
        replica = self._delivery_replica(topic, partition)
        ledger = Ledger(replica, DELIVERIES, DELIVERY_FACTS, self._aside)
        return Coordinator(f"{DELIVERIES}-{topic.name}-{partition}", self._make_deliveries, ledger, self._clock)

    def _delivery_replica(self, topic: Topic, partition: int) -> Replica:
        """It has the durability of its topic."""
        durability = topic.options(self._replicas.defaults).durability
        return self._replicas.companion(DELIVERIES, topic.id, partition, durability, self._clock.now_ms())

    def _make_deliveries(self) -> Deliveries:
        """Leases do not outlive their machine: what one gave out must not be taken for a lease of the next, nor of a
        topic that was made again under the same name."""
        return Deliveries(1 + next(self._made) * LEASES_PER_MACHINE)

    def _schedules(self, journeys: Journeys) -> Schedules:
        def on_disk() -> list[tuple[bytes, int]]:
            names = self._replicas.companions.on_disk()
            return [(name.topic_id, name.partition) for name in names if name.kind == DELAYS]

        def is_home(name: str, key: tuple[bytes, int]) -> bool:
            return self._store.schedules.get(name) == key

        companions = Companions(on_disk, self._open_delays)
        made = Schedules(companions, self.topics, self._clock, journeys, self._ids, is_home)
        self.coordinators.add(made.coordinators)
        return made

    def _open_delays(self, topic: Topic, partition: int) -> Coordinator[Delays]:
        # Whatever that of its partition is: a job that were published and then lost would be published twice.
        replica = self._replicas.companion(DELAYS, topic.id, partition, "disk", self._clock.now_ms())
        ledger = Ledger(replica, DELAYS, DELAY_FACTS, self._aside)
        make = partial(Delays, topic.name, topic.id, partition)
        return Coordinator(f"{DELAYS}-{topic.name}-{partition}", make, ledger, self._clock)

    def _groups(self, make_groups: Callable[[], GroupsMachine]) -> Groups:
        coordinators = self._sharded("groups", lambda _replica: make_groups(), GROUP_FACTS)
        return Groups(coordinators, self._clock, self._dice, self._meters)

    def _transactions(self) -> Transactions:
        def make(replica: Replica) -> TransactionMachine:
            return TransactionMachine(coordinator_epoch=replica.leader_epoch)

        coordinators = self._sharded("transactions", make, TRANSACTION_FACTS)
        ends = Ends(self.groups.end_transaction, self.schedules.end_transaction)
        return Transactions(coordinators, self.topics, self._clock, ends, self._ids, self._meters)

"""What a node remembers: its ledgers, the machines on them, and the services that are nothing but these."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, TypeVar

from goqueue.broker.accounts.accounts import Accounts
from goqueue.broker.delays.recurring import RecurringSchedules
from goqueue.broker.delays.schedules import Companions, Schedules
from goqueue.broker.groups.groups import Groups
from goqueue.broker.groups.kinds_elsewhere import SpreadKinds
from goqueue.broker.queues.companions import Opening
from goqueue.broker.queues.queues import Queues
from goqueue.broker.remote.asking import Asking, RemoteCoordinator, Where
from goqueue.broker.remote.messages import API_KEY as SUBMIT
from goqueue.broker.remote.messages import SCHEMAS, Submit
from goqueue.broker.remote.serving import Serving
from goqueue.broker.schemas.schemas import Schemas
from goqueue.broker.schemas.spread import SpreadSchemas
from goqueue.broker.tenants.group_counts import GroupCounts
from goqueue.broker.tenants.owners import may_still_write
from goqueue.broker.tenants.spread import SpreadTallies
from goqueue.broker.topics.topics import Topics
from goqueue.broker.transactions.markers import Ends
from goqueue.broker.transactions.producer_ids import ProducerIds
from goqueue.broker.transactions.spread import SpreadTransactions, check_led
from goqueue.broker.transactions.transactions import Transactions
from goqueue.cluster.controller import ClusterController
from goqueue.cluster.embedded_store import EmbeddedStore
from goqueue.cluster.metadata import Metadata
from goqueue.machines.cluster.steward import is_steward
from goqueue.machines.controller import Controller
from goqueue.machines.controller_commands import NameCluster
from goqueue.machines.controller_facts import STORED_FACTS
from goqueue.machines.delays.commands import FoundRecurring
from goqueue.machines.delays.facts import DELAY_FACTS
from goqueue.machines.delays.machine import Delays
from goqueue.machines.deliveries.facts import DELIVERY_FACTS
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.groups import commands
from goqueue.machines.groups.facts import GROUP_FACTS
from goqueue.machines.groups.machine import Groups as GroupsMachine
from goqueue.machines.machine import Command, Fact, Machine
from goqueue.machines.schemas.facts import SCHEMA_FACTS
from goqueue.machines.schemas.machine import SchemaMachine
from goqueue.machines.transactions.facts import TRANSACTION_FACTS
from goqueue.machines.transactions.machine import TransactionMachine
from goqueue.model.errors import DiskFull
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.placements import NodeInfo
from goqueue.model.topics import Topic
from goqueue.node.metadata_check import METADATA, refuse_damaged_metadata
from goqueue.node.peering import Peering
from goqueue.node.roles import DELAYS, DELIVERIES, Key, Roles
from goqueue.node.tenancy import Services, build_tenants, machines_of_groups
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
from goqueue.runtime.freeing import Freeing
from goqueue.runtime.keeping import Keeping, Kept
from goqueue.runtime.ledger import Ledger
from goqueue.runtime.slices import Slices
from goqueue.storage.known_shards import missing_shards, note_shards
from goqueue.storage.starts import count_start
from goqueue.telemetry.journeys import Journeys
from goqueue.telemetry.meters import Meters

SHARDED = (f"{LEDGER_PREFIX}groups", f"{LEDGER_PREFIX}transactions")
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
        peering: Peering | None = None,
    ) -> None:
        """`peering`: None, if the node is its own cluster."""
        self._replicas = replicas
        self._clock = clock
        self._dice = dice
        self._aside = aside
        self._freeing, self._slices = Freeing(clock.call_soon), Slices(clock.call_soon)
        self._meters = meters
        self._cluster = cluster = None if peering is None else peering.controller
        self.coordinators = AllCoordinators()
        self._machines_of_deliveries = count()
        self._is_new = True
        """Nothing was ever stored here: ledgers are made, and none is missed."""
        self._counts: GroupCounts
        members_max = lambda group_id: self._counts.members_max(group_id)  # noqa: E731, PLW0108  made below
        make_groups = machines_of_groups(group_options, members_max)
        self._store = cluster if cluster is not None else self._embedded(node_id, limits, make_groups)
        replicas.directory.note_formats()
        metadata = Metadata(self._store) if cluster is None else cluster.metadata
        self.topics = Topics(metadata, replicas, clock, dice)
        self.asking: Asking | None = None
        self.serving = Serving(lambda: self.topics.image.revision)
        self.roles: Roles | None = None
        self._shards: dict[str, Keeping[int, Any]] = {}
        self._companions: dict[str, Keeping[Key, Any]] = {}
        if peering is not None:
            peering.door.handlers[SUBMIT] = self.serving.handle
            self.asking = Asking(node_id, peering.peers, lambda: self.topics.image, clock)
            self.asking.serve = self.serving.answer
            self.roles = Roles(replicas, clock, self._shards, self._companions, self.topics.newest)
        self.accounts = Accounts(self._store, clock, dice)
        self._ids = ProducerIds(self._store.submit, lambda: self._store.producer_ids_end)
        self.groups = self._groups(make_groups)
        self.queues = self._queues(journeys)
        self.schedules = self._schedules(journeys)
        self.recurring = RecurringSchedules(self.schedules, self._store, self.topics, clock)
        self.transactions = self._transactions()
        self.schemas = self._schemas()
        is_on_duty = partial(self._is_steward, node_id)
        services = Services(self.topics, self.groups, self.queues, self.schedules)
        self.tenants, self._counts = build_tenants(self._store, services, self.coordinators, clock, is_on_duty)
        if self.roles is not None and self.asking is not None and cluster is not None:
            self.roles.serve_partitions(self.queues, self.schedules, self.transactions)
            reread = cluster.reread
            SpreadTransactions(self.asking, self.serving, self.transactions, self.groups, self.topics, reread)
            SpreadKinds(self.asking, self.serving, self.groups, self.queues)
            SpreadTallies(self.asking, self.serving, self.tenants, self._counts, clock)
            self.serving.commands[SCHEMAS] = self._ask_schemas

    def _embedded(
        self, node_id: int, limits: PartitionLimits, make_groups: Callable[[], GroupsMachine]
    ) -> EmbeddedStore:
        replicas, now_ms = self._replicas, self._clock.now_ms()
        refuse_damaged_metadata(replicas.directory.disk)
        replicas.directory.note_formats()
        me = NodeInfo(node_id, count_start(replicas.directory))
        replicas.epoch = me.incarnation
        revisions = count(1)
        controllers = self._open(METADATA, lambda: Controller(limits, revisions), STORED_FACTS)
        store = EmbeddedStore(controllers.here(0), me)
        Upgrade(replicas, self._metadata, make_groups, now_ms).run()
        DeliveriesUpgrade(replicas, self._metadata, now_ms).run()
        return store

    def _is_steward(self, node_id: int) -> bool:
        return is_steward(self.topics.image.nodes, node_id)

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
        self.accounts.on_change.append(self.recurring.rights_changed)
        if self._cluster is not None:
            self._load_cluster(self._cluster)
            return
        for kind in ("groups", "metadata", "transactions", "schemas"):
            for coordinator in self.coordinators.of_kind(kind):
                coordinator.load_now()
        self._name_cluster()
        note_shards(self._replicas.directory, SHARDED)
        self.topics.reconcile()
        self.topics.work_aside(self._aside)
        self.tenants.start()

    def _load_cluster(self, cluster: ClusterController) -> None:
        """Ledgers are topics of the cluster: each is loaded, or followed, when it is opened."""
        assert self.roles is not None
        assert self.asking is not None
        asking = self.asking
        self.topics.on_change += [self.roles.topics_changed, lambda change: asking.image_changed()]
        cluster.on_change.append(self.recurring.places_changed)
        cluster.on_group_changed = self.queues.on_options_changed
        self.topics.load_aside(self._aside, cluster.load)
        self.tenants.start()

    def stop(self) -> None:
        self.tenants.stop()
        if self.roles is not None:
            self.roles.stop()
        for coordinator in self.coordinators:
            coordinator.stop()
        if self._cluster is None:
            note_shards(self._replicas.directory, SHARDED)

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
            opened.add(number, Coordinator(f"{kind}-{number}", make_machine, stored, clock, self._freeing))
        return opened

    def _sharded(
        self, kind: str, make_machine: Callable[[Replica], M], facts: tuple[type[Fact], ...]
    ) -> Coordinators[int, M]:
        """Those that there are, and others when they are first needed. Their deadlines are the ends of durations, which
        a step of the wall clock must not change. In a cluster those that this node leads."""
        if self.roles is not None:
            kept = Kept[int, M](kind, lambda _number, replica: make_machine(replica), facts, is_steady=True)
            return self._spread(kept)

        def make(number: int, *, is_missed: bool = False) -> Coordinator[M]:
            now_ms = self._clock.now_ms()
            replica = self._replicas.open_ledger(name, number, LEDGER_OPTIONS, now_ms, is_lazy=not is_missed)
            if is_missed:
                self._replicas.note_made_anew(replica)
            ledger = Ledger(replica, kind, facts, self._aside)
            clock = SteadyClock(self._clock, ledger.newest_ms)
            return Coordinator(f"{kind}-{number}", lambda: make_machine(replica), ledger, clock, self._freeing)

        name, directory = f"{LEDGER_PREFIX}{kind}", self._replicas.directory
        opened = self.coordinators.add(Coordinators[int, M](kind, make))
        missing = missing_shards(directory, name)
        for number in directory.partitions_of(name):
            opened.add(number, make(number))
        for number in missing:
            opened.add(number, make(number, is_missed=True))
        return opened

    def _spread(self, kept: Kept[int, M]) -> Coordinators[int, M]:
        """Shards of a ledger whose leaders are their coordinators."""
        assert self.roles is not None
        assert self.asking is not None
        asking, kind = self.asking, kept.kind
        opened = self.coordinators.add(Coordinators[int, M](kind))
        opened.elsewhere = lambda number: RemoteCoordinator(asking, kind, Where(f"{LEDGER_PREFIX}{kind}", number))
        self._shards[kind] = Keeping(kept, self._clock, self._aside, self._freeing, self._slices)
        self.roles.serve_shards(kind, opened)
        return opened

    def _queues(self, journeys: Journeys) -> Queues:
        def on_disk() -> list[tuple[bytes, int]]:
            names = self._replicas.companions.on_disk()
            return [(name.topic_id, name.partition) for name in names if name.kind == DELIVERIES]

        def options_changed(topic: Topic, partition: int) -> None:
            self._delivery_replica(topic, partition)

        opening = Opening(on_disk, self._open_deliveries, options_changed)
        if self._cluster is not None:
            kept = Kept[Key, Deliveries](
                DELIVERIES, lambda key, replica: self._make_deliveries(), DELIVERY_FACTS, is_steady=False
            )
            keeping = self._companions[DELIVERIES] = Keeping(
                kept, self._clock, self._aside, self._freeing, self._slices
            )

            def open_led(topic: Topic, partition: int) -> Coordinator[Deliveries]:
                replica = self._delivery_replica(topic, partition)
                return keeping.open((topic.id, partition), replica, f"{DELIVERIES}-{topic.name}-{partition}")

            opening = Opening(lambda: (), open_led, options_changed, keeping.load, options_changed)
        queues = Queues(opening, self._store, self.topics, self._clock, journeys, self._meters)
        self.coordinators.add(queues.companions.coordinators)
        return queues

    def _open_deliveries(self, topic: Topic, partition: int) -> Coordinator[Deliveries]:
        replica = self._delivery_replica(topic, partition)
        ledger = Ledger(replica, DELIVERIES, DELIVERY_FACTS, self._aside)
        name = f"{DELIVERIES}-{topic.name}-{partition}"
        return Coordinator(name, self._make_deliveries, ledger, self._clock, self._freeing)

    def _delivery_replica(self, topic: Topic, partition: int) -> Replica:
        """It has the durability of its topic."""
        durability = topic.options(self._replicas.defaults).durability
        return self._replicas.companion(DELIVERIES, topic.id, partition, durability, self._clock.now_ms())

    def _make_deliveries(self) -> Deliveries:
        """Leases do not outlive their machine: what one gave out must not be taken for a lease of the next, nor of a
        topic that was made again under the same name."""
        return Deliveries(1 + next(self._machines_of_deliveries) * LEASES_PER_MACHINE)

    def _may_run(self, found: FoundRecurring) -> bool:
        return may_still_write(self.accounts.image, found.owner, found.owner_host, found.topic)

    def _schedules(self, journeys: Journeys) -> Schedules:
        def on_disk() -> list[tuple[bytes, int]]:
            names = self._replicas.companions.on_disk()
            return [(name.topic_id, name.partition) for name in names if name.kind == DELAYS]

        def is_home(name: str, key: tuple[bytes, int]) -> bool:
            return self._store.schedules.get(name) == key

        companions = Companions(on_disk, self._open_delays)
        if self._cluster is not None:
            companions = self._spread_delays()
        about = self.topics, self._clock, journeys, self._ids, is_home
        made = Schedules(companions, *about, may_run=self._may_run, is_spread=self._cluster is not None)
        self.coordinators.add(made.coordinators)
        return made

    def _spread_delays(self) -> Companions:
        def make_machine(key: Key, _replica: Replica) -> Delays:
            topic = self.topics.newest(key[0])
            return Delays("" if topic is None else topic.name, *key)

        keeping = Keeping(
            Kept[Key, Delays](DELAYS, make_machine, DELAY_FACTS, is_steady=False),
            self._clock,
            self._aside,
            self._freeing,
            self._slices,
        )
        self._companions[DELAYS] = keeping

        def open_led(topic: Topic, partition: int) -> Coordinator[Delays]:
            replica = self._delay_replica(topic, partition)
            return keeping.open((topic.id, partition), replica, f"{DELAYS}-{topic.name}-{partition}")

        def make(topic: Topic, partition: int) -> None:
            self._delay_replica(topic, partition)

        return Companions(lambda: (), open_led, keeping.load, make)

    def _delay_replica(self, topic: Topic, partition: int) -> Replica:
        # Whatever that of its partition is: a job that were published and then lost would be published twice.
        return self._replicas.companion(DELAYS, topic.id, partition, "disk", self._clock.now_ms())

    def _open_delays(self, topic: Topic, partition: int) -> Coordinator[Delays]:
        replica = self._delay_replica(topic, partition)
        ledger = Ledger(replica, DELAYS, DELAY_FACTS, self._aside)
        make = partial(Delays, topic.name, topic.id, partition)
        return Coordinator(f"{DELAYS}-{topic.name}-{partition}", make, ledger, self._clock, self._freeing)

    def _groups(self, make_groups: Callable[[], GroupsMachine]) -> Groups:
        coordinators = self._sharded("groups", lambda _replica: make_groups(), GROUP_FACTS)
        return Groups(coordinators, self._clock, self._dice, self._meters)

    def _transactions(self) -> Transactions:
        def make(replica: Replica) -> TransactionMachine:
            return TransactionMachine(coordinator_epoch=replica.leader_epoch)

        coordinators = self._sharded("transactions", make, TRANSACTION_FACTS)
        ends = Ends(self.groups.end_transaction, self.schedules.end_transaction)
        return Transactions(coordinators, self.topics, self._clock, ends, self._ids, self._meters)

    def _ask_schemas(self, request: Submit, command: Command[Any], on_reply: Callable[[Any], None]) -> None:
        coordinators = self.coordinators.of_kind(SCHEMAS)
        check_led(coordinators, request.number)
        coordinators.here(request.number).submit(command, on_reply)

    def _schemas(self) -> Schemas:
        make = partial(SchemaMachine, lambda: self._store.access.tenants)
        if self.roles is None:
            return Schemas(self._open("@schemas", make, SCHEMA_FACTS).here(0))
        kept = Kept[int, SchemaMachine]("schemas", lambda _number, _replica: make(), SCHEMA_FACTS, False)
        coordinators = self._spread(kept)
        standbys = self._shards["schemas"].standbys
        return Schemas(SpreadSchemas(coordinators, lambda: standbys.get(0)))

"""How the parts of one node fit together: disk, ledgers, machines, broker."""

from goqueue.broker.broker import Broker, Identity
from goqueue.broker.cluster_watch import ClusterWatch
from goqueue.broker.dead_letters.identities import LetterProducers
from goqueue.broker.dead_letters.moves import Moves
from goqueue.broker.dead_letters.redrive import DeadLetters
from goqueue.broker.dead_letters.way_back import WayBack
from goqueue.broker.dead_letters.writing import DeadLetterWriter
from goqueue.broker.durable import Durable
from goqueue.broker.groups.lag import Lag
from goqueue.broker.groups.members import Members
from goqueue.broker.health import Health
from goqueue.broker.loop_watch import LoopWatch
from goqueue.broker.metrics.metrics import Metrics
from goqueue.broker.metrics.sources import MetricsOptions, Sources
from goqueue.broker.publishing.dedup import Deduplication
from goqueue.broker.publishing.publish import Publisher
from goqueue.broker.publishing.send import Sender
from goqueue.broker.publishing.validation import Validation
from goqueue.broker.queues.receive import Receiver
from goqueue.broker.queues.reliability import Reliabilities
from goqueue.broker.queues.replay import Replays
from goqueue.broker.queues.settle import Settler
from goqueue.broker.reading.fetch import Fetcher
from goqueue.broker.remote.appends import RemoteAppends
from goqueue.broker.remote.ends import RemoteEnds
from goqueue.broker.tracing.noting import Forgetting
from goqueue.broker.tracing.tracing import Tracing
from goqueue.broker.transactions.steps import TransactionSteps
from goqueue.machines.groups import commands
from goqueue.model.compaction import Compact
from goqueue.model.partition_limits import PartitionLimits
from goqueue.node.peering import Peering
from goqueue.node.state import State
from goqueue.node.tracing import Askable, Memory, TracingOptions, build_tracing
from goqueue.ports.dice import Dice
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import Aside, at_once
from goqueue.runtime.clock import Clock
from goqueue.telemetry.journeys import Step
from goqueue.telemetry.meters import Meters

PERSISTED = Step.PERSISTED


class Assembly:
    """`broker` is ready when this is made. `stop` before the replicas are closed."""

    def __init__(  # noqa: PLR0913  all that a node is made of
        self,
        replicas: Replicas,
        clock: Clock,
        dice: Dice,
        node_id: int,
        partitions: PartitionLimits,
        *,
        creates_topics: bool,
        compact: Compact,
        aside: Aside = at_once,
        tracing: TracingOptions = TracingOptions(),  # noqa: B008  a tuple
        metrics: MetricsOptions = MetricsOptions(),  # noqa: B008  likewise
        group_options: commands.GroupOptions = commands.GroupOptions(),  # noqa: B008  likewise
        cluster: Peering | None = None,
    ) -> None:
        self._clock, memory, self._cluster_watch = clock, Memory(tracing.sampling), ClusterWatch(clock, node_id)
        self._journeys, self._meters, replicas.on_open = memory.journeys, Meters(), self._opened
        made = replicas, clock, dice, aside, self._journeys, self._meters, partitions, group_options, node_id
        self._state = state = self._load(State(*made, cluster), memory)
        topics, groups, queues, schedules = state.topics, state.groups, state.queues, state.schedules
        (publisher, sender, validation), lag = self._publishing(state), self._lag()
        (letters, letter_writer), identity = self._dead_letters(publisher, sender), Identity(node_id, state.cluster_id)
        receiver, (health, sources) = Receiver(queues, topics, clock, self._meters), self._watched(replicas, publisher)
        traced = self._traced(tracing, memory, replicas, identity, Askable(queues, receiver, schedules, lag))
        self.broker = Broker(
            identity=identity,
            clock=clock,
            dice=dice,
            topics=topics,
            publisher=publisher,
            fetcher=Fetcher(topics, clock, self._journeys, self._meters, self._cluster_watch),
            groups=groups,
            lag=lag,
            transactions=state.transactions,
            queues=queues,
            receiver=receiver,
            settler=Settler(queues, state.secret),
            schedules=schedules,
            recurring=state.recurring,
            sender=sender,
            dead_letters=letters,
            moves=self._moves(receiver, letters),
            members=Members(groups, queues, topics, clock),
            reliabilities=Reliabilities(queues, letter_writer),
            replays=Replays(queues, groups, topics, clock),
            schemas=state.schemas,
            validation=validation,
            transaction_steps=TransactionSteps(state.transactions, topics, publisher, sender, clock, state.tenants.all),
            compact=compact,
            tracing=traced,
            metrics=Metrics(sources, traced.identities, node_id, metrics),
            health=health,
            durable=Durable(state.coordinators),
            accounts=state.accounts,
            tenants=state.tenants,
            default_partitions=partitions.default,
            creates_topics=creates_topics,
        )
        letter_writer.write_pending()

    @property
    def secret(self) -> bytes:
        """Of the cluster."""
        return self._state.secret

    def _lag(self) -> Lag:
        state = self._state
        made = Lag(state.groups, state.queues, state.topics, self._clock)
        if state.asking is not None:
            made.ends = RemoteEnds(state.asking, state.serving, state.topics)
        return made

    def _traced(
        self, options: TracingOptions, memory: Memory, replicas: Replicas, identity: Identity, asked: Askable
    ) -> Tracing:
        return build_tracing(options, memory, self._state.topics, replicas, self._clock, identity, asked)

    def _moves(self, receiver: Receiver, letters: DeadLetters) -> Moves:
        made = Moves(self._state.queues, receiver, letters, self._state.topics, self._clock)
        self._state.topics.on_change.append(made.topics_changed)
        return made

    def _load(self, state: State, memory: Memory) -> State:
        state.groups.is_queue, state.queues.is_stream = state.queues.is_queue, state.groups.is_stream
        forgetting = Forgetting(
            self._journeys, memory.parents, memory.moved, self._meters, state.schedules.second_places
        )
        told = (state.groups, state.queues, state.schedules, forgetting)
        state.topics.on_change += [*(each.topics_changed for each in told), self._cluster_watch.changed]
        if state.roles is not None:
            self._cluster_watch.standbys = state.roles.standbys
        state.load()
        return state

    def _dead_letters(self, publisher: Publisher, sender: Sender) -> tuple[DeadLetters, DeadLetterWriter]:
        queues, topics, clock, journeys = self._state.queues, self._state.topics, self._clock, self._journeys
        letters = DeadLetters(queues, topics, sender, clock, journeys)
        writer = DeadLetterWriter(queues, topics, publisher, clock, journeys)
        writer.appends = appends = self._appends
        if appends is not None:
            ids = self._state.transactions.ids
            writer.producers = LetterProducers(ids)
            letters.way_back = lambda: WayBack(sender, appends, ids, topics, clock).send
        return letters, writer

    def _watched(self, replicas: Replicas, publisher: Publisher) -> tuple[Health, Sources]:
        state = self._state
        self.loop_watch = LoopWatch(self._clock, self._meters.loop_lag_s)
        health = Health(state.topics, replicas, state.coordinators, self.loop_watch, self._cluster_watch)
        return health, Sources(
            state.topics,
            replicas,
            state.groups,
            state.queues,
            state.schedules,
            state.transactions,
            state.schemas,
            publisher,
            self._journeys,
            self._meters,
            health,
            {},
            state.tenants.all,
        )

    def _publishing(self, state: State) -> tuple[Publisher, Sender, Validation]:
        dedup = Deduplication(state.topics, state.schedules, self._clock, is_spread=state.roles is not None)
        dedup.start()
        if state.roles is not None:
            state.roles.on_host.append(dedup.partition_changed)
        verify = state.transactions.verify
        state.topics.on_change.append(dedup.topics_changed)
        publisher = Publisher(state.topics, self._clock, verify, state.schedules, dedup, self._journeys, self._meters)
        publisher.rooms = state.tenants.rooms.of
        validation = Validation(state.schemas, state.topics, publisher, self._clock, self._journeys, self._meters)
        state.recurring.check_record = validation.check_one
        self._appends: RemoteAppends | None = None
        if state.asking is not None:
            self._appends = RemoteAppends(state.asking, state.serving, state.topics, publisher)
        validation.appends = self._appends
        sender = Sender(state.topics, publisher, dedup, self._clock)
        state.topics.on_change.append(sender.topics_changed)
        return publisher, sender, validation

    def _opened(self, replica: Replica) -> None:
        topic, partition = replica.place
        note, now_ms = self._journeys.note, self._clock.now_ms

        def persisted(first: int, last: int, at_ms: int | None) -> None:
            note(now_ms() if at_ms is None else at_ms, PERSISTED, topic, partition, first, last)

        replica.persisted.on_persisted = persisted

    def stop(self) -> None:
        self.loop_watch.stop()
        self.broker.publisher.turns.stop()
        self.broker.tracing.journal.stop()
        if self.broker.audit is not None:
            self.broker.audit.flush()
        self._state.stop()

"""How the parts of one node fit together: disk, ledgers, machines, broker."""

import secrets

from goqueue.broker.broker import Broker, Identity
from goqueue.broker.compact import Compact
from goqueue.broker.dead_letters import DeadLetterWriter
from goqueue.broker.dedup import Deduplication
from goqueue.broker.fetch import Fetcher
from goqueue.broker.lag import Lag
from goqueue.broker.members import Members
from goqueue.broker.moves import Moves
from goqueue.broker.noting import Forgetting, Step
from goqueue.broker.publish import Publisher
from goqueue.broker.receive import Receiver
from goqueue.broker.redrive import DeadLetters
from goqueue.broker.reliability import Reliabilities
from goqueue.broker.replay import Replays
from goqueue.broker.send import Sender
from goqueue.broker.settle import Settler
from goqueue.broker.transaction_steps import TransactionSteps
from goqueue.broker.validation import Validation
from goqueue.model.topics import INTERNAL_PREFIX
from goqueue.node.state import State
from goqueue.node.tracing import Askable, Memory, TracingOptions, build_tracing
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.aside import Aside, at_once
from goqueue.runtime.clock import Clock

PERSISTED = Step.PERSISTED
BOOT_BITS = 32


class Assembly:
    """`broker` is ready when this is made. `stop` before the replicas are closed."""

    def __init__(
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
    ) -> None:
        self._clock = clock
        memory = Memory(tracing.sampling)
        self._journeys = journeys = memory.journeys
        replicas.on_open = self._opened
        self._state = state = State(replicas, clock, aside, journeys)
        topics, groups, queues, schedules = state.topics, state.groups, state.queues, state.schedules
        forgetting = Forgetting(journeys, memory.parents, memory.moved)
        topics.on_change += [each.topics_changed for each in (groups, queues, schedules, forgetting)]
        state.load()
        publisher, dedup, validation = self._publishing(state)
        sender = Sender(topics, publisher, dedup, clock)
        lag, receiver = Lag(groups, queues, topics, clock), Receiver(queues, topics, clock)
        letters = DeadLetters(queues, topics, sender, clock, journeys)
        moves = Moves(queues, receiver, letters, topics, clock)
        topics.on_change += [each.topics_changed for each in (dedup, sender, moves)]
        dead_letter_writer = DeadLetterWriter(queues, topics, publisher, clock, journeys)
        identity, askable = Identity(node_id, state.cluster_id), Askable(queues, receiver, schedules, lag)
        self.broker = Broker(
            identity=identity,
            clock=clock,
            topics=topics,
            publisher=publisher,
            fetcher=Fetcher(topics, clock, journeys),
            groups=groups,
            lag=lag,
            transactions=state.transactions,
            queues=queues,
            receiver=receiver,
            settler=Settler(queues, secrets.randbits(BOOT_BITS), state.secret),
            schedules=schedules,
            sender=sender,
            dead_letters=letters,
            moves=moves,
            members=Members(groups, queues, topics, clock),
            reliabilities=Reliabilities(queues, dead_letter_writer),
            replays=Replays(queues, groups, topics, clock),
            schemas=state.schemas,
            validation=validation,
            transaction_steps=TransactionSteps(state.transactions, topics, publisher, sender, clock),
            compact=compact,
            journeys=journeys,
            tracing=build_tracing(tracing, memory, topics, replicas, clock, identity, askable),
            default_partitions=default_partitions,
            creates_topics=creates_topics,
        )
        dead_letter_writer.write_pending()

    def _publishing(self, state: State) -> tuple[Publisher, Deduplication, Validation]:
        dedup = Deduplication(state.topics, state.schedules, self._clock)
        dedup.start()
        verify = state.transactions.verify
        publisher = Publisher(state.topics, self._clock, verify, state.schedules, dedup, self._journeys)
        validation = Validation(state.schemas, state.topics, publisher, self._clock, self._journeys)
        state.schedules.check_record = validation.check_one
        return publisher, dedup, validation

    def _opened(self, replica: Replica) -> None:
        topic, partition = replica.place
        if topic.startswith(INTERNAL_PREFIX):
            return
        note, now_ms = self._journeys.note, self._clock.now_ms

        def persisted(first: int, last: int, at_ms: int | None) -> None:
            note(now_ms() if at_ms is None else at_ms, PERSISTED, topic, partition, first, last)

        replica.on_persisted = persisted

    def stop(self) -> None:
        self.broker.tracing.journal.stop()
        self._state.stop()

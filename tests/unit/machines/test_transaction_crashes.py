"""Producers, zombies, partitions, a coordinator that crashes anywhere: what must hold at every step and at the end."""

from collections import Counter, defaultdict
from itertools import count
from random import Random
from typing import Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from goqueue.machines.machine import Tick
from goqueue.machines.partitions.producer_state import ACCEPT, Duplicate, ProducerStates
from goqueue.machines.transactions.commands import (
    AddGroup,
    AddPartitions,
    EndTransaction,
    InitProducer,
    MarkerJob,
    MarkersWritten,
    Partition,
    ProducerIdWanted,
)
from goqueue.machines.transactions.facts import (
    COMPLETE,
    EPOCH_GIVEN_MAX,
    NOBODY,
    PREPARED,
    Identity,
    State,
    TransactionChanged,
)
from goqueue.machines.transactions.machine import TransactionMachine
from goqueue.model.codes import Code
from goqueue.records.batch import Batch
from tests.unit.machines.transaction_samples import (
    MINUTE_MS,
    NOW_MS,
    Ledger,
    data_batch,
    everything,
    identity_of,
    marker,
    replayed,
    restored,
)

NAMES = ("w/x", "w/y")
PARTITIONS: tuple[Partition, ...] = (("t", 0), ("t", 1))
WALKS = 250
CLIENTS = 4  # two for each transactional id, so that each may become the other's zombie

Fate = Literal["fine", "reply lost", "append failed", "half appended"]
FATES: tuple[Fate, ...] = (*("fine",) * 15, "reply lost", "append failed", "half appended")
PASSED_MS = [1, 1000, MINUTE_MS // 2, MINUTE_MS]
EPOCHS = [0, EPOCH_GIVEN_MAX - 2, EPOCH_GIVEN_MAX]
fates = st.sampled_from(FATES)
numbers = st.integers(0, CLIENTS - 1)
rarely = st.integers(0, 7).map(lambda number: number == 7)
partitions = st.sampled_from(PARTITIONS)

Transaction = tuple[str, int]
"""transactional id and serial"""


class Client:
    def __init__(self, number: int) -> None:
        self.name = NAMES[number // 2]
        self.version_2 = number % 2 == 1
        self.identity = NOBODY
        self.sequences: Counter[tuple[Identity, Partition]] = Counter()


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = NOW_MS
        self.machine = TransactionMachine()
        self.ledger = Ledger()
        self.ids = count()
        self.clients = [Client(number) for number in range(CLIENTS)]
        self.owners: dict[Identity, Client] = {}
        self.logs: dict[Partition, list[Batch]] = {partition: [] for partition in PARTITIONS}
        self.states = {partition: ProducerStates() for partition in PARTITIONS}
        self.records: dict[Transaction, list[tuple[Partition, int]]] = defaultdict(list)
        self.markers: Counter[tuple[Partition, Transaction]] = Counter()
        self.reports: list[MarkersWritten] = []
        self.outcomes: dict[Transaction, bool] = {}
        self.acknowledged: dict[Transaction, bool] = {}
        self.last_seen: dict[str, Identity] = {}

    # How a command goes through the coordinator, and where that may break off

    def ask(self, command: Any, fate: Fate = "fine") -> Any:
        before = everything(self.machine)
        outcome = self.machine.decide(command, 1, self.now_ms)
        if outcome.replies and isinstance(outcome.replies[0][1], ProducerIdWanted):
            assert outcome.facts == []
            command = replace(command, new_producer_id=next(self.ids))
            outcome = self.machine.decide(command, 1, self.now_ms)
        assert everything(self.machine) == before, "decide has changed something"
        if fate == "append failed":
            self.restart()
            return None
        durable = [fact for fact in outcome.facts if fact.durable]
        if fate == "half appended":
            for fact in durable[: len(durable) // 2]:
                self.note(fact)
            self.restart()
            return None
        for fact in outcome.facts:
            if fact.durable:
                self.note(fact)
            self.machine.apply(fact)
        if fate == "reply lost":
            self.restart()
            return None
        return outcome.replies[0][1] if outcome.replies else None

    def note(self, fact: Any) -> None:
        self.ledger.append(fact)
        if not isinstance(fact, TransactionChanged):
            return
        name, identity = fact.transactional_id, fact.identity
        old = self.last_seen.get(name, NOBODY)
        assert identity >= old, "an epoch or an id has gone back"
        self.last_seen[name] = identity
        if fact.state in PREPARED | COMPLETE:
            commit = fact.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)
            assert self.outcomes.setdefault((name, fact.serial), commit) is commit, "both committed and aborted"

    def restart(self) -> None:
        self.machine = replayed(self.ledger.entries)
        assert everything(replayed(self.ledger.compacted())) == everything(self.machine)

    def given(self, client: Client, identity: Identity) -> None:
        assert identity[1] <= EPOCH_GIVEN_MAX, "the epoch that is left for fencing was given"
        assert self.owners.setdefault(identity, client) is client, "two producers share an id and an epoch"
        client.identity = identity

    # What producers do

    def live(self, number: int) -> Client | None:
        """The one producer that may act for a name."""
        known = self.machine.get(NAMES[number % len(NAMES)])
        return self.owners.get(known.identity) if known else None

    def actor(self, number: int, is_zombie: bool) -> Client:
        """The one that may act, or one of the others."""
        live = self.live(number)
        name = NAMES[number % len(NAMES)]
        others = [client for client in self.clients if client.name == name and client is not live]
        return others[number // len(NAMES) % len(others)] if is_zombie or live is None else live

    @initialize(epoch=st.sampled_from(EPOCHS))
    def start_all(self, epoch: int) -> None:
        """Some are near the end of their epochs."""
        for client in self.clients:
            self.start(client, False, "fine")
        for client in self.clients[1::2] if epoch else []:
            known = self.machine.get(client.name)
            assert known is not None
            aged = replace(known, epoch=epoch)
            self.note(aged)
            self.machine.apply(aged)
            self.given(client, aged.identity)

    @rule(number=numbers, is_zombie=st.booleans(), goes_on=st.booleans(), fate=fates)
    def restart_producer(self, number: int, is_zombie: bool, goes_on: bool, fate: Fate) -> None:
        self.start(self.actor(number, is_zombie), goes_on, fate)

    def start(self, client: Client, goes_on: bool, fate: Fate) -> None:
        claimed = client.identity if goes_on else NOBODY
        reply = self.ask(InitProducer(client.name, MINUTE_MS, *claimed), fate)
        if reply is not None and reply.code is Code.NONE:
            self.given(client, (reply.producer_id, reply.epoch))

    @rule(number=numbers, is_zombie=rarely, places=st.lists(partitions, max_size=3), grouped=rarely, fate=fates)
    def work(self, number: int, is_zombie: bool, places: list[Partition], grouped: bool, fate: Fate) -> None:
        """Part of a transaction: a producer of version 1 enlists all its partitions, then writes into them."""
        client = self.actor(number, is_zombie)
        if not client.version_2:
            self.ask(AddPartitions(client.name, *client.identity, tuple(places)), fate)
        if grouped:
            self.ask(AddGroup(client.name, *client.identity, "group"), fate)
        for records, partition in enumerate(places, 1):
            self.publish(client, partition, records, fate)

    def publish(self, client: Client, partition: Partition, count: int, fate: Fate) -> None:
        who = client.identity
        if client.version_2 and self.machine.verify(*who, partition) is not Code.NONE:
            self.ask(AddPartitions(client.name, *who, (partition,)), fate)
        if self.machine.verify(*who, partition) is not Code.NONE:
            return
        known = self.machine.get(client.name)
        assert known is not None
        assert (known.identity, known.state) == (who, State.ONGOING)
        sequence = client.sequences[who, partition]
        batch = data_batch(who[0], sequence, count=count, epoch=who[1], transactional=True)
        states = self.states[partition]
        assert states.check(batch, from_zero=client.version_2) is ACCEPT
        offset = self.append(partition, batch)
        client.sequences[who, partition] += count
        self.records[client.name, known.serial].append((partition, offset))
        assert states.check(batch) == Duplicate(offset, offset + count - 1, NOW_MS)

    def append(self, partition: Partition, batch: Batch) -> int:
        log = self.logs[partition]
        offset = log[-1].next_offset if log else 0
        log.append(batch._replace(base_offset=offset))
        self.states[partition].record(batch, offset)
        return offset

    @rule(number=numbers, is_zombie=rarely, commit=st.booleans(), fate=fates)
    def end(self, number: int, is_zombie: bool, commit: bool, fate: Fate) -> None:
        client = self.actor(number, is_zombie)
        was = self.machine.get(client.name)
        reply = self.ask(EndTransaction(client.name, *client.identity, commit, client.version_2), fate)
        if reply is None or reply.code is not Code.NONE:
            return
        if was is not None and was.state is State.ONGOING:
            self.acknowledged[client.name, was.serial] = commit
        self.given(client, (reply.producer_id, reply.epoch))

    @rule(number=numbers, places=st.lists(partitions, min_size=1, max_size=3), commit=st.booleans())
    def whole_transaction(self, number: int, places: list[Partition], commit: bool) -> None:
        self.work(number, False, places, False, "fine")
        self.end(number, False, commit, "fine")
        self.write_all_markers()

    # What the broker does

    @rule(places=st.lists(partitions), grouped=st.booleans(), fate=fates)
    def write_some_markers(self, places: list[Partition], grouped: bool, fate: Fate) -> None:
        for job in self.machine.markers_due():
            chosen = tuple(partition for partition in job.partitions if partition in places)
            self.write(job, chosen, job.groups if grouped else (), fate)

    @rule(back=st.integers(1, 8))
    def report_late(self, back: int) -> None:
        if back <= len(self.reports):
            self.ask(self.reports[-back])

    @rule()
    def write_all_markers(self) -> None:
        for job in self.machine.markers_due():
            self.write(job, job.partitions, job.groups, "fine")

    def write(self, job: MarkerJob, chosen: tuple[Partition, ...], groups: tuple[str, ...], fate: Fate) -> None:
        name, producer_id, serial = identity_of(job)
        for partition in chosen:
            code = self.states[partition].check_marker(producer_id, job.epoch, job.coordinator_epoch)
            assert code in (Code.NONE, Code.INVALID_TXN_STATE)
            if code is Code.NONE:
                self.append(partition, marker(producer_id, epoch=job.epoch, commit=job.commit))
                self.markers[partition, (name, serial)] += 1
                assert self.outcomes[name, serial] is job.commit
        self.reports.append(MarkersWritten(name, producer_id, serial, chosen, groups))
        self.ask(self.reports[-1], fate)

    @rule(passed_ms=st.sampled_from(PASSED_MS), fate=fates)
    def pass_time(self, passed_ms: int, fate: Fate) -> None:
        self.now_ms += passed_ms
        self.ask(Tick(), fate)

    @rule()
    def crash(self) -> None:
        self.restart()

    @rule(partition=partitions)
    def recover_partition(self, partition: Partition) -> None:
        recovered = ProducerStates()
        recovered.replay(self.logs[partition])
        assert recovered.describe() == self.states[partition].describe()
        self.states[partition] = recovered

    # What must hold

    @invariant()
    def a_snapshot_rebuilds_the_same(self) -> None:
        again = restored(self.machine)
        assert list(again.facts()) == list(self.machine.facts())
        assert again.next_deadline_ms() == self.machine.next_deadline_ms()

    @invariant()
    def an_acknowledged_outcome_stands(self) -> None:
        assert self.acknowledged.items() <= self.outcomes.items()

    @invariant()
    def a_transaction_has_one_marker_in_a_partition(self) -> None:
        assert all(count == 1 for count in self.markers.values())

    @invariant()
    def readers_of_committed_records_see_nothing_else(self) -> None:
        visible = self.visible()
        for transaction, written in self.records.items():
            if self.outcomes.get(transaction) is not True:
                assert not visible & set(written)

    def visible(self) -> set[tuple[Partition, int]]:
        """What a client makes of the answers to its fetches: below the last stable offset, without what was aborted."""
        seen = set()
        for partition, log in self.logs.items():
            end = log[-1].next_offset if log else 0
            transactions = self.states[partition].open_transactions
            stable = transactions.last_stable_offset(end)
            aborted = sorted(transactions.aborted_in(0, stable), key=lambda each: each[1])
            hidden: set[int] = set()
            for batch in log:
                while aborted and aborted[0][1] <= batch.base_offset:
                    hidden.add(aborted.pop(0)[0])
                if batch.is_control:
                    hidden.discard(batch.producer_id)
                elif batch.base_offset < stable and batch.producer_id not in hidden:
                    seen.add((partition, batch.base_offset))
        return seen

    def teardown(self) -> None:
        """Whatever happened: when its producers fall silent, every transaction ends, with all that it promised."""
        self.now_ms += MINUTE_MS
        self.ask(Tick())
        self.write_all_markers()
        assert self.machine.page((State.ONGOING, *PREPARED), None, 1) == []
        assert not self.machine.markers_due()
        committed = {
            record
            for transaction, written in self.records.items()
            for record in written
            if self.outcomes[transaction]  # It has one; what could not commit was aborted
        }
        assert self.visible() == committed
        written_in = {(partition, key) for key, written in self.records.items() for partition, _ in written}
        assert all(self.markers[place] == 1 for place in written_in), "one marker in each partition"
        self.an_acknowledged_outcome_stands()


def take_a_step(world: World, dice: Random) -> None:
    number, fate = dice.randrange(CLIENTS), dice.choice(FATES)
    places = dice.choices(PARTITIONS, k=dice.randrange(4))
    is_zombie, is_grouped = dice.random() < 0.05, dice.random() < 0.2
    if world.live(number) is None:
        world.restart_producer(number, dice.random() < 0.5, False, "fine")
    match dice.choices(range(8), [8, 6, 3, 3, 1, 1, 1, 1])[0]:
        case 0:
            world.work(number, is_zombie, places, is_grouped, fate)
        case 1:
            world.end(number, is_zombie, dice.random() < 0.7, fate)
        case 2:
            world.write_some_markers(places, is_grouped, fate)
        case 3:
            world.write_all_markers()
        case 4:
            world.restart_producer(number, dice.random() < 0.5, dice.random() < 0.5, fate)
        case 5:
            world.report_late(dice.randint(1, 8))
        case 6:
            world.pass_time(dice.choice(PASSED_MS), fate)
        case 7:
            world.crash()
            world.recover_partition(dice.choice(PARTITIONS))


def walk(seed: int, steps: int) -> World:
    dice, world = Random(seed), World()
    world.start_all(dice.choice(EPOCHS))
    for _ in range(steps):
        take_a_step(world, dice)
        world.a_snapshot_rebuilds_the_same()
        world.an_acknowledged_outcome_stands()
        world.a_transaction_has_one_marker_in_a_partition()
        world.readers_of_committed_records_see_nothing_else()
    world.teardown()
    return world


def test_long_walks_keep_every_promise() -> None:
    """Beside the rules, which shrink what they find: even dice reach deeper, and a seed that fails can be had again."""
    outcomes: Counter[bool] = Counter()
    for seed in range(WALKS):
        print("seed", seed)
        world = walk(seed, steps=60)
        outcomes.update(world.outcomes[transaction] for transaction in world.records)
    assert min(outcomes[True], outcomes[False]) > 2 * WALKS, "the walks do too little"


World.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestTransactions = World.TestCase

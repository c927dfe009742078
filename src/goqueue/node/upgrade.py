"""A data directory that an earlier version wrote: its ledgers are read once and written as this version keeps them.

Every step can be done again. What is new is durable before anything says that it counts, and what is old goes last: so
a crash anywhere leaves a directory with which the next start begins again, or goes on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from goqueue.broker.delays.earlier import EARLIER_FACTS as EARLIER_DELAY_FACTS
from goqueue.broker.delays.earlier import EarlierDelays, copy_delays
from goqueue.broker.shards import shard_of_group_fact, shard_of_transaction_fact
from goqueue.broker.transactions.earlier import EARLIER_FACTS as EARLIER_TRANSACTION_FACTS
from goqueue.broker.transactions.earlier import EarlierTransactions
from goqueue.machines.controller import Controller
from goqueue.machines.controller_facts import STORED_FACTS, ProducerIdsTaken, SchedulePlaced
from goqueue.machines.delays.facts import DELAY_FACTS
from goqueue.machines.groups.facts import GROUP_FACTS
from goqueue.machines.groups.machine import Groups as GroupsMachine
from goqueue.machines.machine import Fact
from goqueue.machines.transactions.facts import TRANSACTION_FACTS
from goqueue.node.upgrade_logs import opened, remove
from goqueue.records.log_files import LOGS_NAME
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas
from goqueue.runtime.ledger import Ledger
from goqueue.storage.side_file import replace_durably
from goqueue.telemetry.logs import get_logger

LAYOUT = b"2\n"
"""Groups and transactions are in sixteen ledgers each. Without it: groups in four, transactions in one."""
LAYOUT_NAME = "layout"
NEXT = ".next"
"""Behind the name of ledgers that are written anew."""
DELAYS, GROUPS, TRANSACTIONS = "delays", "groups", "transactions"

events = get_logger("node")


class Sharded(NamedTuple):
    """A kind of ledger that is sorted into shards."""

    kind: str
    facts: tuple[type[Fact], ...]
    shard_of: Callable[[Fact], int]

    @property
    def log(self) -> str:
        return f"@{self.kind}"


SHARDED = (
    Sharded(GROUPS, GROUP_FACTS, shard_of_group_fact),
    Sharded(TRANSACTIONS, TRANSACTION_FACTS, shard_of_transaction_fact),
)


class Upgrade:
    """`run` before any ledger but that of the metadata is opened."""

    def __init__(
        self, replicas: Replicas, metadata: Replica, make_groups: Callable[[], GroupsMachine], now_ms: int
    ) -> None:
        self._replicas = replicas
        self._directory = replicas.directory
        self._disk = replicas.directory.disk
        self._make_groups = make_groups
        self._metadata = metadata
        self._now_ms = now_ms

    def run(self) -> None:
        if self._directory.partitions_of(f"@{DELAYS}"):
            self._move_delays()
        remove(self._replicas, f"@{DELAYS}")  # where a crash left the directory alone
        if not self._disk.exists(LAYOUT_NAME):
            self._write_shards()
            replace_durably(self._disk, LAYOUT_NAME, LAYOUT)
        self._swap_shards()

    # -- groups and transactions

    def _write_shards(self) -> None:
        for sharded in SHARDED:
            remove(self._replicas, sharded.log + NEXT)  # of an attempt that a crash ended
        ends = [self._write_transactions(), self._write_groups()]
        end = max(ends)
        if end:
            self._store([ProducerIdsTaken(end)])

    def _write_groups(self) -> int:
        groups = SHARDED[0]
        for numbers, ledgers in self._old(groups.log, GROUPS, GROUP_FACTS):
            facts: list[Fact] = []
            for ledger in ledgers:
                machine = self._make_groups()
                ledger.replay(machine, self._now_ms)
                facts += machine.facts()
            self._write(groups, facts, max(each.newest_ms for each in ledgers))
            events.info("groups sorted into shards", ledgers=len(numbers), facts=len(facts))
        return 0

    def _write_transactions(self) -> int:
        """Below what the producer ids are that were given."""
        transactions, end = SHARDED[1], 0
        for _, ledgers in self._old(transactions.log, TRANSACTIONS, EARLIER_TRANSACTION_FACTS):
            facts: list[Fact] = []
            for ledger in ledgers:
                machine = EarlierTransactions()
                ledger.replay(machine, self._now_ms)
                facts += machine.facts()
                end = max(end, machine.producer_ids_end)
            self._write(transactions, facts, max(each.newest_ms for each in ledgers))
            events.info("transactions sorted into shards", facts=len(facts))
        return end

    def _old(self, log: str, kind: str, facts: tuple[type[Fact], ...]) -> Iterator[tuple[Sequence[int], list[Ledger]]]:
        """All ledgers of a name, open while the caller looks at them; nothing, if there are none."""
        numbers = self._directory.partitions_of(log)
        if numbers:
            with opened(self._replicas, log, numbers, self._now_ms) as replicas:
                yield numbers, [Ledger(each, kind, facts) for each in replicas.values()]

    def _write(self, sharded: Sharded, facts: Iterable[Fact], newest_ms: int) -> None:
        """`newest_ms`: the clock of these ledgers does not go back."""
        by_shard: dict[int, list[Fact]] = {}
        for fact in facts:
            by_shard.setdefault(sharded.shard_of(fact), []).append(fact)
        by_shard = by_shard or {0: []}  # an empty one, to take the place of the others
        now_ms = max(self._now_ms, newest_ms)
        with opened(self._replicas, sharded.log + NEXT, sorted(by_shard), self._now_ms) as replicas:
            for number, replica in replicas.items():
                ledger = Ledger(replica, sharded.kind, sharded.facts)
                ledger.append_in_batches(by_shard[number], now_ms)
                ledger.make_durable()

    def _swap_shards(self) -> None:
        """What was written anew takes the place of what there was."""
        for sharded in SHARDED:
            new = f"{LOGS_NAME}/{sharded.log}{NEXT}"
            if not self._directory.partitions_of(sharded.log + NEXT):
                continue
            remove(self._replicas, sharded.log)
            self._disk.rename(new, f"{LOGS_NAME}/{sharded.log}")
            self._disk.sync_directory(LOGS_NAME)

    # -- delays

    def _move_delays(self) -> None:
        """To the companions of their partitions. While the old ledger is there, no companion counts."""
        for name in self._replicas.companions.on_disk():
            if name.kind == DELAYS:
                remove(self._replicas, name.log)
        controller = Controller()
        self._metadata_ledger().replay(controller, self._now_ms)
        partitions = {each.topic_id: each.partitions for each in controller.topics.values() if not each.is_deleting}
        placed: list[Fact] = []
        for _, (old,) in self._old(f"@{DELAYS}", DELAYS, EARLIER_DELAY_FACTS):
            earlier = EarlierDelays()
            old.replay(earlier, self._now_ms)
            for (topic_id, partition), machine in earlier.partitions.items():
                if partition >= partitions.get(topic_id, 0):
                    continue
                name = CompanionName(DELAYS, topic_id, partition)
                with opened(self._replicas, name.log, [partition], self._now_ms, topic_id) as replicas:
                    new = Ledger(replicas[partition], DELAYS, DELAY_FACTS)
                    copy_delays(machine, old, new, self._now_ms)
                    replicas[partition].sync()
                placed += [SchedulePlaced(each.name, topic_id, partition) for each in machine.recurring()]
            events.info("delays moved to their partitions", partitions=len(earlier.partitions))
        if placed:
            self._store(placed)
        remove(self._replicas, f"@{DELAYS}")

    # -- files

    def _metadata_ledger(self) -> Ledger:
        return Ledger(self._metadata, "metadata", STORED_FACTS)

    def _store(self, facts: Sequence[Fact]) -> None:
        ledger = self._metadata_ledger()
        ledger.append_in_batches(facts, self._now_ms)
        ledger.make_durable()

"""Transactions in shards: whoever asks about a transactional id, or about a producer, need not know in which it is."""

from collections.abc import Iterable, Iterator

from goqueue.broker.shards import shard_of_transaction
from goqueue.machines.transactions.commands import Partition
from goqueue.machines.transactions.facts import State, TransactionChanged
from goqueue.machines.transactions.machine import TransactionMachine
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.coordinators import Coordinators


class TransactionShards:
    """For questions. A shard that was never needed is not there, and knows nothing. The refusal of a coordinator: it
    is not active.
    """

    def __init__(self, coordinators: Coordinators[int, TransactionMachine]) -> None:
        self._coordinators = coordinators

    def find(self, name: str) -> Coordinator[TransactionMachine] | None:
        """The coordinator of a transactional id, or of a writer."""
        return self._coordinators.find(shard_of_transaction(name))

    def _machines(self) -> Iterator[TransactionMachine]:
        return (each.peek() for each in self._coordinators)

    def get(self, transactional_id: str) -> TransactionChanged | None:
        found = self.find(transactional_id)
        return None if found is None else found.peek().get(transactional_id)

    def describe(self, transactional_id: str) -> TransactionChanged | None:
        """As DescribeTransactions shows it: of a decided transaction only what still waits for its marker."""
        found = self.find(transactional_id)
        return None if found is None else found.peek().describe(transactional_id)

    def mark(self, writer: str) -> int:
        """How far this writer has come with transactions that end together; -1: it is not known."""
        found = self.find(writer)
        return -1 if found is None else found.peek().mark(writer)

    def of_producer(self, producer_id: int) -> TransactionChanged | None:
        """None: no producer of transactions has this id (any more). A refusal: one that is not active may know it."""
        refusal: GoQueueError | None = None
        for each in self._coordinators:
            try:
                known = each.peek().of_producer(producer_id)
            except GoQueueError as error:
                refusal = error
                continue
            if known is not None:
                return known
        if refusal is not None:
            raise refusal
        return None

    def verify(self, producer_id: int, epoch: int, place: Partition | str) -> Code:
        """May a transactional batch go into this partition, or offsets into the group of this name?"""
        for _, each in self._coordinators.active():  # what is not asks to be asked again: see `Transactions.may_write`
            verdict = each.peek().verify(producer_id, epoch, place)
            if verdict is not Code.INVALID_PRODUCER_ID_MAPPING:
                return verdict
        return Code.INVALID_PRODUCER_ID_MAPPING

    def is_open(self, producer_id: int, epoch: int, topic: str, partition: int) -> bool:
        return self.verify(producer_id, epoch, (topic, partition)) is Code.NONE

    def coordinator_epoch(self, known: TransactionChanged | None) -> int:
        """Of who knows this transactional id; if nobody does, the highest there is."""
        found = None if known is None else self.find(known.transactional_id)
        if found is not None:
            return found.peek().coordinator_epoch
        return max((machine.coordinator_epoch for machine in self._machines()), default=0)

    def page(self, states: Iterable[State], after: str | None, count: int) -> list[str]:
        """The next transactional ids in these states, sorted."""
        wanted = list(states)
        return sorted(name for machine in self._machines() for name in machine.page(wanted, after, count))[:count]

    def count(self, state: State) -> int:
        return sum(machine.count(state) for machine in self._machines())

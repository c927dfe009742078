"""Transactions as earlier versions kept them: all in one ledger, which gave out the producer ids too."""

from typing import Any

from goqueue.machines.machine import Fact
from goqueue.machines.retired import ProducerIdsReserved
from goqueue.machines.transactions.facts import MarkSet, TransactionChanged
from goqueue.machines.transactions.machine import TransactionMachine

EARLIER_FACTS: tuple[type[Fact], ...] = (ProducerIdsReserved, TransactionChanged, MarkSet)


class EarlierTransactions(TransactionMachine):
    """To be read from its ledger only."""

    producer_ids_end = 0

    def apply(self, fact: Any) -> None:
        if isinstance(fact, ProducerIdsReserved):
            self.producer_ids_end = fact.end
        else:
            super().apply(fact)

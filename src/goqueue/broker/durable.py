"""Answers that are read from a state: each leaves when what it was read from is durable.

A machine's state is ahead of its ledger's disk for as long as a sync takes. Whoever was told of it meanwhile, the id of
a schema for instance, would find it gone, or given to somebody else, after a loss of power.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from goqueue.model.errors import GoQueueError
from goqueue.model.ledgers import LedgerKind
from goqueue.replica.replica import Replica
from goqueue.runtime.coordinators import AllCoordinators

OnConfirmed: TypeAlias = Callable[[GoQueueError | None], None]
"""None: it is durable. An error: it never will be, so that nobody must be told of it."""


class Durable:
    def __init__(self, coordinators: AllCoordinators) -> None:
        self._of = {kind: coordinators.of_kind(kind) for kind in LedgerKind}

    def confirm(self, kinds: Iterable[LedgerKind], on_confirmed: OnConfirmed) -> None:
        """Call once all that these ledgers were given so far is durable; mostly at once."""
        unsure = [each for kind in kinds for each in self._of[kind].unsure()]
        if not unsure:
            on_confirmed(None)
            return
        waiting = len(unsure)
        failure: GoQueueError | None = None

        def confirmed(error: GoQueueError | None) -> None:
            nonlocal waiting, failure
            waiting -= 1
            failure = failure or error
            if not waiting:
                on_confirmed(failure)

        for each in unsure:
            each.confirm(confirmed)


def confirm_appended(replicas: Iterable[Replica], on_confirmed: OnConfirmed) -> None:
    """As `confirm`, for what was read from partitions above their high watermarks."""
    unsure = [each for each in dict.fromkeys(replicas) if each.high_watermark < each.end_offset]
    waiting = len(unsure) + 1

    def reached() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            on_confirmed(next((each.failure for each in unsure if each.failure is not None), None))

    for each in unsure:
        each.when_reached(each.end_offset, reached)
    reached()

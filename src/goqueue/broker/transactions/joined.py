"""What has joined a transaction for good. A batch, or an offset, must not be durable before the coordinator's note that
its partition, or group, takes part: power that fails in between would leave it open with nobody to end it.
"""

from collections.abc import Callable
from functools import partial

from goqueue.machines.transactions.commands import Partition
from goqueue.machines.transactions.facts import State, TransactionChanged

Places = frozenset[Partition | str]
NOWHERE: Places = frozenset()


class Joined:
    """Kept while a transaction is ongoing. Nothing is kept of those that were ongoing before the last restart:
    what a start has read is synced before anybody is served.
    """

    def __init__(self, when_durable: Callable[[Callable[[], None]], None]) -> None:
        self._when_durable = when_durable
        self._joining: dict[str, int] = {}
        """By transactional id: how many notes of it are not durable yet."""
        self._places: dict[str, tuple[int, Places]] = {}
        """By transactional id: its transaction, by number, and what has joined that for good."""

    @property
    def is_settled(self) -> bool:
        """Whatever has joined has done so for good."""
        return not self._joining

    def has(self, transactional_id: str, place: Partition | str) -> bool:
        """Whether `place`, which has joined the ongoing transaction, has done so for good."""
        return transactional_id not in self._joining or place in self._places.get(transactional_id, (0, NOWHERE))[1]

    def changed(self, fact: TransactionChanged) -> None:
        name, serial = fact.transactional_id, fact.serial
        known = self._places.get(name)
        if known is not None and (known[0] != serial or fact.state is not State.ONGOING):
            del self._places[name]
            known = None
        if fact.state is not State.ONGOING:
            return
        places: Places = frozenset((*fact.partitions, *fact.groups))
        if known is None or not places <= known[1]:
            self._joining[name] = self._joining.get(name, 0) + 1
            self._places.setdefault(name, (serial, NOWHERE))
            self._when_durable(partial(self._durable, name, serial, places))

    def _durable(self, name: str, serial: int, places: Places) -> None:
        self._joining[name] -= 1
        if not self._joining[name]:
            del self._joining[name]
        if name in self._places and self._places[name][0] == serial:
            self._places[name] = serial, places

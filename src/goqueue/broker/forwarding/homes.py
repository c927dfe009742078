"""Who leads what, by the image: where a request about a partition, a group or a transaction is at home."""

from collections.abc import Callable

from goqueue.broker.shards import shard_of_group, shard_of_transaction
from goqueue.model.topics import Image

GROUPS, TRANSACTIONS, SCHEMAS = "@groups", "@transactions", "@schemas"


class Homes:
    """Each question is answered by a node id; None: nobody leads it at the moment."""

    def __init__(
        self, me: int, image: Callable[[], Image], is_opening: Callable[[str, int], bool] = lambda *_: False
    ) -> None:
        self.me = me
        self._image = image
        self._is_opening = is_opening
        """Whether a copy of this node does not serve yet."""

    @property
    def revision(self) -> int:
        return self._image().revision

    def nodes(self) -> list[int]:
        """Those that are alive, this one too, by their ids."""
        return sorted({*self._image().nodes, self.me})

    def others(self) -> list[int]:
        return [each for each in self.nodes() if each != self.me]

    def partition(self, topic: str, partition: int) -> int | None:
        """A partition that does not exist is everywhere: each node can say so."""
        image = self._image()
        known = image.find(topic)
        if known is None or not 0 <= partition < known.partitions:
            return self.me
        leader = image.leader_of(topic, partition)
        return None if leader is None else leader.node_id

    def leads(self, topic: str, partition: int) -> bool:
        """Whether this node leads it. It may hear of a new topic later than the node that asks for it, or be opening
        its copy: then it does not lead it yet."""
        known = self._image().find(topic)
        if known is None or not 0 <= partition < known.partitions or self._is_opening(topic, partition):
            return False
        return self.partition(topic, partition) == self.me

    def group(self, group_id: str) -> int | None:
        return self._ledger(GROUPS, shard_of_group(group_id))

    def transaction(self, transactional_id: str) -> int | None:
        return self._ledger(TRANSACTIONS, shard_of_transaction(transactional_id))

    def schemas(self) -> int | None:
        return self._ledger(SCHEMAS, 0)

    def _ledger(self, name: str, number: int) -> int | None:
        image = self._image()
        if name not in image.ledgers:
            return self.me
        leader = image.leader_of(name, number)
        return None if leader is None else leader.node_id

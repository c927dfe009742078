"""Where groups read as queues, also by group and by topic: what concerns one of them must not look at all."""

from goqueue.machines.deliveries.commands import Place
from goqueue.machines.deliveries.place import Delivery
from goqueue.machines.name_table import NameTable


class Places(dict[Place, Delivery]):
    """Invariant: both tables name exactly the places that are here. `add` and `remove` alone change who is."""

    def __init__(self) -> None:
        super().__init__()
        self.by_group: NameTable[dict[Place, None]] = NameTable()
        self._by_topic: dict[str, dict[Place, None]] = {}

    def add(self, delivery: Delivery) -> Delivery:
        place = delivery.place
        self[place] = delivery
        self.by_group.setdefault(place.group_id, {})[place] = None
        self._by_topic.setdefault(place.topic, {})[place] = None
        return delivery

    def remove(self, place: Place) -> Delivery | None:
        delivery = self.pop(place, None)
        if delivery is not None:
            for table, key in ((self.by_group, place.group_id), (self._by_topic, place.topic)):
                del table[key][place]
                if not table[key]:
                    del table[key]
        return delivery

    def of_group(self, group_id: str) -> list[Delivery]:
        return [self[place] for place in sorted(self.by_group.get(group_id, ()))]

    def in_topic(self, topic: str) -> list[Delivery]:
        return [self[place] for place in sorted(self._by_topic.get(topic, ()))]

"""Members of one group, each in a thread of its own: they receive, remember what and when, and commit that."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.integration.clients import ClientFailure, Consumer, Message, Producer, Record
from tests.integration.process import DEADLINE_S, Late

Place = tuple[str, int]
MOVED_ON = {22, 25, 27, 113}
"""The group has a new generation: what was received is received again by the new owner."""
MOVED_ON_WORDS = ("CommitFailed", "IllegalState", "RebalanceInProgress")


class Delivery(NamedTuple):
    member: str
    record: Record
    at_s: float


class Ownership(NamedTuple):
    member: str
    places: frozenset[Place]
    at_s: float


class Member:
    def __init__(self, crowd: "Crowd", name: str, make: Callable[[], Consumer], *, waits: bool) -> None:
        self.name = name
        self.owned: frozenset[Place] = frozenset()
        self.is_over = False
        self._crowd = crowd
        self._make = make
        self._waits = waits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def leave(self) -> None:
        self._stop.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"

    def _run(self) -> None:
        try:
            consumer = self._make()
            while not self._stop.is_set():
                records = consumer.poll(0.05)
                self._crowd.tell(self, records, frozenset(consumer.assignment()))
                if records:
                    self._commit(consumer, records)
            consumer.close()
        except BaseException as error:  # noqa: BLE001  the test's own thread raises it
            self._crowd.fail(error)
        finally:
            self._crowd.tell(self, [], frozenset())

    def _commit(self, consumer: Consumer, records: Iterable[Record]) -> None:
        offsets = {(record.topic, record.partition): record.offset + 1 for record in records}
        try:
            if self._waits:
                consumer.commit(offsets)
            else:
                consumer.commit_soon(offsets)
        except ClientFailure as failure:
            if failure.code not in MOVED_ON and not any(word in str(failure) for word in MOVED_ON_WORDS):
                raise


class Crowd:
    """`waits`: for each commit, as a careful application does. While a classic group rebalances a commit stands behind
    the join on the member's connection, so who waits for it pauses, and not because of the group.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self._waits = waits
        self._changed = threading.Condition()
        self._members: dict[str, Member] = {}
        self._failures: list[BaseException] = []
        self.deliveries: list[Delivery] = []
        self.ownerships: list[Ownership] = []

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(self, *error: object) -> None:
        for name in list(self._members):
            self.leave(name)

    def join(self, name: str, make: Callable[[], Consumer]) -> None:
        self._members[name] = Member(self, name, make, waits=self._waits)

    def leave(self, name: str) -> None:
        self._members.pop(name).leave()

    def tell(self, member: Member, records: list[Record], owned: frozenset[Place]) -> None:
        now_s = time.monotonic()
        with self._changed:
            self.deliveries += [Delivery(member.name, record, now_s) for record in records]
            if owned != member.owned:
                member.owned = owned
                self.ownerships.append(Ownership(member.name, owned, now_s))
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self._failures.append(error)
            self._changed.notify_all()

    def wait_for(self, is_done: Callable[[], bool], what: str) -> float:
        """Returns when that was."""
        with self._changed:
            self._changed.wait_for(lambda: self._failures or is_done(), DEADLINE_S)
            if self._failures:
                raise self._failures[0]
            if not is_done():
                owned = {name: sorted(member.owned) for name, member in self._members.items()}
                raise Late(f"{what} did not happen within {DEADLINE_S} s; owners: {owned}")
            return time.monotonic()

    def wait_shared(self, topic: str, partitions: int) -> float:
        """Until every partition has one owner, and no member has more than one more than another."""
        return self.wait_for(lambda: self._is_shared(topic, partitions), "an even share")

    def _is_shared(self, topic: str, partitions: int) -> bool:
        shares = [member.owned for member in self._members.values()]
        sizes = [len(share) for share in shares]
        whole = {(topic, number) for number in range(partitions)}
        return sum(sizes) == partitions and set().union(*shares) == whole and max(sizes) - min(sizes) <= 1

    def owned(self, name: str) -> frozenset[Place]:
        return self._members[name].owned

    def received(self) -> set[tuple[int, int, bytes | None]]:
        return {delivery.record.place for delivery in self.deliveries}

    def gaps(self) -> list[Delivery]:
        """Deliveries that came before the message in front of them had been delivered to anybody."""
        seen: set[tuple[int, int]] = set()
        found = []
        for delivery in self.deliveries:
            partition, offset, _ = delivery.record.place
            if offset and (partition, offset - 1) not in seen:
                found.append(delivery)
            seen.add((partition, offset))
        return found


class Stream:
    """Sends without end, a message to every partition in turn, and remembers where each went."""

    def __init__(self, producer: Producer, topic: str, partitions: int, pause_s: float = 0.01) -> None:
        self.sent: set[tuple[int, int, bytes | None]] = set()
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="stream")

    def __enter__(self) -> "Stream":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(DEADLINE_S)
        if self._failures:
            raise self._failures[0]

    def _run(self) -> None:
        try:
            number = 0
            while not self._stop.wait(self._pause_s):
                messages = [Message(partition, b"%d" % (number + partition)) for partition in range(self._partitions)]
                number += self._partitions
                offsets = self._producer.send(self._topic, messages)
                self.sent |= {(one.partition, offset, one.value) for one, offset in zip(messages, offsets)}
            self._producer.close()
        except BaseException as error:  # noqa: BLE001  the test's own thread raises it
            self._failures.append(error)

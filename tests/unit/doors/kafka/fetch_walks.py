"""Random walks of one client with a fetch session, through all that may happen to the partitions that it reads.

It does as clients do: it names a partition when it has another position, and forgets one when it no longer reads it.
"""

from random import Random

from goqueue.model.codes import Code
from goqueue.records.batch import check_batch, split
from goqueue.records.control import ControlKind, build_control
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Reign
from goqueue.wire.kafka.messages.fetch import FetchedPartition, FetchResponse
from tests.brokers import data
from tests.unit.doors.kafka.fetch_readers import MANY, Reader, partitions
from tests.unit.doors.kafka.share_members import House

WAIT_MS = 600
"""Longer than a fetch waits."""
WITHOUT_SESSION = -1
OTHER_NODE = 7
FETCHES_MAX = 300


class Walk:
    """Invariant: `named` is what the session reads, with the offsets that it knows."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.count = dice.choice([1, 2, 3, 5])
        self.house = House(partitions=self.count)
        version = dice.choice([7, 12, 13, 17])
        self.reader, self.other = Reader(self.house, version), Reader(self.house, version)
        self.positions = dict.fromkeys(range(self.count), 0)
        self.wanted = set(self.positions)
        self.named: dict[int, int] = {}
        self.told: dict[int, tuple[int, int]] = {}
        """High watermark and start."""
        self.refused: dict[int, int] = {}
        self.isolation_level = dice.choice([0, 1])
        self.is_parked = False
        self._sequences: dict[tuple[int, int], int] = {}
        self._open: dict[tuple[int, int], None] = {}
        """Partitions and producers with a transaction."""

    def replica(self, number: int) -> Replica:
        replica = self.house.broker.broker.topics._replicas.get("orders", number)
        assert replica is not None
        return replica

    # -- what happens to partitions

    def step(self) -> None:
        acts = {
            self.publish: 30,
            self.begin_transaction: 8,
            self.end_transaction: 8,
            self.delete: 4,
            self.change_leader: 3,
            self.subscribe: 5,
            self.change_isolation: 4,
            self.pass_time: 4,
            self.fetch: 34,
        }
        (act,) = self.dice.choices(list(acts), list(acts.values()))
        act()

    def _led(self) -> Replica | None:
        replica = self.replica(self.dice.randrange(self.count))
        return replica if replica.role.is_leader else None

    def _commit(self) -> None:
        if self.dice.random() < 0.7:
            self.house.broker.commit()

    def publish(self) -> None:
        if (replica := self._led()) is not None:
            value = b"x" * self.dice.choice([1, 50, 300])
            self.house.broker.publish("orders", value, partition=replica.place[1])
            self._commit()

    def begin_transaction(self) -> None:
        if (replica := self._led()) is not None:
            key = replica.place[1], self.dice.choice([9, 10])
            sequence = self._sequences[key] = self._sequences.get(key, -1) + 1
            made = data(b"t", base_sequence=sequence, producer_id=key[1], producer_epoch=0, transactional=True)
            replica.append(check_batch(made), self.house.broker.clock.now_ms())
            self._open[key] = None
            self._commit()

    def end_transaction(self) -> None:
        key = self.dice.choice(list(self._open) or [(0, 0)])
        if key in self._open and self.replica(key[0]).role.is_leader:
            del self._open[key]
            kind = self.dice.choice([ControlKind.COMMIT, ControlKind.ABORT])
            made = build_control(kind, producer_id=key[1], producer_epoch=0, coordinator_epoch=0, timestamp=1)
            marker = check_batch(memoryview(made))
            self.replica(key[0]).append_marker(marker, 0, self.house.broker.clock.now_ms())
            self._commit()

    def delete(self) -> None:
        if (replica := self._led()) is not None:
            replica.delete_before(self.dice.randint(0, replica.high_watermark))

    def change_leader(self) -> None:
        replica = self.replica(self.dice.randrange(self.count))
        if replica.role.is_leader:
            replica.follow(replica.leader_epoch + 1, OTHER_NODE)
        else:
            replica.lead(Reign(replica.leader_epoch + 1))

    # -- what the client does

    def subscribe(self) -> None:
        number = self.dice.randrange(self.count)
        if number in self.wanted and len(self.wanted) > 1:
            self.wanted.discard(number)
        else:
            self.wanted.add(number)

    def change_isolation(self) -> None:
        self.isolation_level = 1 - self.isolation_level

    def pass_time(self) -> None:
        self.house.advance(self.dice.choice([1, 100, WAIT_MS]))
        self._take_parked()

    def fetch(self) -> None:
        self.house.broker.commit()
        self._take_parked()
        if self.is_parked:
            return
        max_bytes, partition_max = self.dice.choice([1, 100, 400, MANY]), self.dice.choice([1, 200, MANY])
        min_bytes, max_wait_ms = self.dice.choice([0, 1, 500]), self.dice.choice([0, 500])
        self._ask(max_bytes=max_bytes, partition_max=partition_max, min_bytes=min_bytes, max_wait_ms=max_wait_ms)
        self._take_parked()

    def _ask(self, **limits: int) -> None:
        gone = [number for number in self.named if number not in self.wanted]
        for number in gone:
            del self.named[number]
            self._forget(number)
        moved = {number: self.positions[number] for number in sorted(self.wanted) if self._is_news(number)}
        self.named.update(moved)
        self.reader.park(moved, forget=gone, isolation_level=self.isolation_level, **limits)
        self.is_parked = True

    def _is_news(self, number: int) -> bool:
        return self.named.get(number) != self.positions[number]

    def _forget(self, number: int) -> None:
        self.told.pop(number, None)
        self.refused.pop(number, None)

    def _take_parked(self) -> None:
        answers = self.reader.waited()
        assert len(answers) <= self.is_parked
        for response in answers:
            self.is_parked = False
            self._take(response)

    def _take(self, response: FetchResponse) -> None:
        for number, one in partitions(response).items():
            assert number in self.named
            self._forget(number)
            if one.error_code:
                self.refused[number] = one.error_code
                if one.error_code == Code.OFFSET_OUT_OF_RANGE:
                    self.positions[number] = self.replica(number).start_offset
                continue
            self.told[number] = one.high_watermark, one.log_start_offset
            for batch in split(memoryview(one.records or b"")):  # type: ignore[arg-type]
                self.positions[number] = max(self.positions[number], batch.next_offset)

    # -- what must be so

    def read_all(self) -> None:
        """To the end of what the session gives."""
        if self.is_parked:
            self.house.advance(WAIT_MS)
            self._take_parked()
        for _ in range(FETCHES_MAX):
            before = dict(self.positions)
            self._ask(max_bytes=400, partition_max=200, max_wait_ms=0)
            self._take_parked()
            if before == self.positions:
                return
        raise AssertionError("it goes on and on")

    def ask_without_session(self) -> dict[int, FetchedPartition]:
        self.other.session = self.other.epoch = 0
        where = {number: self.positions[number] for number in self.wanted}
        response = self.other.fetch(where, isolation_level=self.isolation_level, session_epoch=WITHOUT_SESSION)
        return partitions(response)

    def watchers(self) -> list[int]:
        return [len(self.replica(number)._watchers) for number in range(self.count)]

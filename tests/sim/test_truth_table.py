"""Everything one message may carry, combined, with crashes: delay, lane, key order, transaction, time to live.

A group gets every visible message at least once, never again once acked, never before its time; a stream reader finds
each exactly once; what died is in the dead letters.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.broker.queues.settle import Wanted
from goqueue.broker.queues.taking import ReceiveRequest
from goqueue.broker.reading.scan import scan
from goqueue.machines.deliveries.commands import How, Place, Verdict
from goqueue.machines.transactions.commands import AddPartitions, EndTransaction, InitProducer
from goqueue.model.codes import Code
from goqueue.records.build import build_batch
from goqueue.records.decode import DecodedRecord
from goqueue.testing import MemoryDisk, PowerLost, VirtualClock
from tests.brokers import TestBroker
from tests.layers import half_in_each_layer

TOPIC, GROUP = "orders", "workers"
LEASE_MS = 10_000
ATTEMPTS_MAX = 3
LONG_MS = 120_000


@dataclass(frozen=True)
class Wish:
    key: bytes | None
    delay_ms: int
    lane: int
    ttl_ms: int
    """0: lives for ever."""
    transaction: str
    """none, commit, abort"""


@dataclass
class Message:
    wish: Wish
    due_ms: int
    expires_ms: int | None
    is_certain: bool = False
    """Its publish was acknowledged (and its transaction was ended): it must be there. Else it may be."""
    is_visible: bool = True
    deliveries: int = 0
    is_acked: bool = False
    may_be_settled: bool = False
    """A settlement of it was under way when the power went."""
    is_rejected: bool = False


@dataclass
class World:
    options: dict[str, str]
    random: Random
    disk: MemoryDisk = field(default_factory=MemoryDisk)
    clock: VirtualClock = field(default_factory=VirtualClock)
    messages: dict[bytes, Message] = field(default_factory=dict)
    leased: dict[bytes, tuple[str, int]] = field(default_factory=dict)
    """Value -> receipt, deadline."""
    transactions: int = 0

    def __post_init__(self) -> None:
        self.node = TestBroker(self.disk, self.clock)
        self.node.create(TOPIC, 1, **self.options)

    # -- steps

    def publish(self, wish: Wish) -> None:
        value = b"m%d" % len(self.messages)
        now_ms = self.clock.now_ms()
        headers: list[tuple[str, bytes | None]] = [("gq-priority", b"%d" % wish.lane)]
        if wish.delay_ms:
            headers.append(("gq-delay-ms", b"%d" % wish.delay_ms))
        expires_ms = now_ms + wish.ttl_ms if wish.ttl_ms else None
        if expires_ms is not None:
            headers.append(("gq-expires-at", b"%d" % expires_ms))
        message = self.messages[value] = Message(wish, now_ms + wish.delay_ms, expires_ms)
        message.is_visible = wish.transaction != "abort"
        record = (now_ms, wish.key, value, headers)
        if wish.transaction == "none":
            self._append(record)
        else:
            self._append_in_transaction(record, wish.transaction == "commit")
        message.is_certain = True

    def _append(self, record: Any, **fields: Any) -> None:
        reached: list[bool] = []
        data = memoryview(build_batch([record], **fields))
        acknowledger, appended = self.node.broker.publisher.publish(TOPIC, 0, data)
        acknowledger.when_reached(appended.next_offset, lambda: reached.append(acknowledger.failure is None))
        self.commit()
        assert reached == [True]

    def _append_in_transaction(self, record: Any, is_commit: bool) -> None:
        self.transactions += 1
        name = f"t{self.transactions}"
        transactions = self.node.broker.transactions
        producer = self.ask(transactions.submit, InitProducer(name, 60_000))
        who = (name, producer.producer_id, producer.epoch)
        assert self.ask(transactions.submit, AddPartitions(*who, ((TOPIC, 0),))).code is Code.NONE
        self._append(
            record,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        assert self.ask(transactions.submit, EndTransaction(*who, is_commit)).code is Code.NONE
        self.commit()

    def commit(self) -> None:
        """A sync that fails with the power tells nobody; here it does."""
        self.node.commit()
        if self.disk.power_lost:
            raise PowerLost

    def ask(self, submit: Any, command: Any) -> Any:
        replies: list[Any] = []
        submit(command, replies.append)
        self.commit()
        return replies[0]

    def advance(self, ms: int) -> None:
        for _ in range(10):
            self.clock.advance(ms / 10)
            self.commit()

    def receive(self, records_max: int, hows: list[How]) -> int:
        replies: list[Any] = []
        request = ReceiveRequest(GROUP, "consumer", [(TOPIC, 0)], records_max)
        self.node.broker.receiver.receive(request, replies.append)
        self.commit()
        (places,) = replies
        wanted: list[tuple[bytes, Wanted]] = []
        count = 0
        for leased in places:
            assert leased.error is None, leased.error
            for record, run in self.node.broker.receiver.read(leased, GROUP):
                count += 1
                place, lease = Place(GROUP, TOPIC, 0), (leased.lease, leased.epoch)
                receipt = self.node.broker.settler.receipt(place, record.offset, *lease)
                self._got(record, run.attempt, receipt, leased.deadline_ms)
                how = hows[count % len(hows)]
                if how is not How.UNDO:  # here: do nothing, let the lease end
                    wanted.append((record.value or b"", Wanted(receipt, how, 0)))
        self._settle(wanted)
        return count

    def _got(self, record: DecodedRecord, attempt: int, receipt: str, deadline_ms: int) -> None:
        now_ms = self.clock.now_ms()
        value = record.value
        assert value is not None
        message = self.messages[value]
        assert message.is_visible, f"{value!r} was aborted"
        assert not message.is_acked, f"{value!r} was acked before"
        assert not message.is_rejected, f"{value!r} is a dead letter"
        assert message.due_ms <= now_ms, f"{value!r} came {message.due_ms - now_ms} ms early"
        assert message.expires_ms is None or message.expires_ms > now_ms, f"{value!r} had expired"
        assert 1 <= attempt <= ATTEMPTS_MAX
        self._check_leases(value, message, now_ms)
        message.deliveries += 1
        self.leased[value] = (receipt, deadline_ms)

    def _check_leases(self, value: bytes, message: Message, now_ms: int) -> None:
        for other, (_, deadline_ms) in self.leased.items():
            if deadline_ms <= now_ms:
                continue
            assert other != value, f"{value!r} is leased twice"
            if self.options["lease_order"] == "key" and message.wish.key is not None:
                assert self.messages[other].wish.key != message.wish.key, f"{other!r} and {value!r} have one key"

    def _settle(self, wanted: list[tuple[bytes, Wanted]]) -> None:
        if not wanted:
            return
        for value, _ in wanted:
            self.messages[value].may_be_settled = True
        answers: list[Any] = []
        self.node.broker.settler.settle([want for _, want in wanted], answers.append)
        self.commit()
        for (value, want), verdict in zip(wanted, answers[0], strict=True):
            assert verdict is Verdict.DONE
            message = self.messages[value]
            message.may_be_settled = False
            del self.leased[value]
            message.is_acked = want.how is How.ACK
            message.is_rejected = want.how is How.REJECT

    def crash(self, operations: int) -> None:
        """The power goes some disk operations from now, in the middle of whatever is being done then."""
        self.disk.crash_at(self.disk.op_count + operations)

    def restart(self) -> None:
        """What was written and not synced is kept or lost at random."""
        self.disk = self.disk.crash(self.random) if self.disk.power_lost else self.disk
        self.clock = VirtualClock(self.clock.now_ms() + 10)
        self.leased.clear()
        self.node = TestBroker(self.disk, self.clock)

    # -- the end

    def drain(self) -> None:
        """Until nothing has come for so long that nothing can."""
        quiet = 0
        while quiet < 3:
            quiet = 0 if self.receive(100, [How.ACK]) else quiet + 1
            self.advance(LONG_MS)

    def stream(self, topic: str) -> list[bytes]:
        if topic not in self.node.broker.topics.image.topics:
            return []
        replica = self.node.broker.topics.replica(topic, 0)
        found: list[DecodedRecord] = []

        def take(records: list[DecodedRecord]) -> bool:
            found.extend(records)
            return True

        ends: list[Any] = []
        scan(replica, (0, replica.high_watermark), self.clock, take, ends.append)
        self.commit()
        assert ends == [None]
        return [record.value or b"" for record in found]

    def check(self) -> None:
        seen, dead = self.stream(TOPIC), self.stream(f"{TOPIC}.dlq")
        assert len(set(seen)) == len(seen), f"twice in the log: {seen}"
        keeps_expired = self.options["expired_messages"] == "dead-letter"
        for value, message in self.messages.items():
            if not message.is_visible:
                assert value not in seen
                continue
            if message.is_certain:
                assert value in seen, f"{value!r} was acknowledged and is not in the log"
            if value not in seen:
                continue
            is_over = message.is_acked or message.may_be_settled
            assert is_over or value in dead or (message.expires_ms is not None and not keeps_expired), (
                f"{value!r} was neither acked nor dead-lettered: {message}"
            )
            if value in dead and not message.may_be_settled:
                assert not message.is_acked
                is_expired = message.expires_ms is not None
                assert message.is_rejected or message.deliveries >= ATTEMPTS_MAX or is_expired, f"{value!r} died young"
        if self.options["lease_order"] == "key" and self.options["delay_order"] == "hold_key":
            self._check_key_order(seen)

    def _check_key_order(self, seen: list[bytes]) -> None:
        for key in (b"a", b"b"):
            sent = [value for value, one in self.messages.items() if one.wish.key == key and value in seen]
            plain = [value for value in sent if self.messages[value].wish.transaction == "none"]
            assert [value for value in seen if value in plain] == plain, f"key {key!r} is out of order"


wishes = st.builds(
    Wish,
    key=st.sampled_from([None, b"a", b"b"]),
    delay_ms=st.sampled_from([0, 0, 5, 3_000, 25_000]),
    lane=st.integers(0, 4),
    ttl_ms=st.sampled_from([0, 0, 0, 15_000]),
    transaction=st.sampled_from(["none", "none", "commit", "abort"]),
)
steps = st.one_of(
    st.tuples(st.just("publish"), wishes),
    st.tuples(st.just("publish"), wishes),
    st.tuples(st.just("advance"), st.sampled_from([20, 1_000, 4_000, 11_000])),
    st.tuples(
        st.just("receive"),
        st.tuples(st.integers(1, 4), st.lists(st.sampled_from([How.ACK, How.RETRY, How.UNDO, How.REJECT]), min_size=1)),
    ),
    st.tuples(st.just("crash"), st.integers(0, 12)),
)
topics = st.fixed_dictionaries(
    {
        "lease_order": st.sampled_from(["none", "key"]),
        "delay_order": st.sampled_from(["pass", "hold_key"]),
        "expired_messages": st.sampled_from(["dead-letter", "drop"]),
    }
)


@half_in_each_layer
@settings(max_examples=60, deadline=None)
@given(options=topics, plan=st.lists(steps, min_size=1, max_size=25), seed=st.integers(0, 2**32))
def test_everything_one_message_may_carry_combined_survives_crashes(
    half: int, options: dict[str, str], plan: list[Any], seed: int
) -> None:
    world = World({**options, "lease_ms": str(LEASE_MS), "attempts_max": str(ATTEMPTS_MAX)}, Random(seed))
    for name, argument in plan:
        try:
            match name:
                case "publish":
                    world.publish(argument)
                case "advance":
                    world.advance(argument)
                case "receive":
                    world.receive(*argument)
                case "crash":
                    world.crash(argument)
        except PowerLost:
            world.restart()
    world.disk.crash_at(None)
    try:
        world.drain()
    except PowerLost:
        world.restart()
        world.drain()
    world.check()

"""Work that is under way when a node is replaced by one of a later version: producers that may send a batch again, a
transaction that is open, records that a share group has taken or given back, logs that are compacted or torn.
"""

from pathlib import Path
from typing import Any

import confluent_kafka as ck
import httpx
from confluent_kafka import TopicPartition

from tests.integration.bare_producer import BareProducer
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.share_client import ACCEPT, REJECT, RELEASE, Place, Sharer, poll_until, publish, set_options
from tests.integration.wire import Wire

ONCE, LEDGER, OPEN, TASKS, STATES, TORN = "once", "ledger", "open", "tasks", "states", "torn"
SHARERS = "sharers"
TASKS_COUNT = 30
TIMEOUT_MS = 10_000
"""Of the open transaction: long enough for a node to start and stop meanwhile."""
HEAD_BYTES = 12
"""Of a batch: its offset, and the length of what follows."""


def read(node: Node, topic: str, *, committed_only: bool = False) -> list[list[Any]]:
    """Offset and value of all that can be read of partition 0."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": node.address,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(DEADLINE_S)) is not None:
        error = message.error()
        if error is not None:
            assert error.code() == ck.KafkaError._PARTITION_EOF, error
            break
        found.append([message.offset(), (message.value() or b"").decode()])
    consumer.close()
    return found


class Work:
    """Begins it on a node, and tells what has to come of it. Through public APIs only: it runs on every version."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._http = httpx.Client(base_url=node.url, timeout=60)

    def begin(self) -> dict[str, Any]:
        for topic in (ONCE, LEDGER, OPEN, TASKS, TORN):
            self._create(topic)
        begun: dict[str, Any] = {"share": self._share(), "states": self._compacted(), "torn": self._plain(TORN)}
        with Wire(self._node) as wire:
            begun["producer"] = self._idempotent(wire)
            begun["ledger"] = self._transactions(wire)
            self._leave_open(wire)
        self._http.close()
        return begun

    def _create(self, topic: str, **options: str) -> None:
        said = {name.replace("_", "."): text for name, text in options.items()}
        reply = self._http.post("/topics", json={"name": topic, "num_partitions": 1, "options": said})
        assert reply.is_success, reply.text

    def _idempotent(self, wire: Wire) -> list[int]:
        producer = BareProducer(wire)
        producer.init()
        assert [producer.send(ONCE, b"a", b"b")[1], producer.send(ONCE, b"c")[1]] == [0, 2]
        return [producer.id, producer.epoch]

    def _transactions(self, wire: Wire) -> list[list[Any]]:
        """What was committed: aborted ones lie before, between and behind it."""
        for turn in range(6):
            producer = BareProducer(wire, f"writer-{turn % 2}")
            producer.init()
            producer.enlist(LEDGER, 0)
            producer.send(LEDGER, f"{turn} a".encode(), f"{turn} b".encode())
            producer.end(commit=turn % 2 == 1)
        wait_until(lambda: len(read(self._node, LEDGER, committed_only=True)) == 6, "the end of all transactions")
        return read(self._node, LEDGER, committed_only=True)

    def _leave_open(self, wire: Wire) -> None:
        producer = BareProducer(wire, "left-open", TIMEOUT_MS)
        producer.init()
        producer.enlist(OPEN, 0)
        producer.send(OPEN, b"never decided")
        self._plain(OPEN)

    def _plain(self, topic: str) -> list[list[Any]]:
        """Three batches, each synced before the next is sent."""
        for number in range(3):
            body = {"messages": [{"value": f"{topic} {number}"}]}
            assert self._http.post(f"/topics/{topic}/messages", json=body).is_success
        return read(self._node, topic)

    def _share(self) -> dict[str, list[Place]]:
        set_options(self._node, SHARERS, share_auto_offset_reset="earliest")
        publish(self._node, TASKS, TASKS_COUNT)
        sharer = Sharer(self._node, SHARERS, [TASKS], is_explicit=True, settings={})
        settled: dict[str, list[Place]] = {"accepted": [], "rejected": [], "released": []}
        kinds = {"accepted": ACCEPT, "rejected": REJECT, "released": RELEASE}
        while sum(map(len, settled.values())) < TASKS_COUNT:
            for message in sharer.poll():
                place = message.partition() or 0, message.offset() or 0
                if any(place in places for places in settled.values()):
                    sharer.acknowledge(RELEASE, [message])  # it comes again, having been released
                    continue
                name = ("accepted", "accepted", "released", "accepted", "rejected")[place[1] % 5]
                settled[name].append(place)
                sharer.acknowledge(kinds[name], [message])
            sharer.commit()
        sharer.consumer.close()
        return settled

    def _compacted(self) -> list[list[Any]]:
        self._create(STATES, cleanup_policy="compact", segment_bytes=str(16 * 1024))
        for number in range(60):
            body = {"messages": [{"key": f"s{number % 4}", "value": f"{number} ".ljust(1000, ".")}]}
            assert self._http.post(f"/topics/{STATES}/messages", json=body).is_success
        assert self._http.post(f"/admin/topics/{STATES}/compact").is_success
        wait_until(lambda: len(read(self._node, STATES)) < 30, "a compaction")
        return read(self._node, STATES)


def tear(data_dir: Path) -> None:
    """As a machine that loses power in the middle of its writes leaves a directory: behind the last whole batch there
    is a half, and a snapshot is half written."""
    for log in (TORN, "@groups"):
        for directory in sorted((data_dir / "logs" / log).iterdir()):
            segments = sorted(directory.glob("*.log"))
            data = segments[-1].read_bytes()
            first, end = _ends(data)
            if first:
                half = data[: first // 2]
                segments[-1].write_bytes(data[:end] + half + data[end + len(half) :])
            (directory / f"snapshot-groups-{9:020d}-1763000000000.bin.tmp").write_bytes(b"GQ\2\0half")


def _ends(data: bytes) -> tuple[int, int]:
    """Of the first batch, and of the last."""
    first = position = 0
    while position + HEAD_BYTES <= len(data):
        length = int.from_bytes(data[position + 8 : position + HEAD_BYTES], "big")
        if not length:
            break
        position += HEAD_BYTES + length
        first = first or position
    return first, position


def open_transactions(node: Node) -> list[str]:
    reply = httpx.get(f"{node.url}/transactions", params={"state": "all"}, timeout=60)
    assert reply.is_success, reply.text
    return [each["transactional_id"] for each in reply.json()["transactions"] if each["state"] == "Ongoing"]


def taken(node: Node, group: str, count: int) -> list[tuple[Place, int]]:
    """What a share group is given, and how often each had been delivered then."""
    sharer = Sharer(node, group, [TASKS], is_explicit=True, settings={})
    found: list[tuple[Place, int]] = []

    def is_done() -> bool:
        found.extend(sharer.given)
        sharer.given.clear()
        sharer.acknowledge()
        sharer.last = []
        return len(found) >= count

    poll_until([sharer], is_done)
    sharer.commit()
    sharer.consumer.close()
    return found

"""NATS JetStream: publishes that are answered, pull consumers with an acknowledgement for each message.

An acknowledgement is not answered, as its clients have it by default; it goes with the next request in one write.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.link import Link
from benchmarks.peers.nats import Came, header_block, publish, stored_sequence, take_messages
from benchmarks.peers.system import HOST, ProcessTree, free_ports, number_of, numbered, numbered_batches, started
from benchmarks.produce_load import Record, Shape
from benchmarks.receivers import Receiver
from benchmarks.senders import Sender
from tools.nats.server import NATS

CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n'
INBOX = b"_INBOX.bench"
WAIT_NS = 100_000_000
ACK = b"+ACK"
SETTINGS = """listen: "{host}:{port}"
jetstream {{ store_dir: "{data}", sync_interval: {sync} }}
"""


class Nats:
    name = "nats"

    def title(self) -> str:
        NATS.build(print)
        return f"NATS JetStream {NATS.version}"

    @contextmanager
    def start(self, place: Path, *, is_synced: bool) -> Iterator["NatsRunning"]:
        (port,) = free_ports(1)
        address = f"{HOST}:{port}"
        settings = place / "nats.conf"
        sync = "always" if is_synced else '"2m"'
        settings.write_text(SETTINGS.format(host=HOST, port=port, data=place / "data", sync=sync))
        with started([NATS.build(), "-c", settings], place, lambda: NatsLink(address).close()) as tree:
            yield NatsRunning(tree, place, address)


class NatsLink(Link):
    """With one inbox for all answers."""

    _inboxes = 0

    def __init__(self, address: str) -> None:
        super().__init__(address)
        NatsLink._inboxes += 1
        self.inbox = b"%b.%d" % (INBOX, NatsLink._inboxes)
        self.send(CONNECT + b"SUB %b 1\r\nPING\r\n" % self.inbox)
        while b"PONG\r\n" not in self.received:
            self.fill()
        self.received.clear()

    def take(self) -> list[Came]:
        self.fill()
        return take_messages(self.received)

    def ask(self, subject: str, **content: Any) -> dict[str, Any]:
        self.send(publish(subject.encode(), json.dumps(content).encode(), self.inbox))
        came: list[Came] = []
        while not came:
            came = self.take()
        answer: dict[str, Any] = json.loads(came[0].payload)
        assert "error" not in answer, answer
        return answer


class NatsRunning:
    def __init__(self, process: ProcessTree, directory: Path, address: str) -> None:
        self.process = process
        self.directory = directory
        self._address = address

    def _ask(self, subject: str, **content: Any) -> None:
        link = NatsLink(self._address)
        link.ask(f"$JS.API.{subject}", **content)
        link.close()

    def make(self, topic: str, partitions: int = 1) -> None:
        assert partitions == 1
        self._ask(f"STREAM.CREATE.{topic}", name=topic, subjects=[topic], storage="file", num_replicas=1)

    def senders(self, topic: str, partitions: int, shape: Shape, messages: int) -> tuple[list[Sender], int]:
        assert partitions == 1
        made = []
        per_connection, sent = numbered_batches(shape, messages)
        for batches in per_connection:
            link = NatsLink(self._address)
            frames = [b"".join(add(topic, link.inbox, *each) for each in batch) for batch in batches]
            made.append(Sender(link.socket, frames, count_stored, shape.requests_ahead, shape.batch))
        return made, sent

    def values_sender(self, topic: str, values: Sequence[bytes]) -> Sender:
        link = NatsLink(self._address)
        frames = [publish(topic.encode(), value, link.inbox) for value in values]
        return Sender(link.socket, frames, count_stored, len(frames), 1)

    def receivers(self, topic: str, groups: Sequence[str], pull: int) -> list[Receiver]:
        for group in sorted(set(groups)):
            config = {"durable_name": group, "ack_policy": "explicit", "deliver_policy": "all"}
            self._ask(f"CONSUMER.DURABLE.CREATE.{topic}.{group}", stream_name=topic, config=config)
        return [NatsConsumer(self._address, topic, group, pull) for group in groups]

    def reader(self, topic: str) -> "NatsReader":
        return NatsReader(self._address, topic)


class NatsConsumer:
    def __init__(self, address: str, topic: str, group: str, pull: int) -> None:
        self.group = group
        self.requests = 0
        self.link = NatsLink(address)
        self._pull = pull
        self._held: list[bytes] = []
        content = json.dumps({"batch": pull, "expires": WAIT_NS}).encode()
        self._next = publish(f"$JS.API.CONSUMER.MSG.NEXT.{topic}.{group}".encode(), content, self.link.inbox)
        self.link.send(self._next)

    def go_on(self) -> None:
        self.requests += 1
        self.link.send(b"".join(publish(reply_to, ACK) for reply_to in self._held) + self._next)

    def take(self) -> tuple[Iterable[int], int]:
        """What is held was acknowledged by the last `go_on`."""
        acknowledged, self._held = len(self._held), []
        numbers: list[int] = []
        while len(self._held) < self._pull:
            for came in self.link.take():
                if came.reply_to:
                    self._held.append(came.reply_to)
                    numbers.append(number_of(came.payload))
                else:
                    assert came.headers.startswith((b"NATS/1.0 408", b"NATS/1.0 404")), came
                    return numbers, acknowledged
        return numbers, acknowledged

    def close(self) -> int:
        self.link.send(b"".join(publish(reply_to, ACK) for reply_to in self._held) + b"PING\r\n")
        while b"PONG\r\n" not in self.link.received:
            self.link.fill()
        self.link.close()
        return len(self._held)


class NatsReader:
    """A push consumer that acknowledges nothing."""

    def __init__(self, address: str, topic: str) -> None:
        self._link = NatsLink(address)
        self.socket = self._link.socket
        asking = NatsLink(address)
        config = {"deliver_subject": self._link.inbox.decode(), "ack_policy": "none", "deliver_policy": "all"}
        asking.ask(f"$JS.API.CONSUMER.CREATE.{topic}", stream_name=topic, config=config)
        asking.close()

    def receive(self) -> Iterable[int]:
        return [number_of(came.payload) for came in self._link.take()]


def add(topic: str, inbox: bytes, number: int, record: Record) -> bytes:
    pairs = [(b"key", record.key)] if record.key is not None else []
    # Values of headers are text here, so bytes are written as such.
    pairs += [(name.encode(), (value or b"").hex().encode()[:12]) for name, value in record.headers]
    return publish(topic.encode(), numbered(record, number), inbox, header_block(pairs))


def count_stored(received: bytearray) -> int:
    return sum(1 for came in take_messages(received) if stored_sequence(came.payload))

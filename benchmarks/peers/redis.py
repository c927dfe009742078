"""Redis Streams: XADD, and XREADGROUP with the XACK of what came before in the same write."""

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from benchmarks.peers.link import Link
from benchmarks.peers.resp import Refused, command, take_replies
from benchmarks.peers.system import (
    HOST,
    ProcessTree,
    free_ports,
    libraries,
    number_of,
    numbered,
    numbered_batches,
    started,
)
from benchmarks.produce_load import Record, Shape
from benchmarks.receivers import Receiver
from benchmarks.senders import Sender, connect
from tools.debian import find_package

WAIT_MS = 100
READ_WAIT_MS = 1000
PACKAGE = "redis-server"


class Redis:
    name = "redis"

    def title(self) -> str:
        said = subprocess.run([self._program, "--version"], env=libraries(self._root), capture_output=True, check=True)
        found = re.search(rb"v=([0-9.]+)", said.stdout)
        assert found is not None
        return f"Redis Streams {found[1].decode()}"

    @property
    def _root(self) -> Path:
        return find_package(PACKAGE, print)

    @property
    def _program(self) -> Path:
        return self._root / "usr" / "bin" / "redis-server"

    @contextmanager
    def start(self, place: Path, *, is_synced: bool) -> Iterator["RedisRunning"]:
        (port,) = free_ports(1)
        address = f"{HOST}:{port}"
        call = [
            *(self._program, "--port", str(port), "--bind", HOST, "--dir", place, "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always" if is_synced else "no"),
            *("--auto-aof-rewrite-percentage", "0"),
        ]
        with started(call, place, lambda: ask(address, command("PING")), libraries(self._root)) as tree:
            yield RedisRunning(tree, place, address)


class RedisRunning:
    def __init__(self, process: ProcessTree, directory: Path, address: str) -> None:
        self.process = process
        self.directory = directory
        self.address = address

    def make(self, topic: str, partitions: int = 1) -> None:
        """A stream is there with its first message."""
        assert partitions == 1, topic

    def senders(self, topic: str, partitions: int, shape: Shape, messages: int) -> tuple[list[Sender], int]:
        assert partitions == 1
        made = []
        per_connection, sent = numbered_batches(shape, messages)
        for batches in per_connection:
            frames = [b"".join(add(topic, record, number) for number, record in batch) for batch in batches]
            made.append(Sender(connect(self.address), frames, count_added, shape.requests_ahead, shape.batch))
        return made, sent

    def values_sender(self, topic: str, values: Sequence[bytes]) -> Sender:
        frames = [command("XADD", topic, "*", "v", value) for value in values]
        return Sender(connect(self.address), frames, count_added, len(frames), 1)

    def receivers(self, topic: str, groups: Sequence[str], pull: int) -> list[Receiver]:
        for group in sorted(set(groups)):
            ask(self.address, command("XGROUP", "CREATE", topic, group, "0", "MKSTREAM"))
        return [RedisConsumer(self.address, topic, group, number, pull) for number, group in enumerate(groups)]

    def reader(self, topic: str) -> "RedisReader":
        return RedisReader(self.address, topic)


class RedisConsumer:
    def __init__(self, address: str, topic: str, group: str, number: int, pull: int) -> None:
        self.group = group
        self.requests = 0
        self.link = Link(address)
        self._topic = topic
        self._held: list[bytes] = []
        self._replies_due = 0
        self._read = command(
            *("XREADGROUP", "GROUP", group, f"consumer-{number}", "COUNT", pull, "BLOCK", WAIT_MS),
            *("STREAMS", topic, ">"),
        )
        self.go_on()

    def go_on(self) -> None:
        self.requests += 1
        acknowledged = command("XACK", self._topic, self.group, *self._held) if self._held else b""
        self._replies_due = 2 if self._held else 1
        self.link.send(acknowledged + self._read)

    def take(self) -> tuple[Iterable[int], int]:
        replies: list[Any] = []
        while len(replies) < self._replies_due:
            self.link.fill()
            replies += take_replies(self.link.received)
        acknowledged = replies[0] if len(replies) == 2 else 0
        entries = entries_of(replies[-1])
        self._held = [entry_id for entry_id, _ in entries]
        return [number_of(value) for _, value in entries], acknowledged

    def close(self) -> int:
        """What is held was taken by the last `take`."""
        if self._held:
            self.link.send(command("XACK", self._topic, self.group, *self._held))
            self.link.fill()
            (count,) = take_replies(self.link.received)
            assert count == len(self._held)
        self.link.close()
        return len(self._held)


class RedisReader:
    def __init__(self, address: str, topic: str) -> None:
        self._link = Link(address)
        self.socket = self._link.socket
        self._topic = topic
        self._after = b"0"
        self._read()

    def _read(self) -> None:
        self._link.send(command("XREAD", "BLOCK", READ_WAIT_MS, "STREAMS", self._topic, self._after))

    def receive(self) -> Iterable[int]:
        self._link.fill()
        numbers = []
        for reply in take_replies(self._link.received):
            entries = entries_of(reply)
            if entries:
                self._after = entries[-1][0]
            numbers += [number_of(value) for _, value in entries]
            self._read()
        return numbers


def ask(address: str, sent: bytes) -> Any:
    link = Link(address)
    link.send(sent)
    replies: list[Any] = []
    try:
        while not replies:
            link.fill()
            replies = take_replies(link.received)
    except Refused as error:
        raise OSError(str(error)) from error
    finally:
        link.close()
    return replies[0]


def add(topic: str, record: Record, number: int) -> bytes:
    fields: list[bytes | str] = ["v", numbered(record, number)]
    if record.key is not None:
        fields += ["k", record.key]
    for name, value in record.headers:
        fields += [name, value or b""]
    return command("XADD", topic, "*", *fields)


def count_added(received: bytearray) -> int:
    return len(take_replies(received))


def entries_of(reply: Any) -> list[tuple[bytes, bytes]]:
    """Ids and values: a reply has one stream, or is nothing after a wait in vain."""
    if reply is None:
        return []
    return [(entry_id, cast(bytes, fields[1])) for entry_id, fields in reply[0][1]]

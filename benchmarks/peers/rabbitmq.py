"""RabbitMQ: persistent messages with confirms; consumers with a prefetch and one acknowledgement of all that they hold.

A confirm comes when a message is on the disk: there is no persistent message that is only in the page cache. An
acknowledgement is not answered.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.peers import amqp
from benchmarks.peers.link import Link
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
from benchmarks.senders import Sender
from tools.debian import find_package

PACKAGE = "rabbitmq-server"
WAIT_S = 0.1
ERLANG = "usr/lib/erlang"
SETTINGS = """listeners.tcp.1 = {host}:{port}
log.console = true
log.console.level = error
log.file = false
"""
LOGIN = b"\x00guest\x00guest"
FRAME_BYTES_MAX = 131072


class Rabbit:
    def __init__(self, kind: str) -> None:
        self.name = f"rabbitmq-{kind}"
        self._kind = kind

    def title(self) -> str:
        return f"RabbitMQ {_home().name.rpartition('-')[2]} {self._kind}"

    @contextmanager
    def start(self, place: Path, *, is_synced: bool) -> Iterator["RabbitRunning"]:  # noqa: ARG002  it always syncs
        port, distribution, names = free_ports(3)
        address = f"{HOST}:{port}"
        binaries = _erlang(place)
        settings = place / "rabbitmq.conf"
        settings.write_text(SETTINGS.format(host=HOST, port=port))
        environment = libraries(find_package(PACKAGE)) | {
            "HOME": str(place),
            "PATH": f"{binaries}:/usr/sbin:/usr/bin:/sbin:/bin",
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_CONFIG_FILE": str(settings),
            "RABBITMQ_MNESIA_BASE": str(place / "data"),
            "RABBITMQ_LOG_BASE": str(place / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "plugins"),
            "RABBITMQ_PID_FILE": str(place / "pid"),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false",
        }
        with ExitStack() as stack:
            # Erlang would leave its daemon of names behind.
            named: list[str | Path] = [binaries / "epmd", "-port", str(names), "-address", HOST]
            epmd = place / "epmd"
            epmd.mkdir()
            stack.enter_context(started(named, epmd, lambda: Link(f"{HOST}:{names}").close(), environment))
            server = [_home() / "sbin" / "rabbitmq-server"]
            tree = stack.enter_context(started(server, place, lambda: RabbitLink(address).close(), environment))
            yield RabbitRunning(tree, place, address, self._kind)


def _home() -> Path:
    (found,) = (find_package(PACKAGE, print) / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
    return found


def _erlang(place: Path) -> Path:
    """The directory with `erl`, which has to be told where Erlang was unpacked."""
    root = find_package(PACKAGE) / ERLANG
    made = place / "bin"
    made.mkdir()
    for program in (root / "bin").iterdir():
        if program.name == "erl":
            script = program.read_text("utf-8").replace(f"ROOTDIR=/{ERLANG}", f"ROOTDIR={root}")
            (made / "erl").write_text(script)
            (made / "erl").chmod(0o755)
        else:
            (made / program.name).symlink_to(program)
    return made


class RabbitLink(Link):
    """With one channel."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._frames: list[amqp.Frame] = []
        self.send(amqp.HELLO)
        self.wait(amqp.START)
        login = amqp.table({}) + amqp.short("PLAIN") + amqp.long(LOGIN) + amqp.short("en_US")
        self.send(amqp.call(amqp.START_OK, login, 0))
        self.wait(amqp.TUNE)
        limits = (2047).to_bytes(2, "big") + FRAME_BYTES_MAX.to_bytes(4, "big") + b"\x00\x00"  # no heartbeats
        self.send(amqp.call(amqp.TUNE_OK, limits, 0))
        self.ask(amqp.OPEN, amqp.short("/") + b"\x00\x00", amqp.OPEN_OK, 0)
        self.ask(amqp.CHANNEL_OPEN, b"\x00", amqp.CHANNEL_OPEN_OK)

    def ask(self, method: amqp.Method, arguments: bytes, answer: amqp.Method, channel: int = amqp.CHANNEL) -> None:
        self.send(amqp.call(method, arguments, channel))
        self.wait(answer)

    def wait(self, method: amqp.Method) -> None:
        """For a method; frames behind it are kept."""
        while True:
            while self._frames:
                if self._frames.pop(0).method == method:
                    return
            self.fill()
            self._frames += amqp.take_frames(self.received)

    def take(self) -> list[amqp.Frame]:
        """Those that have come, if any."""
        frames, self._frames = self._frames + amqp.take_frames(self.received), []
        return frames


class RabbitRunning:
    def __init__(self, process: ProcessTree, directory: Path, address: str, kind: str) -> None:
        self.process = process
        self.directory = directory
        self._address = address
        self._kind = kind

    def make(self, topic: str, partitions: int = 1) -> None:
        assert partitions == 1
        link = RabbitLink(self._address)
        durable = b"\x02"
        kind = amqp.table({"x-queue-type": self._kind.encode()})
        link.ask(amqp.QUEUE_DECLARE, b"\x00\x00" + amqp.short(topic) + durable + kind, amqp.QUEUE_DECLARE_OK)
        link.close()

    def _publisher(self) -> RabbitLink:
        link = RabbitLink(self._address)
        link.ask(amqp.SELECT, b"\x00", amqp.SELECT_OK)
        return link

    def senders(self, topic: str, partitions: int, shape: Shape, messages: int) -> tuple[list[Sender], int]:
        assert partitions == 1
        made = []
        per_connection, sent = numbered_batches(shape, messages)
        for batches in per_connection:
            frames = [b"".join(add(topic, *each) for each in batch) for batch in batches]
            made.append(Sender(self._publisher().socket, frames, amqp.Confirms(), shape.requests_ahead, shape.batch))
        return made, sent

    def values_sender(self, topic: str, values: Sequence[bytes]) -> Sender:
        frames = [amqp.publish(topic, value, {}) for value in values]
        return Sender(self._publisher().socket, frames, amqp.Confirms(), len(frames), 1)

    def receivers(self, topic: str, groups: Sequence[str], pull: int) -> list[Receiver]:
        assert len(set(groups)) == 1, "a queue has one group"
        return [RabbitConsumer(self._address, topic, group, pull) for group in groups]

    def reader(self, topic: str) -> "RabbitReader":
        return RabbitReader(self._address, topic)


def consume(link: RabbitLink, queue: str, *, is_acknowledged: bool) -> None:
    flags = b"\x00" if is_acknowledged else b"\x02"
    arguments = b"\x00\x00" + amqp.short(queue) + amqp.short("") + flags + amqp.table({})
    link.ask(amqp.CONSUME, arguments, amqp.CONSUME_OK)


class RabbitConsumer:
    def __init__(self, address: str, topic: str, group: str, pull: int) -> None:
        self.group = group
        self.requests = 0
        self.link = RabbitLink(address)
        self._pull = pull
        self._held = self._last_tag = 0
        self.link.ask(amqp.QOS, b"\x00\x00\x00\x00" + pull.to_bytes(2, "big") + b"\x00", amqp.QOS_OK)
        consume(self.link, topic, is_acknowledged=True)

    def go_on(self) -> None:
        self.requests += 1
        if self._held:
            self.link.send(amqp.ack(self._last_tag, is_multiple=True))

    def take(self) -> tuple[Iterable[int], int]:
        """What is held was acknowledged by the last `go_on`."""
        acknowledged, self._held = self._held, 0
        numbers: list[int] = []
        deadline_s = time.monotonic() + WAIT_S
        while True:
            for frame in self.link.take():
                if frame.method == amqp.DELIVER:
                    self._last_tag = amqp.delivery_tag(frame.payload)
                elif frame.kind == amqp.BODY:
                    numbers.append(number_of(frame.payload))
            self._held = len(numbers)
            left_s = deadline_s - time.monotonic()
            if self._held == self._pull or left_s <= 0:
                return numbers, acknowledged
            self.link.socket.settimeout(left_s)
            try:
                self.link.fill()
            except TimeoutError:
                return numbers, acknowledged

    def close(self) -> int:
        self.go_on()
        self.link.socket.settimeout(None)
        self.link.ask(amqp.QOS, b"\x00\x00\x00\x00\x00\x01\x00", amqp.QOS_OK)  # answered behind the acknowledgement
        self.link.close()
        return self._held


class RabbitReader:
    def __init__(self, address: str, topic: str) -> None:
        self._link = RabbitLink(address)
        self.socket = self._link.socket
        consume(self._link, topic, is_acknowledged=False)

    def receive(self) -> Iterable[int]:
        self._link.fill()
        return [number_of(frame.payload) for frame in self._link.take() if frame.kind == amqp.BODY]


def add(topic: str, number: int, record: Record) -> bytes:
    headers = {name: value or b"" for name, value in record.headers}
    if record.key is not None:
        headers["key"] = record.key
    return amqp.publish(topic, numbered(record, number), headers)

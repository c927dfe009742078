"""GoQueue and Kafka: the same requests over the same protocol, byte for byte."""

import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks.peers.system import HOST, ProcessTree, free_ports, number_of, started
from benchmarks.produce_load import Shape, kafka_senders, values_sender
from benchmarks.receivers import Receiver
from benchmarks.senders import Sender
from benchmarks.share_load import METADATA_VERSION, Wire, find_topic_id, share_members
from goqueue.cli.bench.broker import own_broker
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.librdkafka import Topic
from goqueue.model.own_version import own_version
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.wire.kafka.messages import fetch, metadata
from tools.kafka_jars import find_jars
from tools.kafka_tools import TOOLS

KAFKA_VERSION = "4.3.1"
HEAP = "1g"
JVM = (
    *(f"-Xms{HEAP}", f"-Xmx{HEAP}", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
"""As Kafka's own scripts start it."""
PROPERTIES = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller}
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.share.max.groups=1000
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=60000
auto.create.topics.enable=false
log.retention.ms=-1
"""
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
ANSWER_S_MAX = 60
READY_S_MAX = 300
"""For a topic with many partitions on a busy machine."""
FETCH_VERSION = 13
WAIT_MS = 500
BYTES_MAX = 1 << 20


class GoQueue:
    name = "goqueue"

    def title(self) -> str:
        return f"GoQueue {own_version()}"

    @contextmanager
    def start(self, place: Path, *, is_synced: bool) -> Iterator["KafkaRunning"]:
        began_s = time.monotonic()
        with own_broker(place) as broker:
            _hello(broker.address)
            tree = ProcessTree(broker.process.pid)
            tree.start_s = time.monotonic() - began_s
            durability = "disk" if is_synced else "os"
            yield KafkaRunning(tree, broker.directory, broker.address, {"durability": durability}, durability)


class Kafka:
    name = "kafka"

    def title(self) -> str:
        find_jars(TOOLS, KAFKA_VERSION)
        return f"Kafka {KAFKA_VERSION}"

    @contextmanager
    def start(self, place: Path, *, is_synced: bool) -> Iterator["KafkaRunning"]:
        port, controller = free_ports(2)
        settings = place / "server.properties"
        settings.write_text(PROPERTIES.format(host=HOST, port=port, controller=controller, data=place / "data"))
        java = ("java", *JVM, "-cp", f"{find_jars(TOOLS, KAFKA_VERSION)}/*")
        layout = ("format", "--standalone", "-t", CLUSTER_ID, "-c", str(settings))
        subprocess.run([*java, "kafka.tools.StorageTool", *layout], check=True, capture_output=True, timeout=60)
        address = f"{HOST}:{port}"
        with started([*java, "kafka.Kafka", str(settings)], place, lambda: _hello(address)) as tree:
            config = {"flush.messages": "1"} if is_synced else {}
            yield KafkaRunning(tree, place, address, config)


class KafkaRunning:
    def __init__(
        self,
        process: ProcessTree,
        directory: Path,
        address: str,
        topic_config: dict[str, str],
        durability: str | None = None,
    ) -> None:
        self.process = process
        self.directory = directory
        self.address = address
        self.durability = durability
        """As a topic of ours is told; Kafka has no such thing."""
        self._topic_config = topic_config
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": 0})

    def make(self, topic: str, partitions: int = 1) -> None:
        new = NewTopic(topic, partitions, 1, config=self._topic_config)
        self._admin.create_topics([new], request_timeout=ANSWER_S_MAX)[topic].result(ANSWER_S_MAX)
        _wait_leaders(Topic(topic, partitions, None, self._admin))

    def senders(self, topic: str, partitions: int, shape: Shape, messages: int) -> tuple[list[Sender], int]:
        return kafka_senders(topic, dict.fromkeys(range(partitions), self.address), shape, messages)

    def values_sender(self, topic: str, values: Sequence[bytes]) -> Sender:
        return values_sender(topic, self.address, values)

    def receivers(self, topic: str, groups: Sequence[str], pull: int) -> list[Receiver]:
        for group in sorted(set(groups)):
            entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
            for future in self._admin.incremental_alter_configs([resource]).values():
                future.result(ANSWER_S_MAX)
        return list(share_members(self.address, groups, topic, pull))

    def reader(self, topic: str) -> "KafkaReader":
        return KafkaReader(self.address, topic)


class KafkaReader:
    """A fetch waits at the broker, always."""

    def __init__(self, address: str, topic: str) -> None:
        self._topic_id = find_topic_id(address, topic)
        self._wire = Wire(address)
        self._offset = 0
        self.socket = self._wire.socket
        self._fetch()

    def _fetch(self) -> None:
        place = fetch.FetchPartition(0, fetch_offset=self._offset, partition_max_bytes=BYTES_MAX)
        topics = [fetch.FetchTopic(topic_id=self._topic_id, partitions=[place])]
        request = fetch.FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=BYTES_MAX, topics=topics)
        self._wire.send(request, FETCH_VERSION)

    def receive(self) -> Iterable[int]:
        answer = self._wire.receive(fetch.FetchResponse, FETCH_VERSION)
        assert answer.error_code == 0, answer
        (part,) = (part for topic in answer.responses for part in topic.partitions)
        assert part.error_code == 0, part
        records = [record for batch in split(memoryview(part.records or b"")) for record in decode(batch)]  # type: ignore[arg-type]
        if records:
            self._offset = records[-1].offset + 1
        self._fetch()
        return [number_of(bytes(record.value or b"")) for record in records]


def _hello(address: str) -> None:
    asking = Wire(address)
    asking.call(metadata.MetadataRequest([]), METADATA_VERSION, metadata.MetadataResponse)
    asking.close()


def _wait_leaders(topic: Topic) -> None:
    """Kafka says that a topic is made before its partitions take anything."""
    deadline_s = time.monotonic() + READY_S_MAX
    while True:
        try:
            topic.ends()
            return
        except KafkaException as error:
            if time.monotonic() > deadline_s:
                raise BenchFailed(f"{topic.name} is not there after {READY_S_MAX} s: {error.args[0].str()}") from error
            time.sleep(0.05)

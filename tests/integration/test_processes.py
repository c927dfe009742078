"""`goqueue serve --processes 2`: one machine, two cores, and to every client one broker that keeps its promises."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka as ck
import httpx
import pytest

from tests.integration.confluent_client import Confluent
from tests.integration.dev_cluster import is_alive
from tests.integration.history import History
from tests.integration.process import DEADLINE_S, GOQUEUE, Node, wait_until
from tests.integration.sqs_door import client_of
from tests.integration.test_cluster_grpc import walked
from tests.integration.test_crashes import BETWEEN_KILLS, Load
from tests.integration.topics import create_topic

PARTITIONS = 4
KILLS = 2


class Processes(Node):
    """A supervisor and its members."""

    def __init__(self, directory: Path, *arguments: str, is_closed: bool = False) -> None:
        super().__init__(directory, "--processes", "2", *arguments, is_closed=is_closed)
        self._ready_file = directory / "ready.json"

    @property
    def pids(self) -> list[int]:
        """Of the members."""
        return [each["pid"] for each in json.loads(self._ready_file.read_text("utf-8"))["members"]]

    @property
    def addresses(self) -> str:
        """Of the members, for a Kafka client that shall find one of them."""
        return ",".join(each["kafka"] for each in json.loads(self._ready_file.read_text("utf-8"))["members"])

    def kill_member(self, number: int) -> None:
        """And wait until it is back."""
        before = self.pids
        os.kill(before[number - 1], signal.SIGKILL)
        wait_until(lambda: self.pids[number - 1] != before[number - 1], f"the restart of member {number}")
        after = self.pids
        assert [pid for pid in after if pid in before] == [pid for at, pid in enumerate(before) if at != number - 1]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    running = Processes(tmp_path)
    try:
        running.start()
        yield running
    finally:
        running.clean_up()


def ends(node: Processes, topic: str) -> dict[tuple[str, int], int]:
    consumer = ck.Consumer({"bootstrap.servers": node.addresses, "group.id": "ends"})
    try:
        return {
            (topic, number): consumer.get_watermark_offsets(ck.TopicPartition(topic, number), DEADLINE_S)[1]
            for number in range(PARTITIONS)
        }
    finally:
        consumer.close()


def test_every_api_serves_what_any_member_has(processes: Processes) -> None:
    create_topic(processes.address, "orders", PARTITIONS)
    partitions = httpx.get(f"{processes.url}/cluster/partitions?topic=orders").json()["partitions"]
    assert sorted(each["leader"] for each in partitions) == [1, 1, 2, 2]
    producer = ck.Producer({"bootstrap.servers": processes.address})
    for number in range(40):
        producer.produce("orders", b"kafka-%d" % number, partition=number % PARTITIONS)
    assert producer.flush(DEADLINE_S) == 0
    for number in range(20):  # each on a connection of its own: some come to either member
        sent = {"messages": [{"value": f"http-{number}"}]}
        assert httpx.post(f"{processes.url}/topics/orders/messages", json=sent).status_code == 200
    told = {f"kafka-{number}" for number in range(40)} | {f"http-{number}" for number in range(20)}
    assert {value.decode() for value in read_all(processes)} == told
    assert received(processes, "orders", "all") == told
    for _ in range(6):  # whichever member is scraped
        page = httpx.get(f"{processes.url}/metrics").text
        assert set(re.findall(r'^process_open_fds\{node_id="(\d+)"\}', page, re.MULTILINE)) == {"1", "2"}
        assert set(re.findall(r'^goqueue_.*node_id="(\d+)"', page, re.MULTILINE)) == {"1", "2"}


def read_all(node: Processes) -> list[bytes]:
    found = ends(node, "orders")
    return [record.value or b"" for record in Confluent.read(node.addresses, found)]


@pytest.mark.second_layer
def test_sqs_goes_through_one_port_to_all_members(processes: Processes) -> None:
    clients = [client_of(processes.url) for _ in range(6)]
    url = clients[0].create_queue(QueueName="jobs")["QueueUrl"]
    told = {f"job-{number}" for number in range(30)}
    for number, body in enumerate(sorted(told)):
        clients[number % len(clients)].send_message(QueueUrl=url, MessageBody=body)
    got: list[str] = []
    while len(got) < len(told):
        client = clients[len(got) % len(clients)]
        for message in client.receive_message(QueueUrl=url, MaxNumberOfMessages=5, WaitTimeSeconds=5)["Messages"]:
            got.append(message["Body"])
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert sorted(got) == sorted(told)


@pytest.mark.second_layer
def test_every_method_of_grpc_is_answered_as_by_one_process(node: Node, processes: Processes) -> None:
    alone = walked([node.grpc], "processes-alone")
    for number in range(2):  # two connections
        assert walked([processes.grpc], f"processes-{number}") == alone


@pytest.mark.second_layer
def test_after_kill_9_of_a_member_under_load_nothing_acknowledged_is_lost(processes: Processes) -> None:
    create_topic(processes.address, "loaded", PARTITIONS)
    history = History()
    producers = [Confluent.producer(processes.addresses, idempotent=True) for _ in range(2)]
    loads = [Load(history, f"load-{number}", each, "loaded") for number, each in enumerate(producers)]
    try:
        for number in range(KILLS):
            enough = history.acknowledged + BETWEEN_KILLS
            history.wait_for(lambda enough=enough: history.acknowledged >= enough, "acknowledgement")  # type: ignore[misc]
            processes.kill_member(1 + number % 2)
        enough = history.acknowledged + BETWEEN_KILLS
        history.wait_for(lambda: history.acknowledged >= enough, "acknowledgement")
    finally:
        for load in loads:
            load.stop()
    history.wait_for(lambda: True, "an end without failures")
    assert history.faults(Confluent.read(processes.addresses, ends(processes, "loaded"))) == []


def test_a_member_that_is_stopped_by_a_signal_is_started_again_and_has_everything(processes: Processes) -> None:
    create_topic(processes.address, "orders", PARTITIONS)
    sent = {"messages": [{"value": str(number)} for number in range(20)]}
    assert httpx.post(f"{processes.url}/topics/orders/messages", json=sent).status_code == 200
    before = processes.pids
    os.kill(before[1], signal.SIGSTOP)
    wait_until(lambda: processes.pids[1] != before[1], "the restart of member 2")
    assert processes.pids[0] == before[0]
    assert not is_alive(before[1])
    assert {value.decode() for value in read_all(processes)} == {str(number) for number in range(20)}


@pytest.mark.second_layer
def test_after_kill_9_of_the_supervisor_its_members_end_and_a_start_has_everything(processes: Processes) -> None:
    create_topic(processes.address, "kept", PARTITIONS)
    history = History()
    load = Load(history, "load", Confluent.producer(processes.addresses, idempotent=True), "kept")
    try:
        for _ in range(KILLS):
            enough = history.acknowledged + BETWEEN_KILLS
            history.wait_for(lambda enough=enough: history.acknowledged >= enough, "acknowledgement")  # type: ignore[misc]
            members = processes.pids
            processes.kill()
            wait_until(lambda members=members: not any(map(is_alive, members)), "the end of the members")  # type: ignore[misc]
            processes.start()
    finally:
        load.stop()
    history.wait_for(lambda: True, "an end without failures")
    assert history.faults(Confluent.read(processes.addresses, ends(processes, "kept"))) == []


@pytest.mark.second_layer
def test_a_stop_ends_all_and_the_next_start_has_everything(processes: Processes) -> None:
    create_topic(processes.address, "orders", PARTITIONS)
    sent = {"messages": [{"value": str(number)} for number in range(20)]}
    assert httpx.post(f"{processes.url}/topics/orders/messages", json=sent).status_code == 200
    members = processes.pids
    processes.stop()
    assert not any(map(is_alive, members))
    assert "ended" not in processes.log_tail
    looking = [str(GOQUEUE), "doctor", "--data-dir", str(processes.data_dir), "--server", processes.url]
    found = subprocess.run(looking, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert re.search(r"logs +ok +\d+ logs, nothing is missing", found.stdout), found.stdout
    processes.start()
    assert {value.decode() for value in read_all(processes)} == {str(number) for number in range(20)}


@pytest.mark.second_layer
def test_a_closed_machine_has_one_first_key_that_all_members_take(tmp_path: Path) -> None:
    closed = Processes(tmp_path, is_closed=True)
    try:
        closed.start()
        assert httpx.get(f"{closed.url}/topics").status_code == 401
        answers = [httpx.get(f"{closed.url}/topics", headers={"X-API-Key": closed.first_key}) for _ in range(10)]
        assert {each.status_code for each in answers} == {200}
        assert list(tmp_path.rglob("bootstrap.key")) == [tmp_path / "bootstrap.key"]
    finally:
        closed.clean_up()


@pytest.mark.second_layer
def test_a_directory_may_change_its_number_of_processes_and_keeps_everything(tmp_path: Path) -> None:
    node = Node(tmp_path)
    told: set[str] = set()
    try:
        node.start()
        create_topic(node.address, "orders", PARTITIONS)
        create_topic(node.address, "done", 2)
        publish(node, "done", {"first"})
        assert received(node, "done", "workers") == {"first"}
        for turn, processes in enumerate((1, 2, 1)):
            if turn:
                node.stop()
                node.arguments = ("--processes", str(processes))
                node.start()
            told |= publish(node, "orders", {f"{turn}-{number}" for number in range(8)})
            consumed(node, "readers", 8)  # since it was committed elsewhere: neither more nor less
            assert received(node, "orders", f"group-{turn}") == told
            assert received(node, "done", "workers") == set()
            partitions = httpx.get(f"{node.url}/cluster/partitions?topic=orders").json()["partitions"]
            assert {each["leader"] for each in partitions} == set(range(1, processes + 1))
            assert httpx.get(f"{node.url}/readyz").json()["status"] == "pass"
    finally:
        node.clean_up()


def publish(node: Node, topic: str, values: set[str]) -> set[str]:
    producer = ck.Producer({"bootstrap.servers": node.address, "enable.idempotence": True})
    for number, value in enumerate(sorted(values)):
        producer.produce(topic, value.encode(), key=b"%d" % number)
    assert producer.flush(DEADLINE_S) == 0
    return values


def consumed(node: Node, group: str, count: int) -> None:
    """By a group that goes on where it was."""
    settings = {"bootstrap.servers": node.address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = ck.Consumer({**settings, "enable.auto.commit": False})
    try:
        consumer.subscribe(["orders"])
        got = [each for each in consumer.consume(count, DEADLINE_S) if each.error() is None]
        assert len(got) == count
        consumer.commit(asynchronous=False)
        assert consumer.consume(1, 0.2) == []
    finally:
        consumer.close()


def received(node: Node, topic: str, group: str) -> set[str]:
    """And acknowledged."""
    got: set[str] = set()
    wanted = {"group": group, "max_messages": 10, "wait": "1s"}
    while messages := httpx.post(f"{node.url}/topics/{topic}/receive", json=wanted).json()["messages"]:
        got |= {each["value"] for each in messages}
        for each in messages:
            settled = {"receipt_handle": each["receipt_handle"]}
            httpx.post(f"{node.url}/messages/ack", json=settled).raise_for_status()
    return got


def refused(directory: Path, *arguments: str) -> str:
    command = [str(GOQUEUE), "serve", "--dev", "--data-dir", str(directory), "--kafka", "127.0.0.1:0", *arguments]
    command += ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert ended.returncode == 1, ended.stderr
    return ended.stderr.strip().splitlines()[-1]


@pytest.mark.second_layer
def test_a_directory_that_others_have_is_refused_in_words(tmp_path: Path) -> None:
    several = Processes(tmp_path)
    try:
        several.start()
        words = refused(several.data_dir, "--processes", "2")
        assert re.search(r"lock is held by pid \d+", words), words
        assert re.search(r"lock is held by pid \d+", refused(several.data_dir))
    finally:
        several.clean_up()

"""One client makes and deletes a topic of a thousand partitions; another, which publishes one message at a time, goes
on being answered meanwhile. And no door lets anybody have more partitions than the node allows.
"""

import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewPartitions, NewTopic  # type: ignore[attr-defined]

from goqueue.model.codes import Code
from tests.integration.bare_producer import plain_batch, send_batch
from tests.integration.process import DEADLINE_S, Node
from tests.integration.topics import admin_client, create_topic
from tests.integration.wire import Wire

PARTITIONS = 1000
MEANWHILE_MIN = 20
"""Publishes one after the other, each begun and acknowledged within the change. A node that does the work of a change
in one go acknowledges one or two."""
LIMIT = 10


def published_during(node: Node, change: Callable[[], None]) -> int:
    """How many were begun and acknowledged, one by one, between the start and the end of `change`."""
    is_over = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            change()
        except BaseException as error:  # noqa: BLE001  raised below, in the test's own thread
            failures.append(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=run)
    meanwhile = 0
    with Wire(node) as wire:
        assert send_batch(wire, "other", plain_batch(b"before"))[0] is Code.NONE
        thread.start()
        while not is_over.is_set():
            code, _ = send_batch(wire, "other", plain_batch(b"meanwhile"))
            assert code is Code.NONE
            meanwhile += not is_over.is_set()
    thread.join()
    if failures:
        raise failures[0]
    return meanwhile


def test_a_topic_of_many_partitions_costs_others_nothing(own_node: Node) -> None:
    create_topic(own_node.address, "other", 1)
    with httpx.Client(base_url=own_node.url, timeout=DEADLINE_S) as http:

        def create() -> None:
            answer = http.post("/topics", json={"name": "many", "num_partitions": PARTITIONS})
            assert answer.status_code == 201, answer.text

        def delete() -> None:
            answer = http.delete("/topics/many")
            assert answer.status_code in (200, 204), answer.text

        assert published_during(own_node, create) >= MEANWHILE_MIN
        with Wire(own_node) as wire:
            for partition in (0, PARTITIONS // 2, PARTITIONS - 1):
                assert send_batch(wire, "many", plain_batch(b"x"), partition=partition) == (Code.NONE, 0)
        assert published_during(own_node, delete) >= 1
        assert http.get("/topics").json()["topics"] == ["other"]
    assert not (own_node.data_dir / "logs" / "many").exists()
    assert list((own_node.data_dir / "deleted").iterdir()) == []


def test_a_node_that_is_killed_while_it_makes_partitions_has_them_all_at_the_next_start(own_node: Node) -> None:
    create_topic(own_node.address, "other", 1)
    partitions = own_node.data_dir / "logs" / "many"
    with Wire(own_node) as wire:
        asking = threading.Thread(target=lambda: _ask_in_vain(own_node.url))
        asking.start()
        while not partitions.exists():
            assert send_batch(wire, "other", plain_batch(b"x"))[0] is Code.NONE
    own_node.kill()
    asking.join()
    own_node.start()
    with Wire(own_node) as wire:
        for partition in range(PARTITIONS):
            assert send_batch(wire, "many", plain_batch(b"x"), partition=partition) == (Code.NONE, 0)


def _ask_in_vain(url: str) -> None:
    with httpx.Client(base_url=url, timeout=DEADLINE_S) as http, pytest.raises(httpx.TransportError):
        http.post("/topics", json={"name": "many", "num_partitions": PARTITIONS})


@pytest.fixture(scope="module")
def small_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    running = Node(tmp_path_factory.mktemp("small"), "--partitions-max", str(LIMIT)).start()
    yield running
    running.clean_up()


def refusal_of(call: Callable[[], object]) -> tuple[Code, str]:
    with pytest.raises(KafkaException) as raised:
        call()
    error = raised.value.args[0]
    return Code(error.code()), error.str()


def test_kafka_says_how_many_partitions_there_may_be(small_node: Node) -> None:
    admin = admin_client(small_node.address)
    told = f"{LIMIT + 1} partitions; a topic may have 1 to {LIMIT} (partitions_max)"
    topic = NewTopic("kafka", LIMIT + 1, 1)
    create = admin.create_topics([topic])["kafka"]
    assert refusal_of(lambda: create.result(DEADLINE_S)) == (Code.INVALID_PARTITIONS, told)
    create_topic(small_node.address, "kafka", LIMIT)
    grow = admin.create_partitions([NewPartitions("kafka", LIMIT + 1)])["kafka"]
    assert refusal_of(lambda: grow.result(DEADLINE_S)) == (Code.INVALID_PARTITIONS, told)


@pytest.mark.parametrize("wanted", [LIMIT + 1, 10_000])
def test_http_says_how_many_partitions_there_may_be(small_node: Node, wanted: int) -> None:
    with httpx.Client(base_url=small_node.url, timeout=DEADLINE_S) as http:
        answer = http.post("/topics", json={"name": "http", "num_partitions": wanted})
        assert answer.status_code == 400
        assert answer.json()["code"] == "INVALID_PARTITIONS"
        assert f"a topic may have 1 to {LIMIT}" in answer.text
        assert "http" not in http.get("/topics").json()["topics"]

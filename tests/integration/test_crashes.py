"""kill -9 under load: nothing acknowledged is lost, nothing stands twice, order is kept."""

import threading

import pytest

from tests.integration.clients import Client, Message, Producer
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import ALL_CLIENTS, CreateTopic
from tests.integration.history import History, Sent
from tests.integration.process import Node
from tests.integration.topics import end_offsets

PARTITIONS = 3
KILLS = 3
BETWEEN_KILLS = 400
AT_ONCE = 30


class Load:
    """One idempotent producer in a thread of its own."""

    def __init__(self, history: History, name: str, producer: Producer, topic: str) -> None:
        self._history = history
        self._name = name
        self._producer = producer
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        try:
            while not self._stop.is_set():
                batch = [Sent(self._name, number + ahead, (number + ahead) % PARTITIONS) for ahead in range(AT_ONCE)]
                number += AT_ONCE
                messages = [Message(sent.partition, self._history.send(sent)) for sent in batch]
                for sent, offset in zip(batch, self._producer.send(self._topic, messages)):
                    self._history.acknowledge(sent, offset)
            self._producer.close()
        except BaseException as error:  # noqa: BLE001  the test's own thread raises it
            self._history.fail(error)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("durability", [pytest.param("disk", marks=pytest.mark.smoke), "os"])
def test_after_kill_9_under_load_every_acknowledged_message_is_there_once_and_in_order(
    own_node: Node, make_topic: CreateTopic, durability: str
) -> None:
    """All three libraries at once; see history.py for the rules."""
    topic = make_topic(PARTITIONS, durability=durability)
    history = History()
    kinds: list[type[Client]] = [*ALL_CLIENTS, Confluent]
    loads = [
        Load(history, f"{kind.name}-{number}", kind.producer(own_node.address, idempotent=True), topic)
        for number, kind in enumerate(kinds)
    ]
    try:
        for _ in range(KILLS):
            enough = history.acknowledged + BETWEEN_KILLS
            history.wait_for(lambda enough=enough: history.acknowledged >= enough, "acknowledgement")  # type: ignore[misc]
            own_node.kill()
            own_node.start()
        enough = history.acknowledged + BETWEEN_KILLS
        history.wait_for(lambda: history.acknowledged >= enough, "acknowledgement")
    finally:
        for load in loads:
            load.stop()
    history.wait_for(lambda: True, "an end without failures")
    own_node.kill()
    own_node.start()
    ends = {(topic, number): end for number, end in end_offsets(own_node, topic, PARTITIONS).items()}
    for reader in ALL_CLIENTS:
        assert history.faults(reader.read(own_node.address, ends)) == [], reader.name

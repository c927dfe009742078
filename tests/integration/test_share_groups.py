"""confluent-kafka's ShareConsumer, unmodified: who gets what, what is acknowledged, what comes again. KIP-932."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka as ck
import pytest

from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node
from tests.integration.share_client import (
    ACCEPT,
    REJECT,
    RELEASE,
    Place,
    Sharer,
    dead_letters,
    place_of,
    poll_until,
    publish,
    set_options,
)

HOUR_MS = "3600000"
OpenConsumer = Callable[..., Sharer]


@pytest.fixture
def open_consumer(request: pytest.FixtureRequest, group: str) -> Iterator[OpenConsumer]:
    """The group begins at the earliest record."""
    own = "own_node" if "own_node" in request.fixturenames else "node"
    running: Node = request.getfixturevalue(own)
    set_options(running, group, share_auto_offset_reset="earliest")
    with ExitStack() as stack:

        def open_one(*topics: str, explicit: bool = False, **settings: Any) -> Sharer:
            named = {name.replace("_", "."): value for name, value in settings.items()}
            sharer = Sharer(running, group, topics, explicit, named)
            stack.callback(sharer.consumer.close)
            return sharer

        yield open_one


# -- who gets what


def test_consumers_share_one_partition_and_get_every_record_once(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer
) -> None:
    topic = make_topic(1)
    sharers = [open_consumer(topic, max_poll_records=20) for _ in range(4)]
    wanted: set[Place] = set()
    while not all(each.given for each in sharers):  # each joins in its own time
        assert len(wanted) < 100_000
        wanted |= publish(node, topic, 200)
        for sharer in sharers:
            sharer.poll(0.05)
    poll_until(sharers, lambda: sum(len(each.given) for each in sharers) >= len(wanted))
    given = [place for each in sharers for place in each.places]
    assert sorted(given) == sorted(wanted), "each exactly once"
    assert {count for each in sharers for _, count in each.given} == {1}


def test_more_consumers_than_partitions_get_every_record_once(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer
) -> None:
    topic = make_topic(3)
    sharers = [open_consumer(topic, max_poll_records=20) for _ in range(7)]
    poll_until(sharers, lambda: True)
    wanted = publish(node, topic, 900, partitions=3)
    poll_until(sharers, lambda: sum(len(each.given) for each in sharers) >= len(wanted))
    assert sorted(place for each in sharers for place in each.places) == sorted(wanted)


def test_consumers_in_threads_of_their_own_lose_and_repeat_nothing(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer
) -> None:
    topic = make_topic(2)
    sharers = [open_consumer(topic, max_poll_records=50) for _ in range(3)]
    enough = threading.Event()
    failures: list[BaseException] = []

    def work(sharer: Sharer) -> None:
        try:
            while not enough.is_set():
                sharer.poll(0.1)
            sharer.commit()
        except BaseException as error:  # noqa: BLE001  the test's own thread raises it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in sharers]
    for thread in threads:
        thread.start()
    wanted = publish(node, topic, 1500, partitions=2)
    give_up = time.monotonic() + DEADLINE_S
    while sum(len(each.given) for each in sharers) < len(wanted) and time.monotonic() < give_up and not failures:
        threads[0].join(0.01)
    enough.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(place for each in sharers for place in each.places) == sorted(wanted)


def test_a_stream_on_the_same_topic_reads_everything_in_order(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer
) -> None:
    topic = make_topic(1)
    first, second = open_consumer(topic, max_poll_records=30), open_consumer(topic, max_poll_records=30)
    stream = Confluent.member(node.address, f"{topic}-stream", [topic])
    wanted = publish(node, topic, 600)
    read: list[int] = []
    give_up = time.monotonic() + DEADLINE_S
    while (
        len(read) < len(wanted) or len(first.given) + len(second.given) < len(wanted)
    ) and time.monotonic() < give_up:
        for sharer in (first, second):
            sharer.poll(0.02)
        read += [record.offset for record in stream.poll(0.02)]
    stream.close()
    assert read == list(range(600))
    assert sorted(first.places + second.places) == sorted(wanted)


# -- acknowledgements


def test_what_was_accepted_implicitly_does_not_come_again(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer
) -> None:
    topic = make_topic(1)
    before = publish(node, topic, 100)
    first = open_consumer(topic)
    poll_until([first], lambda: len(first.given) >= 100)
    first.commit()
    first.consumer.close()
    after = publish(node, topic, 3)
    second = open_consumer(topic)
    poll_until([second], lambda: len(second.given) >= 3)
    assert set(first.places) == before
    assert sorted(second.given) == [(place, 1) for place in sorted(after)]


def test_every_record_has_its_own_acknowledgement(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer, group: str
) -> None:
    topic = make_topic(1)
    publish(node, topic, 30)
    first = open_consumer(topic, explicit=True)
    while not first.poll():
        pass
    assert len(first.last) == 30, "one fetch"
    for number, kind in enumerate((ACCEPT, RELEASE, REJECT)):
        first.acknowledge(kind, first.last[number::3])
    first.commit()
    publish(node, topic, 1)
    second = open_consumer(topic, explicit=True)
    while len(first.given) + len(second.given) < 30 + 10 + 1:
        for sharer in (second, first):
            sharer.poll()
            sharer.acknowledge()
            sharer.commit()
    later = sorted(first.given[30:] + second.given)
    assert later == [*(((0, offset), 2) for offset in range(1, 30, 3)), ((0, 30), 1)]
    dead = dead_letters(node, topic, 10)
    assert {dict(record.headers)["gq-dlq-offset"] for record in dead} == {b"%d" % offset for offset in range(2, 30, 3)}
    assert {dict(record.headers)["gq-dlq-reason"] for record in dead} == {b"rejected"}


def test_a_record_is_a_dead_letter_after_so_many_deliveries(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer, group: str
) -> None:
    set_options(node, group, share_delivery_count_limit="3")
    topic = make_topic(1)
    publish(node, topic, 1, prefix="poison")
    sharer = open_consumer(topic, explicit=True)
    while len(sharer.given) < 3:
        sharer.poll()
        sharer.acknowledge(RELEASE)
        sharer.commit()
    publish(node, topic, 1, prefix="good")
    while len(sharer.given) < 4:
        sharer.poll()
        sharer.acknowledge()
        sharer.commit()
    assert sharer.given == [((0, 0), 1), ((0, 0), 2), ((0, 0), 3), ((0, 1), 1)]
    assert [record.value for record in dead_letters(node, topic, 1)] == [b"poison0"]


def test_a_lease_that_runs_out_is_delivered_to_others(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer, group: str
) -> None:
    set_options(node, group, share_record_lock_duration_ms="300", attempts_max="200")
    topic = make_topic(1)
    wanted = publish(node, topic, 10)
    slow = open_consumer(topic, explicit=True)
    while not slow.poll():
        pass
    assert set(slow.places) == wanted
    other = open_consumer(topic)
    poll_until([other], lambda: len(other.given) >= 10)
    assert {place for place, _ in other.given} == wanted
    assert min(count for _, count in other.given) >= 2
    slow.acknowledge()
    (error,) = slow.consumer.commit_sync(DEADLINE_S).values()
    assert error is not None
    assert error.args[0].code() == ck.KafkaError.INVALID_RECORD_STATE


def test_what_a_consumer_has_not_acknowledged_is_given_to_others_when_it_closes(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer, group: str
) -> None:
    set_options(node, group, share_record_lock_duration_ms=HOUR_MS)
    topic = make_topic(1)
    wanted = publish(node, topic, 10)
    first = open_consumer(topic, explicit=True)
    while not first.poll():
        pass
    first.acknowledge(ACCEPT, first.last[:4])
    first.consumer.close()
    second = open_consumer(topic)
    poll_until([second], lambda: len(second.given) >= 6)
    assert set(second.places) == {place for place in wanted if place[1] >= 4}


DOOMED = """
import sys
import confluent_kafka as ck
consumer = ck.ShareConsumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "log_level": 0})
consumer.subscribe([sys.argv[3]])
given = 0
while given < 10:
    given += len(consumer.poll(1.0))
print("holds", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_consumer_held_is_given_to_others_at_once(
    node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer, group: str
) -> None:
    set_options(node, group, share_record_lock_duration_ms=HOUR_MS)
    topic = make_topic(1)
    wanted = publish(node, topic, 10)
    command = [sys.executable, "-c", DOOMED, node.address, group, topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == b"holds\n"
        doomed.kill()
        doomed.wait(DEADLINE_S)
    heir = open_consumer(topic)
    poll_until([heir], lambda: len(heir.given) >= 10)
    assert sorted(heir.given) == [(place, 2) for place in sorted(wanted)]


# -- kill -9 of the broker


def test_after_kill_9_what_was_accepted_stays_so_and_the_rest_comes_again(
    own_node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer
) -> None:
    topic = make_topic(1)
    wanted = publish(own_node, topic, 100)
    first = open_consumer(topic, explicit=True)
    while not first.poll():
        pass
    assert set(first.places) == wanted
    accepted = first.last[::3]
    first.acknowledge(ACCEPT, accepted)
    first.commit()
    own_node.kill()
    own_node.start()
    second = open_consumer(topic)
    left = wanted - {place_of(message) for message in accepted}
    poll_until([second], lambda: len(second.given) >= len(left))
    assert sorted(second.places) == sorted(left)
    second.commit()
    own_node.kill()
    own_node.start()
    after = publish(own_node, topic, 5)
    poll_until([second], lambda: len(second.given) >= len(left) + 5)
    assert sorted(second.places[len(left) :]) == sorted(after), "and the same consumer goes on"


def test_under_kill_9_no_record_is_lost_and_none_that_was_accepted_comes_again(
    own_node: Node, make_topic: CreateTopic, open_consumer: OpenConsumer
) -> None:
    topic = make_topic(2)
    wanted = publish(own_node, topic, 600, partitions=2)
    sharers = [open_consumer(topic, explicit=True, max_poll_records=25) for _ in range(2)]
    accepted: set[Place] = set()
    again: list[Place] = []
    kills = [150, 350]
    give_up = time.monotonic() + DEADLINE_S
    while accepted != wanted and time.monotonic() < give_up:
        for sharer in sharers:
            again += [place for place in map(place_of, sharer.poll()) if place in accepted]
            sharer.acknowledge()
            answers = sharer.consumer.commit_sync(DEADLINE_S)
            done = {place.partition for place, error in answers.items() if error is None}
            accepted |= {place for place in map(place_of, sharer.last) if place[0] in done}
        if kills and len(accepted) > kills[0]:
            kills.pop(0)
            own_node.kill()
            own_node.start()
    assert kills == []
    assert accepted == wanted
    assert again == []

"""A third member joins two that are busy: who keeps a partition keeps receiving from it."""

import json
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

from tests.integration.clients import Client
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import CreateTopic
from tests.integration.kafka_python_client import KafkaPython
from tests.integration.members import Crowd, Delivery, Stream
from tests.integration.process import Node

PARTITIONS = 5
"""Three and two: when a third member comes, one of the two gives up one, and the other keeps all it has."""
CONSUMER = "consumer"
WAYS: list[tuple[type[Client], str]] = [
    (Confluent, "cooperative-sticky"),
    (KafkaPython, "cooperative-sticky"),
    (Confluent, CONSUMER),
]


def longest_pause_s(deliveries: Iterable[Delivery], since_s: float, until_s: float) -> float:
    times = sorted({one.at_s for one in deliveries if since_s <= one.at_s <= until_s} | {since_s, until_s})
    return max(later - earlier for earlier, later in pairwise(times))


@pytest.mark.parametrize(("client", "assignor"), WAYS, ids=[f"{client.name}-{way}" for client, way in WAYS])
def test_a_third_member_takes_only_what_moves_and_the_rest_flows_on(
    node: Node,
    make_topic: CreateTopic,
    group: str,
    client: type[Client],
    assignor: str,
    record_property: Callable[[str, object], None],
) -> None:
    """The times are for a person to read (`-s`): a busy machine is slow, not wrong. `test_consumer_group_pace`
    keeps the promise of a second in virtual time; librdkafka joins a classic group once a second unless new metadata
    comes in between, and a cooperative rebalance takes two joins.

    Who gives up a partition is paused by its own client: librdkafka stops fetching for that moment, and may notice only
    up to a second later that it may go on. In the classic protocol that goes for all, since all join again.
    """
    topic = make_topic(PARTITIONS)
    with Crowd(waits=False) as crowd, Stream(Confluent.producer(node.address), topic, PARTITIONS) as stream:

        def join(name: str) -> float:
            crowd.join(name, lambda: client.member(node.address, group, [topic], assignor))
            return crowd.wait_shared(topic, PARTITIONS)

        join("first")
        join("second")
        before = {name: crowd.owned(name) for name in ("first", "second")}
        began_s = time.monotonic()
        told = len(crowd.ownerships)
        complete_s = join("third")
        kept = {place: name for name, places in before.items() for place in places & crowd.owned(name)}
        assert len(kept) == PARTITIONS - len(crowd.owned("third"))
        stream.stop()
        crowd.wait_for(lambda: crowd.received() >= stream.sent, "receipt of everything")
        assert crowd.received() == stream.sent
        assert crowd.gaps() == []
        for one in crowd.ownerships[told:]:
            lost = {place for place, owner in kept.items() if owner == one.member} - one.places
            assert lost == set(), f"{one.member} was without {lost} for a while"
        unmoved = {name for name, places in before.items() if places == crowd.owned(name)}
        assert len(unmoved) == 1
        pauses: dict[bool, list[float]] = {True: [], False: []}
        for (_, partition), owner in kept.items():
            late = [one for one in crowd.deliveries if one.record.partition == partition and one.at_s >= began_s]
            assert {one.member for one in late} == {owner}
            offsets = [one.record.offset for one in late]
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))  # each once
            if owner in unmoved and assignor == CONSUMER:
                assert [one for one in late if one.at_s < complete_s], "it received nothing before all was over"
            pauses[owner in unmoved].append(longest_pause_s(late, began_s, complete_s))
        figures = {
            "rebalance_s": round(complete_s - began_s, 3),
            "longest_pause_s_of_who_keeps_all": round(max(pauses[True]), 3),
            "longest_pause_s_of_who_gives_up": round(max(pauses[False]), 3),
        }
        record_property("figures", json.dumps(figures))
        print(client.name, assignor, figures)

"""Groups of each client: members come and go while messages flow."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from goqueue.wire.kafka.messages.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol
from goqueue.wire.kafka.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from tests.integration.aiokafka_client import AioKafka
from tests.integration.clients import Client, Message
from tests.integration.confluent_client import Confluent
from tests.integration.conftest import ALL_CLIENTS, CreateTopic
from tests.integration.kafka_python_client import KafkaPython
from tests.integration.members import Crowd, Stream
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.wire import Wire

PARTITIONS = 6
WAYS = [(client, assignor) for client in ALL_CLIENTS for assignor in client.assignors] + [(Confluent, "consumer")]


@pytest.mark.parametrize(("client", "assignor"), WAYS, ids=[f"{client.name}-{way}" for client, way in WAYS])
def test_members_join_and_leave_without_a_gap_or_a_loss(
    node: Node, make_topic: CreateTopic, group: str, client: type[Client], assignor: str
) -> None:
    """At least once, and the exact set; nobody skips what nobody has had. `consumer` is KIP-848."""
    topic = make_topic(PARTITIONS)
    producer = Confluent.producer(node.address, idempotent=True)
    with Crowd() as crowd, Stream(producer, topic, PARTITIONS) as stream:

        def join(name: str) -> None:
            crowd.join(name, lambda: client.member(node.address, group, [topic], assignor))
            crowd.wait_shared(topic, PARTITIONS)

        for name in ("first", "second", "third"):
            join(name)
        crowd.leave("second")
        crowd.wait_shared(topic, PARTITIONS)
        stream.stop()
        crowd.wait_for(lambda: crowd.received() >= stream.sent, "receipt of everything")
        assert crowd.received() == stream.sent
        assert crowd.gaps() == []


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_members_of_three_libraries_share_one_group(
    node: Node, make_topic: CreateTopic, group: str, assignor: str
) -> None:
    topic = make_topic(PARTITIONS)
    with Crowd() as crowd, Stream(Confluent.producer(node.address), topic, PARTITIONS) as stream:
        for client in (AioKafka, KafkaPython, Confluent):
            crowd.join(client.name, lambda kind=client: kind.member(node.address, group, [topic], assignor))  # type: ignore[misc]
        crowd.wait_shared(topic, PARTITIONS)
        stream.stop()
        crowd.wait_for(lambda: crowd.received() >= stream.sent, "receipt of everything")
        assert crowd.received() == stream.sent
        assert crowd.gaps() == []


def test_a_static_member_that_comes_back_keeps_its_share_and_disturbs_nobody(
    node: Node, make_topic: CreateTopic, group: str, client: type[Client]
) -> None:
    topic = make_topic(PARTITIONS)
    assignor = "roundrobin"  # given by instance id: a client that meets a changed order would move partitions

    def join(crowd: Crowd, name: str) -> None:
        crowd.join(name, lambda: client.member(node.address, group, [topic], assignor, instance_id=name))

    with Crowd() as crowd:
        join(crowd, "static-1")
        join(crowd, "static-2")
        crowd.wait_shared(topic, PARTITIONS)
        share, other = crowd.owned("static-1"), crowd.owned("static-2")
        told = len(crowd.ownerships)
        crowd.leave("static-1")  # without a word to the group
        join(crowd, "static-1")
        crowd.wait_for(lambda: crowd.owned("static-1") == share, "the return of its share")
        Confluent.producer(node.address).send(topic, [Message(number, b"x") for number in range(PARTITIONS)])
        crowd.wait_for(lambda: len(crowd.received()) == PARTITIONS, "receipt by both")
        assert crowd.owned("static-2") == other
        assert [one for one in crowd.ownerships[told:] if one.member == "static-2"] == []


def test_two_members_with_one_instance_id_do_not_share_the_newer_one_wins(
    node: Node, make_topic: CreateTopic, group: str
) -> None:
    topic = make_topic(PARTITIONS)
    with Crowd() as crowd:
        crowd.join("old", lambda: Confluent.member(node.address, group, [topic], "range", "same"))
        crowd.wait_for(lambda: len(crowd.owned("old")) == PARTITIONS, "the first assignment")
        newer = Crowd()
        with newer:
            newer.join("new", lambda: Confluent.member(node.address, group, [topic], "range", "same"))
            newer.wait_for(lambda: len(newer.owned("new")) == PARTITIONS, "the second assignment")
            with pytest.raises(Exception, match=r"FENCED_INSTANCE_ID|_FATAL"):
                crowd.wait_for(lambda: False, "the end of the older one")


def test_a_new_group_waits_for_more_members_as_long_as_the_setting_says(tmp_path: Path, group: str) -> None:
    node = Node(tmp_path, "--group-initial-rebalance-delay-ms", "1h").start()
    try:
        broker = ConfigResource(ConfigResource.Type.BROKER, "1")
        admin = AdminClient({"bootstrap.servers": node.address})
        told = admin.describe_configs([broker])[broker].result(DEADLINE_S)
        assert told["group.initial.rebalance.delay.ms"].value == "3600000"
        with Wire(node) as first, Wire(node) as second, Wire(node) as operator:

            def seen() -> tuple[str, int]:
                asked = DescribeGroupsRequest([group])
                (one,) = operator.call(asked, 0, DescribeGroupsResponse).groups
                return one.group_state, len(one.members)

            protocols = [JoinGroupRequestProtocol("range", b"")]
            for count, wire in enumerate((first, second), 1):
                wire.send(JoinGroupRequest(group, 1_800_000, 1_800_000, "", None, "consumer", protocols), 3)
                wait_until(lambda: seen()[1] == count, "the member's request")  # noqa: B023  called at once
                assert seen() == ("PreparingRebalance", count), "nothing is assigned before others could come"
    finally:
        node.clean_up()

"""Bytes written down by hand from the published definitions: for what kio does not know yet, and for real quirks."""

import pytest

from goqueue.wire.kafka.codec import decode, encode
from goqueue.wire.kafka.messages.consumer_groups import (
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatTopicPartitions,
)
from goqueue.wire.kafka.messages.describe_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from goqueue.wire.kafka.messages.metadata import (
    AdvertisedApi,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    MetadataRequest,
    SupportedFeatureKey,
)
from goqueue.wire.kafka.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from goqueue.wire.kafka.notation import Message

TOPIC_ID = bytes.fromhex("00112233445566778899aabbccddeeff")

GOLDEN: list[tuple[int, Message, str]] = [
    (
        5,
        ApiVersionsRequest("rd", "2.0", "c1", 7),
        (
            "03 7264"  # name: length + 1, text
            "04 322e30"  # version
            "03 6331"  # cluster id
            "00000007"  # node id
            "00"  # no tags
        ),
    ),
    (5, ApiVersionsRequest("", ""), "01 01 00 ffffffff 00"),
    (
        5,
        ApiVersionsResponse(
            api_keys=[AdvertisedApi(0, 0, 13), AdvertisedApi(18, 0, 5)],
            supported_features=[SupportedFeatureKey("f", 1, 2)],
            finalized_features_epoch=9,
            finalized_features=[FinalizedFeatureKey("f", 2, 1)],
        ),
        (
            "0000"  # no error
            "03 0000 0000 000d 00 0012 0000 0005 00"  # two APIs, each with its tags
            "00000000"  # throttle time
            "03"  # three tags
            "00 08 02 0266 0001 0002 00"  # tag 0, 8 bytes: one feature
            "01 08 0000000000000009"  # tag 1, 8 bytes: the epoch
            "02 08 02 0266 0002 0001 00"  # tag 2, 8 bytes: one finalized feature
        ),
    ),
    (3, DeleteGroupsRequest(["g", "hh"]), "03 0267 036868 00"),
    (
        3,
        DeleteGroupsResponse(5, [DeletableGroupResult("g", 69, "no"), DeletableGroupResult("h")]),
        (
            "00000005"  # throttle time
            "03"  # two results
            "0267 0045 036e6f 00"  # group, error, message, tags
            "0268 0000 00 00"  # no message
            "00"
        ),
    ),
    (
        6,
        TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=1,
            producer_epoch=2,
            generation_id_or_member_epoch=3,
            member_id="m",
            topics=[
                TxnOffsetCommitRequestTopic(
                    topic_id=TOPIC_ID, partitions=[TxnOffsetCommitRequestPartition(4, 5, 6, None)]
                )
            ],
        ),
        (
            "0274 0267 0000000000000001 0002 00000003 026d"  # who
            "00"  # no instance id
            "02 00112233445566778899aabbccddeeff"  # one topic, by id alone
            "02 00000004 0000000000000005 00000006 00 00"  # one partition, without metadata
            "00 00"  # tags of the topic and of the request
        ),
    ),
    (
        6,
        TxnOffsetCommitResponse(
            0, [TxnOffsetCommitResponseTopic(topic_id=TOPIC_ID, partitions=[TxnOffsetCommitResponsePartition(4, 22)])]
        ),
        "00000000 02 00112233445566778899aabbccddeeff 02 00000004 0016 00 00 00",
    ),
    (
        0,
        ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=1, heartbeat_interval_ms=3000),
        (
            "00000000 0000 00 026d 00000001 00000bb8"
            "ff"  # the assignment is null, so it has not changed
            "00"
        ),
    ),
    (
        0,
        ConsumerGroupHeartbeatResponse(
            member_id="m",
            assignment=HeartbeatAssignment([HeartbeatTopicPartitions(TOPIC_ID, [0, 2])]),
        ),
        (
            "00000000 0000 00 026d 00000000 00000000"
            "01"  # there is an assignment
            "02 00112233445566778899aabbccddeeff 03 00000000 00000002 00"
            "00 00"
        ),
    ),
]


@pytest.mark.parametrize(("version", "message", "golden"), GOLDEN)
def test_bytes_are_those_of_the_definition(version: int, message: Message, golden: str) -> None:
    data = bytes.fromhex(golden)
    assert encode(message, version) == data
    assert decode(type(message), version, data) == (message, len(data))


def test_bytes_behind_a_message_are_left_to_the_caller() -> None:
    """What librdkafka sends for all topics: null, then three bytes of a longer placeholder."""
    request = bytes.fromhex("00 01 01 00 00" + "000000")
    found, end = decode(MetadataRequest, 9, request)
    assert found == MetadataRequest(topics=None, include_cluster_authorized_operations=True)
    assert end == len(request) - 3

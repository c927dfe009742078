"""The rules of the notation, each on the smallest message that shows it."""

from typing import Annotated, Any

import pytest

from goqueue.wire.kafka.codec import decode, encode
from goqueue.wire.kafka.decoding import compile_decoder
from goqueue.wire.kafka.encoding import compile_encoder
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.messages.classic_groups import HeartbeatRequest, JoinGroupRequest
from goqueue.wire.kafka.messages.fetch import (
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
    ReplicaState,
)
from goqueue.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from goqueue.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from goqueue.wire.kafka.messages.share_groups import (
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    SharePartition,
    ShareTopic,
)
from goqueue.wire.kafka.messages.transactions import EndTxnRequest, EndTxnResponse, OpenTransaction
from goqueue.wire.kafka.notation import Bytes, Int32, Message, Records
from goqueue.wire.kafka.schema import fields_of
from goqueue.wire.kafka.varint import encode_varint, read_varint

ONE_TOPIC = MetadataRequest([MetadataRequestTopic(name="a")])


def test_an_ignorable_field_is_dropped_where_a_version_lacks_it() -> None:
    assert encode(FetchRequest(rack_id="here"), 10) == encode(FetchRequest(), 10)
    assert encode(FetchRequest(rack_id="here"), 11) != encode(FetchRequest(), 11)


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(allow_auto_topic_creation=False), 3),
        (MetadataRequest(include_cluster_authorized_operations=True), 11),
        (FetchRequest(replica_id=1), 15),
        (FetchRequest(replica_state=ReplicaState(1, 2)), 14),
        (FetchResponse(session_id=1), 6),
        (FetchResponse(responses=[FetchedTopic(partitions=[FetchedPartition(preferred_read_replica=1)])]), 10),
        (HeartbeatRequest(group_instance_id="i"), 2),
    ],
)
def test_a_value_that_a_version_cannot_say_is_a_bug(message: Message, version: int) -> None:
    with pytest.raises(ValueError, match=f"{type(message).__name__} v{version} has no"):
        encode(message, version)


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(None), 0),
        (MetadataRequest([MetadataRequestTopic(name=None)]), 9),
        (FetchRequest(max_wait_ms=2**31), 12),
        (JoinGroupRequest(group_id="g" * 2**15), 0),
        (JoinGroupRequest(group_id="\ud800"), 0),
    ],
)
def test_a_value_that_does_not_fit_is_a_bug(message: Message, version: int) -> None:
    with pytest.raises(ValueError, match=r"v\d|surrogates"):
        encode(message, version)


def test_a_version_that_is_not_implemented_is_a_bug() -> None:
    with pytest.raises(ValueError, match="v19 is not implemented"):
        encode(FetchRequest(), 19)
    with pytest.raises(ValueError, match="v3 is not implemented"):
        decode(FetchRequest, 3, b"")


def test_an_absent_field_decodes_to_its_default() -> None:
    assert decode(FetchRequest, 4, encode(FetchRequest(), 4))[0] == FetchRequest()
    assert decode(FetchResponse, 12, encode(FetchResponse(), 12))[0] == FetchResponse()


def test_a_tagged_message_with_default_values_is_not_sent() -> None:
    plain = FetchResponse(responses=[FetchedTopic(partitions=[FetchedPartition()])])
    explicit = FetchResponse(responses=[FetchedTopic(partitions=[FetchedPartition(diverging_epoch=EpochEndOffset())])])
    assert encode(explicit, 12) == encode(plain, 12)
    assert encode(explicit, 11) == encode(plain, 11)


def test_our_own_tags_go_and_come_and_are_left_out_if_not_used() -> None:
    ours = AcknowledgementBatch(1, 2, [2], gq_delay_ms=500, gq_reason="no such customer")
    plain = AcknowledgementBatch(1, 2, [2])
    for batch in (ours, plain):
        topics = [ShareTopic(partitions=[SharePartition(acknowledgement_batches=[batch])])]
        sent = ShareAcknowledgeRequest("g", "m", topics=topics)
        assert decode(ShareAcknowledgeRequest, 1, encode(sent, 1))[0] == sent
        assert (b"no such customer" in encode(sent, 1)) == (batch is ours)


def test_transactions_that_end_together_travel_in_tags() -> None:
    plain = EndTxnRequest("tx", 7, 3, True)
    for version in (3, 4, 5):
        for together in ([], [OpenTransaction("job/0", 1, 2), OpenTransaction("job/1", 3, 4)]):
            asked = EndTxnRequest("job", -1, -1, True, together, 12, True)
            assert decode(EndTxnRequest, version, encode(asked, version))[0] == asked
        assert decode(EndTxnRequest, version, encode(plain, version))[0] == plain
        answer = EndTxnResponse(0, 90, gq_is_repeated=True, gq_message="not open")
        assert decode(EndTxnResponse, version, encode(answer, version))[0] == answer
    assert encode(EndTxnRequest("tx", 7, 3, True, [], 5), 2) == encode(plain, 2)


def test_unknown_tags_are_skipped() -> None:
    data = encode(ONE_TOPIC, 9)
    tags = bytes.fromhex("02 00 01 ff 8101 02 abcd")  # one with a tag that takes two bytes
    assert decode(MetadataRequest, 9, data[:-1] + tags) == (ONE_TOPIC, len(data) - 1 + len(tags))


def test_unknown_tags_beside_a_known_one_are_skipped() -> None:
    request = FetchRequest(cluster_id="c")
    data = encode(request, 12)
    known = bytes.fromhex("01 00 02 0263")
    assert data.endswith(known)
    tags = bytes.fromhex("02 00 02 0263 05 02 abcd")
    assert decode(FetchRequest, 12, data.removesuffix(known) + tags)[0] == request


@pytest.mark.parametrize(
    "tags",
    [
        "01 00 03 0263",  # one byte longer than its field
        "01 00 03 0263 00",
        "01 00 01 0263",  # shorter than its field
        "01 00 02 0363",  # the field is longer than its tag
        "01 05 7f",  # beyond the end
        "02 05 00",  # one tag less than said
        "ffffffff0f 05 00",
        "ffffffffff01",  # a count of six bytes
    ],
)
def test_a_tagged_section_that_does_not_add_up_is_malformed(tags: str) -> None:
    data = encode(FetchRequest(), 12).removesuffix(b"\0")
    with pytest.raises(MalformedRequest):
        decode(FetchRequest, 12, data + bytes.fromhex(tags))


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "7fffffff"),  # more topics than there are bytes
        (0, "80000000"),
        (1, "fffffffe"),  # only -1 is null
        (0, "ffffffff"),  # null came with v1
        (0, "00000001 ffff"),  # a name that is null
        (0, "00000001 fffe 00"),
        (0, "00000001 7fff 61"),  # a name longer than the rest
        (0, "00000001 0001 ff"),  # not UTF-8
        (0, "00000001 0003 eda080"),  # half of a surrogate pair
        (9, "ffffffff0f 00 00 00 00"),  # flexible: more topics than there are bytes
        (9, "ffffffffff0f 00 00 00 00"),  # a length of six bytes
        (9, "02 00 00 00 00 00 00"),  # a name that is null
        (9, "01 00 00 00"),  # no room for the tags
        (9, "01 00 00"),
        (0, ""),
        (9, "80"),
    ],
)
def test_malformed_data_is_refused(version: int, data: str) -> None:
    with pytest.raises(MalformedRequest):
        decode(MetadataRequest, version, bytes.fromhex(data))


def test_a_message_cut_short_anywhere_is_malformed() -> None:
    records = memoryview(b"records")
    request = ProduceRequest("t", -1, 1, [TopicProduceData("a", partition_data=[PartitionProduceData(0, records)])])
    for version in (3, 9):
        data = encode(request, version)
        for length in range(len(data)):
            with pytest.raises(MalformedRequest):
                decode(ProduceRequest, version, data[:length])


def test_records_are_views_on_the_frame() -> None:
    request = ProduceRequest(
        topic_data=[TopicProduceData("a", partition_data=[PartitionProduceData(0, memoryview(b"old"))])]
    )
    frame = bytearray(encode(request, 9))
    found, _ = decode(ProduceRequest, 9, memoryview(frame))
    records = found.topic_data[0].partition_data[0].records
    assert records is not None
    records[:] = b"new"
    assert b"new" in frame


def test_bytes_are_no_views_even_beside_records() -> None:
    class Both(Message):
        some: Bytes = b""
        records: Records | None = None

    message = Both(b"x", memoryview(b"yz"))
    parts, length = compile_encoder(Both, 0, True)(message)
    data = b"".join(parts)  # type: ignore[arg-type]
    assert (data.hex(" "), length) == ("02 78 03 79 7a 00", 6)
    found, _ = compile_decoder(Both, 0, True)(memoryview(data), 0)
    assert isinstance(found, Both)
    assert found == message
    assert (type(found.some), type(found.records)) == (bytes, memoryview)


def test_decoded_lists_are_not_shared() -> None:
    first, _ = decode(FetchRequest, 4, encode(FetchRequest(), 4))
    first.forgotten_topics_data.append(first.forgotten_topics_data)  # type: ignore[arg-type]
    assert decode(FetchRequest, 4, encode(FetchRequest(), 4))[0] == FetchRequest()


def test_a_note_that_cannot_be_read_is_found() -> None:
    class Odd(Message):
        field: Annotated[Int32, "since 3"] = 0

    with pytest.raises(AssertionError, match="since 3"):
        fields_of(Odd)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16_383, 16_384, 2**21, 2**28, 2**31 - 1, 2**32 - 1])
def test_varints_return(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varint(b"." + encoded, 1) == (value, 1 + len(encoded))
    assert len(encoded) == max(1, -(-value.bit_length() // 7))


def test_a_varint_may_be_longer_than_it_needs_to_be() -> None:
    padded: Any = bytes.fromhex("8100 00 00 00 00")  # an empty array of topics, its length in two bytes
    assert decode(MetadataRequest, 9, padded)[0] == MetadataRequest(allow_auto_topic_creation=False)

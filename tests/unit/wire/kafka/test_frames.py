"""What stands around a message: sizes, the two request headers, the two response headers, and records left where they
are."""

from io import BytesIO
from typing import NamedTuple

import pytest
from kio.schema.request_header.v1.header import RequestHeader as KioHeader1
from kio.schema.request_header.v2.header import RequestHeader as KioHeader2
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from goqueue.wire.kafka.apis import APIS, Api
from goqueue.wire.kafka.encoding import Part
from goqueue.wire.kafka.errors import MalformedRequest
from goqueue.wire.kafka.frames import (
    RequestHeader,
    decode_request,
    decode_response,
    read_request_header,
    request_frame,
    response_frame,
)
from goqueue.wire.kafka.messages.fetch import FetchedPartition, FetchedTopic, FetchResponse
from goqueue.wire.kafka.messages.metadata import (
    AdvertisedApi,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

SIZE_BYTES = 4
EVERY_API = pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)


def joined(parts: list[Part]) -> bytes:
    """The frame without its size, which must be right."""
    frame = b"".join(parts)  # type: ignore[arg-type]
    assert int.from_bytes(frame[:SIZE_BYTES]) == len(frame) - SIZE_BYTES
    return frame[SIZE_BYTES:]


def versions(api: Api) -> range:
    return range(api.versions.first, api.versions.last + 1)


@EVERY_API
def test_requests_return(api: Api) -> None:
    for version in versions(api):
        for client_id in (None, "", "rdkafka"):
            frame = memoryview(joined(request_frame(api.request(), version, 77, client_id)))
            header = read_request_header(frame)
            assert header == RequestHeader(api.key, version, 77, client_id, header.body_at)
            assert decode_request(header, frame) == (api.request(), len(frame))


@EVERY_API
def test_responses_return(api: Api) -> None:
    for version in versions(api):
        frame = joined(response_frame(api.response(), version, 77))
        assert decode_response(api.response, version, memoryview(frame)) == (77, api.response(), len(frame))


def test_the_request_header_is_the_one_of_its_version() -> None:
    for version, kio_class in ((8, KioHeader1), (9, KioHeader2)):
        header = BytesIO()
        entity_writer(kio_class)(
            header,
            kio_class(
                request_api_key=i16(3), request_api_version=i16(version), correlation_id=i32(77), client_id="ann"
            ),
        )
        frame = joined(request_frame(MetadataRequest(), version, 77, "ann"))
        assert frame.startswith(header.getvalue())
        assert read_request_header(memoryview(frame)).body_at == len(header.getvalue())


def test_tags_of_the_request_header_are_skipped() -> None:
    frame = bytes.fromhex("0012 0003 00000001 0001 61" + "01 00 02 abcd" + "02 61 02 62 00")
    header = read_request_header(memoryview(frame))
    assert header == RequestHeader(18, 3, 1, "a", 16)
    assert decode_request(header, memoryview(frame)) == (ApiVersionsRequest("a", "b"), len(frame))


def test_a_flexible_response_header_has_tags() -> None:
    legacy, flexible = (joined(response_frame(MetadataResponse(), version, 7)) for version in (8, 9))
    assert legacy == bytes.fromhex("00000007 00000000 00000000 ffff ffffffff 00000000 80000000")
    assert flexible == bytes.fromhex("00000007 00 00000000 01 00 ffffffff 01 80000000 00")
    with_tag = flexible[:4] + bytes.fromhex("01 00 01 ff") + flexible[5:]
    assert decode_response(MetadataResponse, 9, memoryview(with_tag)) == (7, MetadataResponse(), len(with_tag))


def test_the_response_header_of_api_versions_never_has_tags() -> None:
    for version in versions(APIS[18]):
        assert joined(response_frame(ApiVersionsResponse(error_code=35), version, 7))[:6].hex() == "000000070023"


def test_a_newer_api_versions_request_can_be_answered_with_v0() -> None:
    frame = memoryview(bytes.fromhex("0012 0063 00000009 0001 61 00 ffff"))
    header = read_request_header(frame)
    assert (header.api_key, header.api_version, header.correlation_id) == (18, 99, 9)
    with pytest.raises(MalformedRequest):
        decode_request(header, frame)
    answer = ApiVersionsResponse(error_code=35, api_keys=[AdvertisedApi(18, 0, 5)])
    assert joined(response_frame(answer, 0, 9)).hex() == "00000009002300000001001200000005"


def test_the_header_of_an_unknown_api_can_be_read() -> None:
    frame = memoryview(bytes.fromhex("03e7 0000 00000009 ffff"))
    header = read_request_header(frame)
    assert header == RequestHeader(999, 0, 9, None, 10)
    with pytest.raises(MalformedRequest):
        decode_request(header, frame)


@pytest.mark.parametrize("version", [-1, 0, 2, 14])
def test_a_version_that_is_not_implemented_is_refused(version: int) -> None:
    with pytest.raises(MalformedRequest, match="not implemented"):
        decode_request(RequestHeader(0, version, 1, None, 0), memoryview(bytes(100)))


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "0003 0009 00000001",
        "0003 0008 00000001 fffe",
        "0003 0008 00000001 0002 61",  # a client id that ends behind the frame
        "0003 0008 00000001 0001 ff",
        "0003 0009 00000001 ffff",  # no room for the tags
        "0003 0009 00000001 ffff ffffffffffff",
        "0003 0009 00000001 ffff 01 00 05",
        b"GET / HTTP/1.1".hex(),
    ],
)
def test_a_malformed_request_header_is_refused(frame: str) -> None:
    with pytest.raises(MalformedRequest):
        decode_request(read_request_header(memoryview(bytes.fromhex(frame))), memoryview(bytes.fromhex(frame)))


@pytest.mark.parametrize("frame", ["", "000000", "00000007", "00000007 01"])
def test_a_malformed_response_header_is_refused(frame: str) -> None:
    with pytest.raises(MalformedRequest):
        decode_response(MetadataResponse, 9, memoryview(bytes.fromhex(frame)))


class InFile(NamedTuple):
    """Like a slice of a segment: its own `len` is not its length."""

    position: int
    length: int


@pytest.mark.parametrize("version", versions(APIS[1]))
def test_records_are_sent_from_where_they_lie(version: int) -> None:
    first, second, third = memoryview(b"." * 300), InFile(5, 1000), b"tail"
    all_records: list[Part] = [first, second, b"", third]
    partitions = [FetchedPartition(records=records) for records in all_records]
    parts = response_frame(FetchResponse(responses=[FetchedTopic("a", partitions=partitions)]), version, 1)
    assert len(parts) == 7
    assert parts[1] is first
    assert parts[3] is second
    assert parts[5] is third
    parts[3] = bytes(second.length)
    _, found, _ = decode_response(FetchResponse, version, memoryview(joined(parts)))
    sent = [partition.records for partition in found.responses[0].partitions]
    assert sent == [first, bytes(1000), b"", third]


def test_records_that_are_null_are_not_those_that_are_empty() -> None:
    for version in versions(APIS[1]):
        partitions = [FetchedPartition(records=None), FetchedPartition()]
        parts = response_frame(FetchResponse(responses=[FetchedTopic("a", partitions=partitions)]), version, 1)
        assert len(parts) == 1
        _, found, _ = decode_response(FetchResponse, version, memoryview(joined(parts)))
        assert [partition.records for partition in found.responses[0].partitions] == [None, b""]

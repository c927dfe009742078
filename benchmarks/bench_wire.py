"""The Kafka codecs on what librdkafka sends, each beside one bare `struct` call over the same bytes, and beside kio."""

from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from struct import Struct
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from benchmarks.harness import Row, best_us, row
from goqueue.wire.kafka.apis import APIS, Api
from goqueue.wire.kafka.codec import decoder, encode, encoder
from goqueue.wire.kafka.decoding import compile_decoder
from goqueue.wire.kafka.frames import read_request_header, request_frame, response_frame
from goqueue.wire.kafka.messages.fetch import (
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from goqueue.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from goqueue.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import FIXED, fields_of
from goqueue.wire.kafka.varint import encode_varint

ROUNDS = 100
TOPIC_ID = bytes(range(16))
RECORDS = memoryview(bytes(1000))
VERSIONS = {"Produce": 10, "Fetch": 16, "Metadata": 13}
"""All flexible, so that lengths are varints."""
AIM = "< 3 us; baseline: bare struct"


def run() -> list[Row]:
    rows: list[Row] = []
    for name, api, request, response, aim in samples():
        rows += measure(f"{name} request", api, request, aim)
        rows += measure(f"{name} response", api, response, aim)
    return [*rows, *measure_frames(), measure_compiler()]


def samples() -> Iterator[tuple[str, Api, Message, Message, str | None]]:
    produce, fetch, metadata = APIS[0], APIS[1], APIS[3]
    for partitions in (1, 10):
        name = f"{partitions} partition{'s' * (partitions > 1)}"
        aim = AIM if partitions == 1 else None
        yield f"produce, {name},", produce, *produce_messages(partitions), aim
        yield f"fetch, {name},", fetch, *fetch_messages(partitions), aim
    yield "metadata, 100 topics,", metadata, *metadata_messages(100), None


def produce_messages(partitions: int) -> tuple[Message, Message]:
    sent = [PartitionProduceData(index, RECORDS) for index in range(partitions)]
    answers = [PartitionProduceResponse(index, 0, 10**6, -1, 0) for index in range(partitions)]
    return (
        ProduceRequest(None, -1, 30_000, [TopicProduceData("orders", partition_data=sent)]),
        ProduceResponse([TopicProduceResponse("orders", partition_responses=answers)]),
    )


def fetch_messages(partitions: int) -> tuple[Message, Message]:
    asked = [FetchPartition(index, 1, 10**6, -1, -1, 2**20) for index in range(partitions)]
    found = [
        FetchedPartition(index, 0, 10**6, 10**6, 0, aborted_transactions=None, records=RECORDS)
        for index in range(partitions)
    ]
    return (
        FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic_id=TOPIC_ID, partitions=asked)]),
        FetchResponse(responses=[FetchedTopic(topic_id=TOPIC_ID, partitions=found)]),
    )


def metadata_messages(topics: int) -> tuple[Message, Message]:
    partitions = [MetadataResponsePartition(0, index, 1, 0, [1], [1]) for index in range(3)]
    names = [f"topic-{number}" for number in range(topics)]
    return (
        MetadataRequest([MetadataRequestTopic(name=name) for name in names]),
        MetadataResponse(
            brokers=[MetadataResponseBroker(1, "127.0.0.1", 9092)],
            cluster_id="cluster",
            controller_id=1,
            topics=[MetadataResponseTopic(0, name, TOPIC_ID, partitions=partitions) for name in names],
        ),
    )


def measure(name: str, api: Api, message: Message, aim: str | None) -> list[Row]:
    """The hot directions of a broker have the aim: requests decoded, responses encoded."""
    version = VERSIONS[api.name]
    data = memoryview(encode(message, version))
    decode_ours, encode_ours = decoder(type(message), version), encoder(type(message), version)
    decode_kio, encode_kio = kio_codec(api, message, version)
    raw, values = bare_struct(message, version)
    entity = decode_kio(bytes(data))
    assert decode_ours(data, 0) == (message, len(data))
    assert raw.pack(*values) == data == encode_kio(entity)

    calls = max(1, 20_000 // len(values) // 10)
    decode_us, raw_decode_us, kio_decode_us, encode_us, raw_encode_us, kio_encode_us = best_us(
        ROUNDS,
        calls,
        partial(decode_ours, data, 0),
        partial(raw.unpack_from, data),
        partial(decode_kio, bytes(data)),
        partial(encode_ours, message),
        partial(raw.pack, *values),
        partial(encode_kio, entity),
    )
    is_request = isinstance(message, api.request)
    return [
        row(f"{name} decoded", decode_us, "us", raw_decode_us, aim if is_request else None),
        row(f"{name} encoded", encode_us, "us", raw_encode_us, None if is_request else aim),
        row(f"{name} decoded by kio, beside ours", kio_decode_us, "us", decode_us, None),
        row(f"{name} encoded by kio, beside ours", kio_encode_us, "us", encode_us, None),
    ]


def kio_codec(api: Api, message: Message, version: int) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    load: Callable[[int, int], Any] = load_request_schema if isinstance(message, api.request) else load_response_schema
    schema = load(api.key, version)
    reader, writer = entity_reader(schema), entity_writer(schema)

    def decode_entity(data: bytes) -> Any:
        entity, _ = reader(data, 0)
        return entity

    def encode_entity(entity: Any) -> bytes:
        with BytesIO() as buffer:
            writer(buffer, entity)
            return buffer.getvalue()

    return decode_entity, encode_entity


def bare_struct(message: Message, version: int) -> tuple[Struct, list[Any]]:
    """One Struct with exactly the layout of this very message, which no real decoder could know: the lower bound."""
    codes: list[str] = [">"]
    values: list[Any] = []
    lay_out(message, version, codes, values)
    return Struct("".join(codes)), values


def lay_out(message: Message, version: int, codes: list[str], values: list[Any]) -> None:
    for field in fields_of(type(message)):
        if version in field.versions and field.tag is None:
            lay_out_value(field.kind, getattr(message, field.name), version, codes, values)
    codes.append("x")


def lay_out_value(kind: str, value: Any, version: int, codes: list[str], values: list[Any]) -> None:
    if kind in FIXED and not isinstance(value, list):
        codes.append(FIXED[kind])
        values.append(value)
    elif isinstance(value, Message):
        lay_out(value, version, codes, values)
    else:
        content = value.encode() if isinstance(value, str) else value
        length = encode_varint(0 if content is None else len(content) + 1)
        codes.append(f"{len(length)}s")
        values.append(length)
        if isinstance(content, list):
            for element in content:
                lay_out_value(kind, element, version, codes, values)
        elif content is not None:
            codes.append(f"{len(content)}s")
            values.append(bytes(content))


def measure_frames() -> list[Row]:
    """The whole way from a frame to its header, and from a response to parts that can be sent."""
    request, response = fetch_messages(1)
    version = VERSIONS["Fetch"]
    frame = memoryview(b"".join(request_frame(request, version, 7, "rdkafka")))[4:]  # type: ignore[arg-type]
    assert read_request_header(frame).client_id == "rdkafka"
    assert response_frame(response, version, 7)[1] is RECORDS
    raw = Struct(">hhih7sx")
    header_us, raw_us, response_us, encode_us = best_us(
        ROUNDS,
        200,
        partial(read_request_header, frame),
        partial(raw.unpack_from, frame),
        partial(response_frame, response, version, 7),
        partial(encoder(FetchResponse, version), response),
    )
    return [
        row("request header read", header_us, "us", raw_us, "< 1 us; baseline: bare struct"),
        row("fetch response framed, beside encoded only", response_us, "us", encode_us, None),
    ]


def measure_compiler() -> Row:
    """What the first request of a kind waits for, beside the requests that follow."""
    data = memoryview(encode(fetch_messages(1)[0], 16))
    compile_us, decode_us = best_us(
        ROUNDS, 1, partial(compile_decoder, FetchRequest, 16, True), partial(decoder(FetchRequest, 16), data, 0)
    )
    return row("decoder of fetch compiled, beside used", compile_us, "us", decode_us, None)

import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.record._crecords import DefaultRecordBatch  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import InvalidWish
from goqueue.model.lanes import Lane
from goqueue.records.batch import Codec
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.decode import decode
from goqueue.records.native import Headers
from goqueue.records.rewrite import delete_horizon_ms, rebuild_batch, stamp_append_time
from goqueue.records.wishes import (
    NEVER,
    NO_WISHES,
    NOW,
    Wishes,
    batch_lane,
    hash_key,
    lane_and_expiry,
    mentions_wishes,
    parse_lane,
    read_wishes,
    without_delay,
)
from tests.unit.records.samples import (
    ALL_CODECS,
    COMPRESSED,
    NOW_MS,
    checked,
    expected,
    fields,
    rows,
    run_python,
    some_rows,
    thorough,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, which it reads its schemas with
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch  # type: ignore[import-untyped]

SomeHeaders = Sequence[tuple[str, bytes | None]]
NINES = b"9" * 5000
YEAR_9999_MS = 253_402_300_799_999
NONE = Wishes()

GOOD: list[tuple[SomeHeaders, Wishes]] = [
    ([], NONE),
    ([("name", b"value"), ("traceparent", None)], NONE),
    ([("gq-unknown", b"?"), ("gq-", None), ("gq-dedup-id", b"7")], NONE),
    ([("priority", b"?"), ("GQ-PRIORITY", b"?"), ("xgq-priority", b"?"), ("gq-priority2", b"?")], NONE),
    ([("gq-priority", b"critical")], NONE._replace(lane=0)),
    ([("gq-priority", b"high")], NONE._replace(lane=1)),
    ([("gq-priority", b"normal")], NONE),
    ([("gq-priority", b"Low")], NONE._replace(lane=3)),
    ([("gq-priority", b"BACKGROUND")], NONE._replace(lane=4)),
    *[([("gq-priority", b"%d" % lane)], NONE._replace(lane=lane)) for lane in range(5)],
    ([("gq-priority", b"low"), ("gq-priority", b"high")], NONE._replace(lane=1)),
    ([("gq-deliver-at", b"0")], NONE._replace(deliver_at_ms=0)),
    ([("gq-deliver-at", b"1700000000001")], NONE._replace(deliver_at_ms=NOW_MS + 1)),
    ([("gq-deliver-at", b"2023-11-14T22:13:20Z")], NONE._replace(deliver_at_ms=NOW_MS)),
    ([("gq-deliver-at", b"2023-11-15T00:13:20.125+02:00")], NONE._replace(deliver_at_ms=NOW_MS + 125)),
    ([("gq-delay-ms", b"0")], NONE._replace(deliver_at_ms=NOW_MS)),
    ([("gq-delay-ms", b"500")], NONE._replace(deliver_at_ms=NOW_MS + 500)),
    ([("gq-delay-ms", b"%d" % (YEAR_9999_MS - NOW_MS))], NONE._replace(deliver_at_ms=YEAR_9999_MS)),
    ([("gq-expires-at", b"1700000000002")], NONE._replace(expires_at_ms=NOW_MS + 2)),
    ([("gq-expires-at", b"9999-12-31T23:59:59.999Z")], NONE._replace(expires_at_ms=YEAR_9999_MS)),
    (
        [("gq-priority", b"0"), ("other", b""), ("gq-delay-ms", b"7"), ("gq-expires-at", b"1700000000009")],
        Wishes(0, NOW_MS + 7, NOW_MS + 9),
    ),
]

BAD_PRIORITIES: list[bytes | None] = [None, b"", b"5", b"-1", b"00", b"1.0", b" high", b"urgent", b"\xff", b"\xd9\xa1"]
BAD_MOMENTS: list[bytes | None] = [
    None,
    b"",
    b"-1",
    b"1.5",
    b" 5",
    b"1_000",
    b"now",
    b"+1h",
    b"\xd9\xa1",
    NINES,
    b"253402300800000",
    b"2023-11-14",
    b"2023-11-14T22:13:20",
    b"2023-02-30T22:13:20Z",
    b"1969-12-31T23:59:59Z",
]
BAD_DELAYS: list[bytes | None] = [None, b"", b"-1", b"1.5", b" 5", b"1_000", b"5s", b"\xd9\xa1", NINES]
BAD = [
    *[("gq-priority", value, "critical, high, normal, low, background or 0 to 4") for value in BAD_PRIORITIES],
    *[("gq-deliver-at", value, "milliseconds since 1970 or RFC 3339") for value in BAD_MOMENTS],
    *[("gq-expires-at", value, "milliseconds since 1970 or RFC 3339") for value in BAD_MOMENTS],
    *[("gq-delay-ms", value, "milliseconds, a whole number from 0") for value in BAD_DELAYS],
]


@pytest.mark.parametrize(("headers", "wishes"), GOOD)
def test_wishes_are_what_the_headers_say(headers: SomeHeaders, wishes: Wishes) -> None:
    read = read_wishes(headers, NOW_MS)
    assert read[:3] == wishes[:3]
    assert read.is_delay == any(name == "gq-delay-ms" for name, _ in headers)
    assert lane_and_expiry(headers) == (wishes.lane, wishes.expires_at_ms)


def test_no_wishes_is_the_same_as_nothing_said() -> None:
    assert Wishes(lane=Lane.NORMAL, deliver_at_ms=NOW, expires_at_ms=NEVER) == NO_WISHES == (2, -1, -1, False)


@pytest.mark.parametrize(("name", "value", "allowed"), BAD, ids=lambda part: repr(part)[:20])
def test_a_bad_wish_is_refused_and_named(name: str, value: bytes | None, allowed: str) -> None:
    with pytest.raises(InvalidWish) as refusal:
        read_wishes([("gq-priority", b"high"), (name, value)], NOW_MS)
    message = str(refusal.value)
    assert message.startswith(f"header {name} is {repr(value)[:60]}")
    assert allowed in message
    assert len(message) < 300


@pytest.mark.parametrize(("name", "value", "allowed"), BAD, ids=lambda part: repr(part)[:20])
def test_in_the_log_a_bad_wish_counts_as_absent(name: str, value: bytes | None, allowed: str) -> None:
    good: Headers = [("gq-priority", b"high"), ("gq-expires-at", b"5")]
    assert lane_and_expiry([(name, value)]) == (2, -1)
    assert lane_and_expiry([*good, (name, value)]) == lane_and_expiry([(name, value), *good]) == (1, 5)


@pytest.mark.parametrize("order", [1, -1])
def test_a_delay_and_a_time_contradict_each_other(order: int) -> None:
    headers: Headers = [("gq-delay-ms", b"5"), ("gq-deliver-at", b"1700000000005")]
    with pytest.raises(InvalidWish, match=r"gq-delay-ms \(5\) and gq-deliver-at \(1700000000005\).*only one"):
        read_wishes(headers[::order], NOW_MS)


@pytest.mark.parametrize("delay_ms", [YEAR_9999_MS - NOW_MS + 1, YEAR_9999_MS, YEAR_9999_MS + 1, 10**39])
def test_a_delay_without_end_is_refused(delay_ms: int) -> None:
    with pytest.raises(InvalidWish, match=f"gq-delay-ms is .?.?{delay_ms}"):
        read_wishes([("gq-delay-ms", b"%d" % delay_ms)], NOW_MS)


@given(st.lists(st.tuples(st.sampled_from(["gq-priority", "gq-deliver-at", "gq-delay-ms", "x"]), st.binary())))
def test_whatever_headers_say_only_one_error_comes(headers: Headers) -> None:
    lane, expires_at_ms = lane_and_expiry(headers)
    try:
        wishes = read_wishes(headers, NOW_MS)
    except InvalidWish:
        return
    assert (wishes.lane, wishes.expires_at_ms) == (lane, expires_at_ms)


def test_without_delay_a_record_does_not_wait_again() -> None:
    headers: Headers = [
        ("a", b"1"),
        ("gq-delay-ms", b"5"),
        ("gq-priority", b"high"),
        ("gq-deliver-at", None),
        ("gq-delay-ms", b"6"),
        ("gq-expires-at", b"7"),
        ("a", None),
    ]
    before = list(headers)
    assert without_delay(headers) == [("a", b"1"), ("gq-priority", b"high"), ("gq-expires-at", b"7"), ("a", None)]
    assert headers == before
    assert without_delay([]) == []


def one(value: bytes, headers: SomeHeaders, codec: Codec = Codec.NONE) -> Any:
    return checked(build_batch([(NOW_MS, b"key", value, list(headers))], codec=codec))


@pytest.mark.parametrize("size", [0, 10, 3900, 3990, 4000, 4030, 4096, 4200, 10_000, 1_000_000])
def test_wishes_are_found_without_decoding(size: int) -> None:
    value = b"g" * (size // 2) + b"-" * (size - size // 2)
    assert not mentions_wishes(one(value, [("name", b"gq"), ("q-", b"")]), True)
    for headers in ([("gq-priority", b"high")], [("a", b""), ("gq-x", None)]):
        assert mentions_wishes(one(value, headers), False)
    assert mentions_wishes(one(value + b"gq-", []), False)  # it may be a header: the caller looks


@pytest.mark.parametrize("size", [10, 10_000])
def test_wishes_are_looked_for_in_this_batch_alone(size: int) -> None:
    wish, plain = one(bytes(size), [("gq-priority", b"high")]), one(bytes(size), [])
    buffer = memoryview(bytes(wish.data) + bytes(plain.data) + bytes(wish.data))
    assert not mentions_wishes(plain._replace(data=buffer[wish.size : wish.size + plain.size]), True)


def test_the_header_of_a_batch_is_no_wish() -> None:
    data = build_batch(some_rows(), producer_id=int.from_bytes(b"\0gq-gq-\0"), producer_epoch=1, base_sequence=1)
    assert b"gq-" in data
    assert not mentions_wishes(checked(data), True)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_compressed_batch_is_opened_only_if_asked(codec: Codec) -> None:
    for headers in ([], [("gq-priority", b"high")]):
        assert mentions_wishes(one(b"value", headers, codec), True)
        assert not mentions_wishes(one(b"value", headers, codec), False)


@pytest.mark.parametrize(("written", "lane"), [("high", 1), ("LOW", 3), ("0", 0), ("5", None), ("", None), ("ä", None)])
def test_a_lane_has_a_name_and_a_number(written: str, lane: int | None) -> None:
    assert parse_lane(written) == lane


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("lane", [None, *Lane])
def test_the_lane_is_in_the_header_of_the_batch(lane: int | None, codec: Codec) -> None:
    batch = checked(
        build_batch(
            some_rows(), lane=lane, codec=codec, producer_id=5, producer_epoch=1, base_sequence=2, transactional=True
        )
    )
    assert batch_lane(batch) == lane
    assert (batch.codec, batch.is_transactional, batch.is_control, batch.is_append_time) == (codec, True, False, False)
    assert delete_horizon_ms(batch) is None
    assert fields(decode(batch)) == expected(some_rows())


@pytest.mark.parametrize("lane", [-1, 5, 6, 7])
def test_a_lane_that_does_not_exist_is_refused(lane: int) -> None:
    with pytest.raises(ValueError, match="lane"):
        build_batch(some_rows(), lane=lane)


@pytest.mark.parametrize("bits", [0, 6, 7])
def test_bits_that_name_no_lane_say_nothing(bits: int) -> None:
    batch = checked(build_batch(some_rows()))
    assert batch_lane(batch._replace(attributes=bits << 8)) is None


def test_other_bits_of_the_attributes_are_no_lane() -> None:
    batch = checked(build_batch(some_rows()))
    assert batch_lane(batch._replace(attributes=-1 & ~0x700)) is None
    assert batch_lane(batch._replace(attributes=-1 & ~0x700 | 0x300)) == Lane.NORMAL


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("lane", Lane)
def test_a_rewritten_batch_keeps_its_lane(lane: int, codec: Codec) -> None:
    data = build_batch(some_rows(), lane=lane, codec=codec)
    batch = checked(data)
    for kept in (decode(batch)[1:3], []):
        rebuilt = checked(rebuild_batch(batch, kept, delete_horizon_ms=NOW_MS))
        assert batch_lane(rebuilt) == lane
        assert delete_horizon_ms(rebuilt) == NOW_MS
        assert fields(decode(rebuilt)) == fields(kept)
    assert batch_lane(stamp_append_time(batch, NOW_MS + 9)) == batch_lane(checked(data)) == lane


@pytest.mark.parametrize("codec", ALL_CODECS)
@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("reader", [DefaultRecordBatch, KafkaPythonBatch])
def test_other_decoders_do_not_mind_the_lane(reader: Any, lane: int, codec: Codec) -> None:
    theirs = reader(bytes(build_batch(some_rows(), lane=lane, codec=codec, base_offset=9)))
    assert theirs.validate_crc()
    assert (theirs.compression_type, theirs.is_control_batch, theirs.is_transactional) == (codec, False, False)
    assert fields(theirs) == expected(some_rows(), 9)


@thorough
@given(new=rows(), lane=st.none() | st.sampled_from(Lane))
def test_a_lane_changes_no_other_byte_than_its_own(new: list[NewRecord], lane: int | None) -> None:
    plain, with_lane = build_batch(new), build_batch(new, lane=lane)
    assert plain[:17] + plain[22:] == with_lane[:17] + with_lane[22:]


def test_a_key_has_the_same_hash_in_every_process() -> None:
    # Fixed numbers: they are compared with what other nodes and earlier versions have computed.
    hashes = {b"": 1, b"a": 9607679276477937801, b"order-1": 15264810245351053017}
    assert {key: hash_key(key) for key in hashes} == hashes
    script = "from goqueue.records.wishes import hash_key; print(hash_key(b'order-1'))"
    assert run_python(script, PYTHONHASHSEED="7") == str(hashes[b"order-1"])


def test_keys_have_different_hashes_of_64_bits() -> None:
    hashes = {hash_key(b"key-%d" % number) for number in range(100_000)}
    assert len(hashes) == 100_000
    assert all(0 < hashed < 2**64 for hashed in hashes)
    assert 0.49 < sum(hashed >> 63 for hashed in hashes) / len(hashes) < 0.51

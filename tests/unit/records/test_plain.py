"""Batches of the broker's own: the same bytes as the general builder makes."""

from hypothesis import example, given
from hypothesis import strategies as st

from goqueue.records.batch import check_batch
from goqueue.records.build import build_batch
from goqueue.records.plain import NumberRecord, plain_batch

sizes = st.one_of(st.integers(0, 70), st.sampled_from([2047, 2048, 9000, 1 << 20]))


@given(
    sizes=st.lists(st.tuples(sizes, st.none() | sizes), min_size=1, max_size=70),
    timestamp=st.integers(0, 2**62),
)
@example(sizes=[(3, 4)] * 2100, timestamp=1)
def test_a_plain_batch_is_what_the_general_builder_makes(sizes: list[tuple[int, int | None]], timestamp: int) -> None:
    records = [(bytes(key), None if value is None else bytes(value)) for key, value in sizes]
    made = plain_batch(records, timestamp)
    expected = build_batch([(timestamp, key, value, []) for key, value in records])
    assert bytes(made.data) == bytes(expected)
    assert made[:-1] == check_batch(memoryview(expected))[:-1]
    assert not made.data.readonly


@given(
    head=st.binary(max_size=200),
    number=st.integers(0, 2**64 - 1),
    timestamp=st.integers(0, 2**62),
)
def test_a_record_with_another_number_is_the_same_batch_as_if_it_were_made_anew(
    head: bytes, number: int, timestamp: int
) -> None:
    record = NumberRecord(b"key", head)
    record.batch(7, 7)  # of the one before nothing is left
    made = record.batch(number, timestamp)
    expected = plain_batch([(b"key", head + number.to_bytes(8, "big"))], timestamp)
    assert bytes(made.data) == bytes(expected.data)
    assert made[:-1] == expected[:-1]
    assert not made.data.readonly

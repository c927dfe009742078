import string
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goqueue.model.errors import MalformedReceipt
from goqueue.model.receipts import (
    NAME_BYTES_MAX,
    RECEIPT_CHARS_MAX,
    Receipt,
    decode_receipt,
    encode_receipt,
)

KEY = bytes(range(32))
ALPHABET = string.ascii_letters + string.digits + "-_"
SAMPLE = Receipt(0xFEDCBA98, "workers", "orders", 3, 123_456_789_012, 77)
LARGEST = Receipt(2**32 - 1, "ä" * 127 + "x", "t" * NAME_BYTES_MAX, 2**32 - 1, 2**64 - 1, 2**64 - 1)

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
receipts = st.builds(
    Receipt, st.integers(0, 2**32 - 1), names, names, st.integers(0, 2**31 - 1), *[st.integers(0, 2**63 - 1)] * 2
)


@given(receipt=receipts, key=st.binary(min_size=16, max_size=64))
@example(SAMPLE, KEY)
@example(LARGEST, KEY)
@example(Receipt(0, "", "", 0, 0, 0), KEY)
def test_a_receipt_names_its_place(receipt: Receipt, key: bytes) -> None:
    text = encode_receipt(receipt, key)
    assert decode_receipt(text, key) == receipt
    assert set(text) <= set(ALPHABET)
    assert len(text) <= RECEIPT_CHARS_MAX


def test_a_usual_receipt_is_short() -> None:
    assert len(encode_receipt(SAMPLE, KEY)) == 70


def test_a_receipt_is_the_same_after_an_update_of_the_node() -> None:
    # Consumers hold receipts over a restart: with the same key they must still be understood.
    text = "Af7cupgAAAADAAAAHL6ZGhQAAAAAAAAATQd3b3JrZXJzBm9yZGVyc"
    assert encode_receipt(SAMPLE, KEY).startswith(text)


@pytest.mark.parametrize("group_id", ["workers", "worker", "w" * 9])
def test_every_changed_character_is_refused(group_id: str) -> None:
    text = encode_receipt(SAMPLE._replace(group_id=group_id), KEY)
    for position, original in enumerate(text):
        for other in ALPHABET + "+/= \nä\0":
            if other != original:
                _assert_refused(text[:position] + other + text[position + 1 :])


@settings(deadline=None)
@given(receipt=receipts, data=st.data())
def test_a_changed_character_is_refused(receipt: Receipt, data: st.DataObject) -> None:
    text = encode_receipt(receipt, KEY)
    position = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda character: character != text[position]))
    _assert_refused(text[:position] + other + text[position + 1 :])


def test_a_part_of_a_receipt_or_more_than_one_is_refused() -> None:
    text = encode_receipt(SAMPLE, KEY)
    for size in range(len(text)):
        _assert_refused(text[:size])
        _assert_refused(text[-size:] if size else "")
    for more in ("=", "==", "A", "AAAA", "\n", " ", text):
        _assert_refused(text + more)
        _assert_refused(more + text)


@given(st.one_of(st.text(), st.binary(), st.text(alphabet=ALPHABET, min_size=40, max_size=120), st.none(), st.floats()))
def test_whatever_is_no_receipt_is_refused(text: object) -> None:
    _assert_refused(text)


@pytest.mark.parametrize(
    "text",
    [
        5,
        None,
        [],
        b"x" * 70,
        pytest.param("x" * (RECEIPT_CHARS_MAX + 1), id="long"),
        "ä" * 70,
        "\ud800" * 70,
        "A" * 71,
        "A" * 69,
    ],
)
def test_foreign_input_is_refused(text: object) -> None:
    _assert_refused(text)


def test_the_size_of_the_input_does_not_matter() -> None:
    _assert_refused("x" * 10_000_000)


def test_a_receipt_of_another_key_is_refused() -> None:
    text = encode_receipt(SAMPLE, KEY)
    for other in (KEY[:-1], KEY + b"\0", bytes(32), KEY[:16]):
        with pytest.raises(MalformedReceipt):
            decode_receipt(text, other)


@pytest.mark.parametrize(
    "change",
    [
        {"boot": 2**32},
        {"boot": -1},
        {"partition": -1},
        {"offset": -1},
        {"offset": 2**64},
        {"lease": -1},
        {"group_id": "x" * 256},
        {"group_id": "ä" * 128},
        {"topic": "x" * 256},
        {"topic": "\ud800"},
    ],
)
def test_a_receipt_that_does_not_fit_is_not_made(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        encode_receipt(SAMPLE._replace(**change), KEY)


@pytest.mark.parametrize("key", [b"", b"short", bytes(65)])
def test_a_key_must_be_one(key: bytes) -> None:
    with pytest.raises(ValueError, match="key"):
        encode_receipt(SAMPLE, key)


def _assert_refused(text: object) -> None:
    with pytest.raises(MalformedReceipt) as refusal:
        decode_receipt(text, KEY)
    assert len(str(refusal.value)) < 120

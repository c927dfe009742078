"""Message attributes as headers and back, and the digests that AWS gives for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.wire.sqs.attributes import (
    attributes_of,
    check_attributes,
    check_text,
    headers_of,
    size_of,
)
from goqueue.wire.sqs.digests import md5_of, md5_of_attributes
from goqueue.wire.sqs.errors import SqsError
from goqueue.wire.sqs.requests import MessageAttribute


def text(value: str, kind: str = "String") -> MessageAttribute:
    return MessageAttribute(kind, value)


def octets(value: bytes, kind: str = "Binary") -> MessageAttribute:
    return MessageAttribute(kind, binary_value=value)


KENOBI = {"General": text("Kenobi"), "Hello": text("There"), "Help.Me": text("Me")}
TRACE = b"traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01"


@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        (KENOBI, "4c360f3fdafd970e05fae2f149d997f5"),
        ({name: KENOBI[name] for name in ("Hello", "General")}, "fca026605781cb4126a1e9044df24232"),
        ({name: KENOBI[name] for name in ("Help.Me", "Hello")}, "83fee93c1bcd8b9a5a923ffacdc636c7"),
        ({"Foo": text("Bar")}, "ae7155c6026991b6d54b11589678bf9c"),
        ({"attr1": octets(TRACE)}, "8cbe4db156db8a94db8b801b7addb984"),
    ],
)
def test_digests_are_those_of_aws(attributes: dict[str, MessageAttribute], digest: str) -> None:
    """As AWS itself answered."""
    assert md5_of_attributes(attributes) == digest


def test_the_digest_of_a_body_is_that_of_aws() -> None:
    assert md5_of(b"msg") == "6e2baaf3b97dbeef01c0043275f9a0e7"


LABELS = st.sampled_from(["", ".json", ".a b"])
XML = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")
STRINGS = st.builds(lambda value, label: text(value, "String" + label), st.text(XML, min_size=1), LABELS)
NUMBERS = st.builds(
    lambda value, label: text(str(value), "Number" + label),
    st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=3),
    LABELS,
)
BYTES = st.builds(lambda value, label: octets(value, "Binary" + label), st.binary(min_size=1), LABELS)
NAMES = st.from_regex(r"\A[a-zA-Z0-9_-]{1,8}(\.[a-zA-Z0-9_-]{1,8})?\Z").filter(
    lambda name: not name.lower().startswith(("gq-", "aws.", "amazon.", "sqs-type-"))
)


@given(st.dictionaries(NAMES, STRINGS | NUMBERS | BYTES, max_size=10))
def test_what_was_sent_is_received(attributes: dict[str, MessageAttribute]) -> None:
    check_attributes(attributes)
    headers = headers_of(attributes, {})
    assert attributes_of(headers, ["All"]) == attributes
    assert {name: value for name, value in headers if name in attributes} == {
        name: each.value for name, each in attributes.items()
    }
    for name in attributes:
        assert list(attributes_of(headers, [name])) == [name]


@given(st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=8))
def test_any_headers_make_attributes_that_can_be_digested(headers: list[tuple[str, bytes | None]]) -> None:
    found = attributes_of(headers, ["All"])
    for name, attribute in found.items():
        assert attribute.value == dict(pair for pair in headers if pair[1] is not None)[name]
        assert (attribute.string_value is None) != (attribute.binary_value is None)
    if all(name.isprintable() for name in found):
        assert len(md5_of_attributes(found)) == 32


def test_what_a_type_header_says_is_believed_only_where_it_can_be() -> None:
    def kind(value: bytes, said: bytes) -> str | None:
        return attributes_of([("a", value), ("sqs-type-a", said)], ["a"])["a"].data_type

    assert kind(b"7", b"Number") == "Number"
    assert kind(b"7", b"Binary.x") == "Binary.x"
    assert kind(b"\xff", b"Number") == "Binary"
    assert kind(b"7", b"Colour") == kind(b"7", b"\xff") == "String"


def test_sizes_count_names_types_and_values() -> None:
    assert size_of("ä".encode(), {"ab": text("xyz", "Number"), "c": octets(b"12")}) == 2 + (2 + 6 + 3) + (1 + 6 + 2)


@pytest.mark.parametrize("odd", ["\x00", "\x08", "\x0b", "\x1f", "\ufffe", "\uffff"])
def test_characters_that_xml_does_not_know_are_refused(odd: str) -> None:
    check_text("\t\n\r ~\x7f\x85\ud7ff\ue000\ufffd\U00010000\U0010ffff")
    with pytest.raises(SqsError, match="Invalid characters"):
        check_text(f"a{odd}b")

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.node.values import Choice, FilePath, Fraction, HostNames, Origins, Quantity, byte_size, duration
from goqueue.storage.options import Durability


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("1", 1),
        ("1B", 1),
        ("64MiB", 64 << 20),
        ("64 mib", 64 << 20),
        (" 2GiB ", 2 << 30),
        ("1TiB", 1 << 40),
        (512, 512),
    ],
)
def test_a_size_is_read_as_people_write_it(raw: object, value: int) -> None:
    assert byte_size().parse(raw) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [("1500ms", 1500), ("1500", 1500), ("2s", 2000), ("3m", 180_000), ("1h", 3_600_000), ("7d", 604_800_000), (9, 9)],
)
def test_a_duration_is_read_as_people_write_it(raw: object, value: int) -> None:
    assert duration().parse(raw) == value


@pytest.mark.parametrize("kind", [byte_size(), duration()])
@pytest.mark.parametrize(
    "raw", ["", "x", "1x", "1.5", "-5", "-1", -1, "0", 0, "1_000", "64MB", True, 1.5, None, [], "\uff11"]
)
def test_a_quantity_refuses_what_it_does_not_understand(kind: Quantity, raw: object) -> None:
    with pytest.raises(ValueError):
        kind.parse(raw)


def test_no_limit_is_minus_one_where_that_means_something() -> None:
    assert duration(may_be_unlimited=True).parse("-1") == -1
    assert duration(may_be_unlimited=True).parse(-1) == -1
    with pytest.raises(ValueError):
        duration(may_be_unlimited=True).parse("-2")


def test_limits_are_kept_and_named() -> None:
    kind = byte_size(at_least=1 << 20, at_most=1 << 30)
    assert kind.parse("1MiB") == 1 << 20
    assert kind.parse("1GiB") == 1 << 30
    for raw in ("1048575", "1025MiB"):
        with pytest.raises(ValueError):
            kind.parse(raw)
    assert kind.expected == "bytes such as 64MiB (at least 1MiB, at most 1GiB)"


@given(st.sampled_from([byte_size(), duration()]), st.integers(min_value=1, max_value=1 << 62))
def test_what_is_shown_is_read_back(kind: Quantity, value: int) -> None:
    assert kind.parse(kind.show(value)) == value


def test_a_choice_names_its_options() -> None:
    kind = Choice(Durability)
    assert kind.parse("os") is Durability.OS
    assert kind.expected == "one of disk, os"
    for raw in ("OS", "", 1, True):
        with pytest.raises(ValueError):
            kind.parse(raw)


def test_a_path_is_some_text() -> None:
    assert FilePath().parse("a/b") == Path("a/b")
    for raw in ("", "a\0b", 3, True):
        with pytest.raises(ValueError):
            FilePath().parse(raw)


def test_a_fraction_is_a_part_of_all() -> None:
    assert [Fraction().parse(raw) for raw in ("0", "0.01", 1, 0.5)] == [0, 0.01, 1, 0.5]
    assert [Fraction().show(value) for value in (0.0, 0.01, 1.0)] == ["0", "0.01", "1"]
    for raw in ("", "x", "-0.1", 1.1, True, None, "nan"):
        with pytest.raises(ValueError):
            Fraction().parse(raw)


def test_origins_are_read_as_browsers_write_them() -> None:
    read = Origins().parse("https://Console.example.com:443/, http://localhost:3000,http://a.example:80")
    assert read == ("https://console.example.com", "http://localhost:3000", "http://a.example")
    assert Origins().parse(["http://[::1]:3000"]) == ("http://[::1]:3000",)
    assert Origins().parse("") == ()
    assert Origins().parse(Origins().show(read)) == read


@pytest.mark.parametrize("raw", ["*", "localhost:3000", "http://a.example/path", "null", "ftp://a", "http://", [3], 3])
def test_what_is_no_origin_is_refused(raw: object) -> None:
    with pytest.raises(ValueError):
        Origins().parse(raw)


def test_host_names_are_read_without_ports() -> None:
    assert HostNames().parse("Queue.Example.com, ::1,*") == ("queue.example.com", "::1", "*")
    for wrong in ("queue:8080", "http://queue", "a b", "-queue", 5):
        with pytest.raises(ValueError):
            HostNames().parse(wrong)

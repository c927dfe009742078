"""An address parser has a table test."""

import pytest

from goqueue.client.addresses import join_address, parse_servers
from goqueue.client.errors import InvalidArgument


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        ("127.0.0.1:9092", ["127.0.0.1:9092"]),
        ("broker", ["broker:9092"]),
        (" a:1 , b:2,a:1", ["a:1", "b:2"]),
        (["a:1", "[::1]:2"], ["a:1", "[::1]:2"]),
        ("[::1]", ["[::1]:9092"]),
    ],
)
def test_an_address_is_read(written: str | list[str], parsed: list[str]) -> None:
    assert parse_servers(written) == parsed


@pytest.mark.parametrize(
    "written", ["", " , ", "a:0", "a:65536", "a:b", ":9092", "::1:9092", "http://a:1", "a:", "a:1٢", []]
)
def test_what_is_no_address_is_refused(written: str | list[str]) -> None:
    with pytest.raises(InvalidArgument):
        parse_servers(written)


def test_hosts_are_joined_as_they_are_read() -> None:
    assert [join_address("a", 1), join_address("::1", 2)] == ["a:1", "[::1]:2"]

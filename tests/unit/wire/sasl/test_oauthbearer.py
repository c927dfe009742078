"""OAUTHBEARER: what clients send, and what nobody should."""

import pytest

from goqueue.wire.sasl.failure import SaslFailed
from goqueue.wire.sasl.oauthbearer import MESSAGE_BYTES_MAX, Bearer, read_bearer


def test_a_token_is_read_as_clients_send_it() -> None:
    assert read_bearer(Bearer("a.b.c").encode()) == Bearer("a.b.c")
    assert read_bearer(Bearer("a.b.c", "acme").encode()) == Bearer("a.b.c", "acme")
    assert read_bearer(b"n,,\x01host=mq\x01auth=bearer a.b.c\x01logicalCluster=lkc-1\x01\x01") == Bearer("a.b.c")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer a.b.c",
        b"n,,\x01auth=Bearer a.b.c\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
        b"n,a=root,\x01auth=Bearer a.b.c\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        Bearer("x" * MESSAGE_BYTES_MAX).encode(),
    ],
)
def test_all_else_is_refused(data: bytes) -> None:
    with pytest.raises(SaslFailed):
        read_bearer(data)

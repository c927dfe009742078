"""Descriptors made in code: what is on the wire is what etcd's own .proto files say."""

import pytest

from goqueue.cluster.etcd.messages import RANGE, TXN, WATCH, Compare, RequestOp, WatchProgress, range_end


def test_a_transaction_is_on_the_wire_as_etcd_reads_it() -> None:
    compare = Compare(result=3, target=2, key=b"k", mod_revision=0)
    request = TXN.request(compare=[compare], success=[RequestOp(request_delete_range={"key": b"d"})])
    # A revision of 0 is sent, since it is one of several things that could be compared.
    assert request.SerializeToString() == bytes.fromhex("0a09 0803 1002 1a016b 3000" + "1205 1a030a0164")


def test_an_empty_message_that_is_one_of_several_is_sent() -> None:
    request = WATCH.request(progress_request=WatchProgress())
    assert request.SerializeToString() == bytes.fromhex("1a00")


def test_fields_that_are_not_named_are_passed_over() -> None:
    answer = RANGE.response.FromString(
        bytes.fromhex("0a04 0801 1002" + "2005" + "1207 0a016b 2a0276 31".replace(" ", ""))
    )
    assert answer.header.cluster_id == 1
    assert answer.kvs[0].key == b"k"
    assert answer.kvs[0].value == b"v1"


@pytest.mark.parametrize(
    ("prefix", "end"), [(b"/goqueue/a/", b"/goqueue/a0"), (b"a\xff", b"b"), (b"\xff\xff", b"\0"), (b"", b"\0")]
)
def test_a_prefix_ends_where_the_next_one_begins(prefix: bytes, end: bytes) -> None:
    assert range_end(prefix) == end

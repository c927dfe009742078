"""Fair queues: the backlog of one sender does not delay the others inside a lane."""

from collections import Counter
from collections.abc import Sequence

import pytest

from goqueue.machines.controller_commands import SetOptions
from goqueue.machines.deliveries.commands import How, Place
from goqueue.machines.deliveries.fair import TURN_EVERY
from goqueue.model.lanes import Lane
from goqueue.records.batch import Codec
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.messages import NewMessage
from goqueue.records.native import Headers
from goqueue.records.replays import ReplayRequest, Where
from tests.unit.broker.queue_node import QueueNode, queue_node

PLACE = Place("workers", "orders", 0)


def by(sender: str, value: bytes = b"", **about: object) -> NewMessage:
    return NewMessage(value or sender.encode(), headers=[("gq-fairness-key", sender.encode())], **about)  # type: ignore[arg-type]


def backlog(node: QueueNode, count: int = 200, sender: str = "noisy") -> None:
    node.put("orders", *[by(sender)] * count)


def senders(values: Sequence[bytes | None]) -> Counter[str]:
    return Counter((value or b"").decode() for value in values)


def active(node: QueueNode) -> int:
    return node.broker.queues.measure(PLACE).senders


def test_a_quiet_sender_does_not_wait_behind_a_backlog() -> None:
    node = queue_node(fair_by="header")
    backlog(node)
    node.put("orders", by("quiet"))
    assert node.received(most=2) == [b"noisy", b"quiet"]


def test_without_the_option_headers_change_nothing() -> None:
    node = queue_node()
    backlog(node)
    node.put("orders", by("quiet"))
    assert senders(node.received(most=100)) == {"noisy": 100}
    assert active(node) == 0


def test_by_key_the_keys_are_the_senders() -> None:
    node = queue_node(fair_by="key")
    node.put("orders", *[NewMessage(b"noisy", b"customer-1")] * 100, NewMessage(b"quiet", b"customer-2"), b"nobody")
    assert senders(node.received(most=3)) == {"noisy": 1, "quiet": 1, "nobody": 1}
    assert active(node) == 3


def test_those_who_name_no_sender_are_one_sender() -> None:
    node = queue_node(fair_by="header")
    node.put("orders", *[b"nobody"] * 100)
    assert senders(node.received(most=20)) == {"nobody": 20}
    node.put("orders", by("quiet"), by(""))
    got = node.receive(most=1)
    assert [each.value for each in got] == [b"quiet"]
    assert active(node) == 2


def test_senders_take_turns_one_record_each() -> None:
    node = queue_node(fair_by="header")
    for sender in ("a", "b", "c"):
        backlog(node, 20, sender)
    for _ in range(10):
        got = node.receive(most=3)
        assert senders([each.value for each in got]) == {"a": 1, "b": 1, "c": 1}
        node.ack(*got)


def test_who_holds_much_is_served_after_those_who_hold_little() -> None:
    node = queue_node(fair_by="header")
    backlog(node, 40)
    assert senders(node.received(consumer="slow", most=20)) == {"noisy": 20}
    backlog(node, 10, "quiet")
    served = senders(node.received(consumer="fast", most=10))
    assert served["quiet"] >= 8


def test_a_sender_whose_consumer_hangs_is_served_last_but_not_never() -> None:
    node = queue_node(fair_by="header", unacked_max="10000", lease_ms="3600000")
    backlog(node, 400, "stuck")
    node.receive(consumer="hangs", most=200)
    backlog(node, 100, "fast")
    served: Counter[str] = Counter()
    for _ in range(80):
        got = node.receive(most=1)
        served.update(senders([each.value for each in got]))
        node.ack(*got)
    assert served["stuck"] == 80 // TURN_EVERY


def test_lanes_come_first_and_each_of_them_is_shared() -> None:
    node = queue_node(fair_by="header")
    for lane in (Lane.NORMAL, Lane.CRITICAL):
        node.put("orders", *[by("noisy", lane=lane)] * 50, by("quiet", lane=lane))
    got = node.receive(most=2)
    assert senders([each.value for each in got]) == {"noisy": 1, "quiet": 1}
    assert {each.offset for each in got} == {51, 101}


def test_order_by_key_holds_while_senders_share() -> None:
    node = queue_node(fair_by="header", lease_order="key")
    for number in range(6):
        node.put("orders", by("noisy", b"n%d" % number, key=b"k"), by("quiet", b"q%d" % number, key=b"l"))
    seen: list[bytes | None] = []
    for _ in range(6):
        got = node.receive(most=10)
        assert len(got) == 2
        seen += [each.value for each in got]
        node.ack(*got)
    for name in (b"n", b"q"):
        assert [value for value in seen if value and value.startswith(name)] == [
            name + b"%d" % each for each in range(6)
        ]


def test_a_retry_comes_before_what_its_sender_sent_later() -> None:
    node = queue_node(fair_by="header", retry_backoff_ms="100")
    node.put("orders", by("a", b"a0"), by("a", b"a1"), by("b", b"b0"), by("b", b"b1"))
    first, second = node.receive(most=2)
    assert (first.value, second.value) == (b"a0", b"b0")
    node.settle([first], How.RETRY, 0)
    node.settle([second], How.RETRY)
    assert set(node.received(most=2)) == {b"a0", b"b1"}
    node.pass_ms(200)
    assert node.received(most=2) == [b"a1", b"b0"]


def test_what_expires_or_is_delayed_takes_nobodys_turn() -> None:
    node = queue_node(fair_by="header")
    node.put("orders", *[by("noisy", expires_at_ms=node.clock.now_ms() + 50)] * 20, by("noisy", b"late", delay_ms=1000))
    node.put("orders", *[by("quiet")] * 3)
    node.pass_ms(60)
    assert senders(node.received(most=10)) == {"quiet": 3}
    node.pass_ms(1000)
    assert node.received(most=10) == [b"late"]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_compressed_batches_are_opened_for_their_senders(codec: Codec) -> None:
    node = queue_node(fair_by="header")
    header: Headers = [("gq-fairness-key", b"noisy")]
    noisy: list[NewRecord] = [(1000, None, b"noisy", header)] * 50
    quiet: list[NewRecord] = [(1000, None, b"quiet", [("gq-fairness-key", b"quiet")])]
    for made in (noisy, quiet):
        node.broker.publisher.publish("orders", 0, memoryview(build_batch(made, codec=codec)))
    node.commit()
    assert senders(node.received(most=2)) == {"noisy": 1, "quiet": 1}


def test_a_backlog_that_was_seen_before_is_shared_when_the_option_is_set() -> None:
    node = queue_node()
    backlog(node)
    node.put("orders", by("quiet"))
    held = node.receive(most=5)
    node.ask(node.broker.topics.submit, SetOptions("orders", {"fair.by": "header"}))
    assert b"quiet" in node.received(most=2)
    node.ack(*held[2:])  # nobody else was given them meanwhile
    node.ask(node.broker.topics.submit, SetOptions("orders", {"fair.by": "none"}))
    backlog(node, 1, "late")
    assert b"late" not in node.received(most=50)
    assert active(node) == 0


def test_after_a_restart_all_begin_level() -> None:
    node = queue_node(fair_by="header", unacked_max="10000")
    backlog(node, 50)
    node.receive(most=20)
    node.put("orders", by("quiet"))
    after = node.restarted("kill")
    assert senders(after.received(most=2)) == {"noisy": 1, "quiet": 1}


def test_whoever_seeks_is_served_fairly_again() -> None:
    node = queue_node(fair_by="header")
    backlog(node, 30)
    node.put("orders", by("quiet"))
    while got := node.receive(most=10):
        node.ack(*got)
    assert active(node) == 0
    node.reply(lambda done: node.broker.replays.seek("workers", "orders", Where("earliest"), done))
    assert senders(node.received(most=2)) == {"noisy": 1, "quiet": 1}


def test_a_replay_is_shared_as_well() -> None:
    node = queue_node(fair_by="header")
    backlog(node, 30)
    node.put("orders", by("quiet"))
    while got := node.receive(most=10):
        node.ack(*got)
    request = ReplayRequest("workers", "orders", Where("earliest"), Where("latest"))
    node.reply(lambda done: node.broker.replays.replay(request, done))
    assert senders(node.received(most=2)) == {"noisy": 1, "quiet": 1}


def test_few_bytes_are_given_to_whoever_comes_first() -> None:
    """The batches of the noisy one lie first in the log."""
    node = queue_node(fair_by="header")
    for _ in range(5):
        node.put("orders", by("noisy", b"x" * 1000))
    node.put("orders", by("quiet", b"q"))
    (first,) = node.receive(most=10, bytes_max=1)
    got = node.receive(most=10, bytes_max=1)
    assert {each.value[:1] for each in (first, *got) if each.value} == {b"x", b"q"}


def test_an_urgent_record_comes_first_also_where_few_bytes_are_asked_for() -> None:
    node = queue_node()
    for _ in range(5):
        node.put("orders", b"x" * 1000)
    node.put("orders", NewMessage(b"urgent", lane=Lane.CRITICAL))
    assert node.received(most=10, bytes_max=1) == [b"urgent"]
    assert len(node.received(most=10, bytes_max=2500)) == 2
    assert len(node.received(most=10)) == 3

"""Dead letters sent back to work: once, in order, as they were, and not for ever."""

from random import Random
from typing import Any

import pytest

from goqueue.broker.dead_letters import redrive as redrive_module
from goqueue.machines.deliveries.commands import How
from goqueue.model.lanes import Lane
from goqueue.records.batch import Codec
from goqueue.records.build import build_batch
from goqueue.records.decode import DecodedRecord
from goqueue.records.filters import RecordFilter
from goqueue.records.messages import NewMessage
from goqueue.records.native import Headers
from goqueue.records.redrives import ORIGIN, REDRIVES, RedriveReport, RedriveRequest
from tests.brokers import data
from tests.unit.broker.queue_node import QueueNode, queue_node

STARTS = ("stop", "kill", "power")


def with_dead(*messages: NewMessage | bytes, partitions: int = 1, **options: str) -> QueueNode:
    """A node whose group has rejected all of these."""
    node = queue_node(partitions=partitions, **options)
    node.put("orders", *messages)
    reject_all(node)
    return node


def reject_all(node: QueueNode, reason: str = "") -> None:
    while got := node.receive(most=1000):
        node.settle(got, How.REJECT, reason=reason)


def redrive(node: QueueNode, ms: int = 0, **fields: Any) -> RedriveReport:
    replies: list[Any] = []
    node.broker.dead_letters.redrive(RedriveRequest("orders", **fields), replies.append)
    node.pass_ms(ms)
    (report,) = replies
    assert isinstance(report, RedriveReport)
    return report


def listed(node: QueueNode, **fields: Any) -> list[bytes | None]:
    found: list[bytes | None] = []

    def take(partition: int, records: list[DecodedRecord]) -> bool:
        found.extend(each.value for each in records)
        return True

    assert node.reply(lambda done: node.broker.dead_letters.look("orders", take, done, **fields)) is None
    return found


def with_large_dead(value: bytes, *others: bytes) -> QueueNode:
    """A node whose group has rejected `value`, which came compressed and is larger than its topic takes otherwise."""
    node = queue_node(max_message_bytes="2000")
    compressed = build_batch([(1000, b"k", value, [])], codec=Codec.GZIP)
    assert len(compressed) <= 2000 < len(value)
    node.broker.publisher.publish("orders", 0, memoryview(compressed))
    node.put("orders", *others)
    reject_all(node)
    return node


# -- back to where they came from


def test_redriven_records_are_delivered_again_and_their_letters_are_dealt_with() -> None:
    node = with_dead(b"a", b"b")
    assert listed(node) == [b"a", b"b"]
    assert redrive(node) == RedriveReport(redriven=2)
    assert [(each.value, each.attempt) for each in node.receive()] == [(b"a", 1), (b"b", 1)]
    assert listed(node) == []
    assert redrive(node) == RedriveReport()
    assert node.values("orders") == [b"a", b"b", b"a", b"b"]


def test_a_lane_that_only_the_batch_named_is_kept() -> None:
    node = queue_node()
    node.broker.publisher.publish("orders", 0, memoryview(build_batch([(1000, None, b"a", [])], lane=Lane.HIGH)))
    node.commit()
    reject_all(node)
    assert redrive(node).redriven == 1
    (got,) = node.receive()
    assert dict(got.headers)["gq-priority"] == b"high"


def test_what_fits_only_compressed_is_redriven_compressed() -> None:
    large = bytes(Random(1).choices(b"ab", k=8_000))
    node = with_large_dead(large, b"small")
    report = redrive(node)
    assert (report.redriven, report.failed, report.errors) == (2, 0, [])
    assert node.received() == [large, b"small"]
    assert listed(node) == []


def test_what_does_not_fit_any_more_is_kept_and_the_reason_is_told() -> None:
    large = bytes(Random(1).choices(b"ab", k=8_000))
    node = with_large_dead(large, b"small")
    node.create("tiny", 1, max_message_bytes="200")
    before = node.values("orders.dlq")
    report = redrive(node, to="tiny")
    assert (report.redriven, report.failed) == (1, 1)
    (error,) = report.errors
    assert "bytes" in error
    assert "at most" in error
    assert node.values("tiny") == [b"small"]
    assert listed(node) == [large]
    assert node.values("orders.dlq") == before
    assert redrive(node).redriven == 1
    assert node.received() == [large]


def test_dead_letters_can_be_chosen_by_their_places() -> None:
    node = with_dead(b"a", b"b", b"c")
    assert redrive(node, places={0: frozenset({0, 2, 9}), 7: frozenset({1})}) == RedriveReport(
        redriven=2, filtered_out=1
    )
    assert listed(node) == [b"b"]
    assert redrive(node, places={}) == RedriveReport(filtered_out=1)


@pytest.mark.parametrize("how", STARTS)
def test_nothing_is_redriven_again_after_a_restart(how: str) -> None:
    node = with_dead(b"a", b"b", b"c")
    assert redrive(node, filter=RecordFilter(contains=b"b")) == RedriveReport(redriven=1, filtered_out=2)
    node = node.restarted(how)
    assert listed(node) == [b"a", b"c"]
    assert redrive(node) == RedriveReport(redriven=2)
    assert node.values("orders") == [b"a", b"b", b"c", b"b", b"a", b"c"]


def test_a_redriven_record_is_what_it_was_and_says_where_it_was_first() -> None:
    node = with_dead(b"before", NewMessage(b"v", b"k", [("h", b"1"), ("h", b"2")], lane=Lane.HIGH, partition=0))
    redrive(node, filter=RecordFilter(key=b"k"))
    record = node.records("orders")[-1]
    assert (record.key, record.value) == (b"k", b"v")
    assert record.headers == [
        ("h", b"1"),
        ("h", b"2"),
        ("gq-priority", b"high"),
        (REDRIVES, b"1"),
        (ORIGIN, b"orders/0/1"),
    ]
    reject_all(node)
    redrive(node, filter=RecordFilter(key=b"k"))
    assert node.records("orders")[-1].headers[-2:] == [(ORIGIN, b"orders/0/1"), (REDRIVES, b"2")]


def test_what_expired_is_not_sent_back_to_expire() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"a", expires_at_ms=node.clock.now_ms() + 100))
    node.received(lease_ms=1)
    node.pass_ms(1000)
    assert redrive(node) == RedriveReport(redriven=1)
    node.pass_ms(1000)
    assert node.received() == [b"a"]


def test_the_order_of_every_key_and_its_partition_are_kept() -> None:
    messages = [NewMessage(b"%s%d" % (key, number), key) for number in range(40) for key in (b"a", b"b", b"c", b"d")]
    node = with_dead(*messages, partitions=3)
    before = [node.values("orders", partition) for partition in range(3)]
    assert redrive(node) == RedriveReport(redriven=160)
    for partition in range(3):
        assert node.values("orders", partition) == before[partition] * 2


def test_other_groups_still_read_the_dead_letters() -> None:
    node = with_dead(b"a")
    redrive(node)
    assert node.received("orders.dlq", group="audit") == [b"a"]


# -- elsewhere


def test_dead_letters_can_go_to_another_topic() -> None:
    node = with_dead(NewMessage(b"a", b"k"), NewMessage(b"b", b"k"), partitions=2)
    node.create("repair", 5)
    assert redrive(node, to="repair") == RedriveReport(redriven=2)
    assert sorted(node.values("repair", partition) for partition in range(5)) == [[], [], [], [], [b"a", b"b"]]
    assert [each.value for partition in range(2) for each in node.records("orders", partition)] == [b"a", b"b"]


def test_a_topic_that_is_not_there_is_said_once_and_nothing_is_lost() -> None:
    node = with_dead(b"a", b"b")
    report = redrive(node, to="nowhere")
    assert report == RedriveReport(failed=2, errors=["there is no topic 'nowhere'"])
    assert listed(node) == [b"a", b"b"]


def test_a_topic_without_dead_letters_has_nothing_to_redrive() -> None:
    node = queue_node()
    assert redrive(node) == RedriveReport()
    assert listed(node) == []


# -- some of them


def test_only_what_the_filter_takes_is_sent_back() -> None:
    node = queue_node()
    node.put("orders", NewMessage(b"a", b"k"), NewMessage(b"b", b"l"))
    reject_all(node)
    node.put("orders", NewMessage(b"c", b"k", expires_at_ms=node.clock.now_ms() + 1))
    node.received(group="workers", lease_ms=1)
    node.pass_ms(1000)
    assert listed(node, filter=RecordFilter(reason="expired")) == [b"c"]
    assert redrive(node, filter=RecordFilter(key=b"k", reason="rejected")) == RedriveReport(redriven=1, filtered_out=2)
    assert listed(node) == [b"b", b"c"]
    assert node.values("orders")[3:] == [b"a"]


def test_a_dry_run_says_what_would_happen_and_does_nothing() -> None:
    node = with_dead(b"a", b"b", b"a")
    for _ in range(2):
        report = redrive(node, is_dry_run=True, filter=RecordFilter(contains=b"a"))
        assert report == RedriveReport(redriven=2, filtered_out=1)
    assert (listed(node), node.values("orders")) == ([b"a", b"b", b"a"], [b"a", b"b", b"a"])


@pytest.mark.parametrize("fields", [{"is_dry_run": True}, {"filter": RecordFilter(contains=b"none of them")}])
def test_a_long_look_without_anything_to_send_comes_to_an_end(fields: dict[str, Any]) -> None:
    node = with_dead(b"a")
    headers = node.records("orders.dlq")[0].headers
    for _ in range(50):
        node.broker.publisher.publish("orders.dlq", 0, memoryview(build_batch([(1000, None, b"x", headers)] * 1000)))
    node.commit()
    report = redrive(node, 10, **fields)
    assert report.redriven + report.filtered_out == 50_001


def test_a_rate_is_kept() -> None:
    node = with_dead(*(b"%d" % number for number in range(10)))
    replies: list[Any] = []
    node.broker.dead_letters.redrive(RedriveRequest("orders", records_per_second=2), replies.append)
    node.commit()
    sent = []
    for _ in range(6):
        sent.append(len(node.values("orders")) - 10)
        node.pass_ms(1000)
    assert sent == [2, 4, 6, 8, 10, 10]
    assert replies == [RedriveReport(redriven=10)]


def test_two_redrives_at_once_would_send_everything_twice_so_the_second_is_refused() -> None:
    node = with_dead(*(b"%d" % number for number in range(4)))
    first: list[Any] = []
    second: list[Any] = []
    node.broker.dead_letters.redrive(RedriveRequest("orders", records_per_second=2), first.append)
    node.broker.dead_letters.redrive(RedriveRequest("orders"), second.append)
    node.pass_ms(5000)
    assert first == [RedriveReport(redriven=4)]
    assert [str(each) for each in second] == ["dead letters of 'orders' are being sent back already"]
    assert redrive(node) == RedriveReport()
    assert len(node.values("orders")) == 8


def test_a_record_that_keeps_coming_back_is_left_where_it_is() -> None:
    node = with_dead(b"loops")
    for number in range(3):
        assert redrive(node) == RedriveReport(redriven=1), number
        reject_all(node)
    assert redrive(node) == RedriveReport(looping=1)
    assert listed(node) == [b"loops"]
    assert redrive(node, redrives_max=4) == RedriveReport(redriven=1)


# -- away with them


def test_purged_letters_are_gone_for_everybody_and_new_ones_are_not() -> None:
    node = with_dead(b"a", b"b", partitions=2)
    assert node.reply(lambda done: node.broker.dead_letters.purge("orders", done)) == 2
    assert (listed(node), node.received("orders.dlq", group="audit")) == ([], [])
    node.put("orders", b"c")
    reject_all(node)
    assert listed(node) == [b"c"]
    assert redrive(node) == RedriveReport(redriven=1)
    assert node.reply(lambda done: node.broker.dead_letters.purge("prices", done)) == 0


def test_letters_that_somebody_else_wrote_are_redriven_to_where_they_are_sent() -> None:
    """Any record in that topic counts: what it does not say about itself is not guessed."""
    node = queue_node()
    node.create("orders.dlq")
    node.broker.publisher.publish("orders.dlq", 0, data(b"by hand"))
    node.commit()
    assert redrive(node).failed == 1
    assert redrive(node, to="orders") == RedriveReport(redriven=1)
    assert node.values("orders") == [b"by hand"]


def test_a_redrive_that_is_stopped_leaves_the_rest_where_it_is() -> None:
    node = with_dead(*[b"%d" % number for number in range(6)])
    letters = node.broker.dead_letters
    replies: list[Any] = []
    job = letters.redrive(RedriveRequest("orders", records_per_second=1), replies.append)
    assert job is not None
    node.pass_ms(1500)
    assert (job.report.redriven, job.ended_ms, letters.last_redrive("orders")) == (2, None, job)
    job.stop()
    node.pass_ms(1000)
    assert (replies, job.ended_ms is not None) == ([RedriveReport(redriven=2)], True)
    assert listed(node) == [b"2", b"3", b"4", b"5"]
    assert redrive(node) == RedriveReport(redriven=4)
    assert letters.last_redrive("orders") is not job


def test_only_so_many_redrives_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive_module, "JOBS_KEPT", 2)
    node = queue_node()
    letters = node.broker.dead_letters
    for topic in ("a", "b", "c"):
        letters.redrive(RedriveRequest(topic), lambda report: None)
    assert [letters.last_redrive(topic) is not None for topic in ("a", "b", "c")] == [False, True, True]


# -- letters that somebody else wrote


def forge(node: QueueNode, **about: str) -> None:
    """A message straight into the topic for dead letters, as any producer may send it."""
    headers: Headers = [(f"gq-dlq-{name}", text.encode()) for name, text in about.items()]
    node.put("orders.dlq", NewMessage(b"forged", b"k", headers, partition=0))


FORGED: dict[str, dict[str, str]] = {
    "another topic": {"topic": "payroll", "partition": "0", "offset": "0"},
    "a topic that is not there": {"topic": "nowhere", "partition": "0", "offset": "0"},
    "a ledger": {"topic": "@metadata", "partition": "0", "offset": "0"},
    "a partition that is not there": {"topic": "orders", "partition": "7", "offset": "0"},
    "an offset that was never written": {"topic": "orders", "partition": "0", "offset": "99"},
    "more digits than a number may have": {"topic": "orders", "partition": "9" * 5000, "offset": "9" * 5000},
    "nothing": {},
}


@pytest.mark.parametrize("kind", [kind for kind in FORGED if kind != "more digits than a number may have"])
@pytest.mark.parametrize("is_dry_run", [True, False])
def test_a_forged_header_does_not_choose_where_a_letter_goes(kind: str, is_dry_run: bool) -> None:
    node = with_dead(b"a")
    node.create("payroll")
    node.put("payroll", b"salary")
    forge(node, **FORGED[kind])
    assert listed(node) == [b"a", b"forged"]
    report = redrive(node, is_dry_run=is_dry_run)
    assert (report.redriven, report.failed, len(report.errors)) == (1, 1, 1)
    assert "say where to send it (to)" in report.errors[0]
    assert node.values("payroll") == [b"salary"]
    assert node.values("orders") == ([b"a"] if is_dry_run else [b"a", b"a"])
    assert listed(node) == ([b"a", b"forged"] if is_dry_run else [b"forged"])
    if not is_dry_run:
        assert redrive(node, to="payroll") == RedriveReport(redriven=1)  # who runs the node may choose
        assert node.values("payroll") == [b"salary", b"forged"]


def test_numbers_that_are_too_long_are_none() -> None:
    node = with_dead(b"a")
    forge(node, **FORGED["more digits than a number may have"])
    assert redrive(node) == RedriveReport(redriven=2)
    assert node.values("orders") == [b"a", b"a", b"forged"]


def test_a_header_of_the_record_itself_does_not_choose_either() -> None:
    node = queue_node()
    node.create("payroll")
    node.put("orders", NewMessage(b"a", headers=[("gq-dlq-topic", b"payroll"), ("gq-dlq-partition", b"0")]))
    reject_all(node)
    assert redrive(node) == RedriveReport(redriven=1)
    assert (node.values("orders"), node.values("payroll")) == ([b"a", b"a"], [])


def test_a_topic_that_keeps_its_letters_in_the_one_of_another_gets_its_own_back() -> None:
    node = with_dead(b"a")
    node.create("returns", 1, dead_letter_topic="orders.dlq")
    node.put("returns", b"r")
    node.settle(node.receive("returns"), How.REJECT)
    node.commit()
    assert listed(node) == [b"a"]
    assert redrive(node) == RedriveReport(redriven=1)
    assert (node.values("orders"), node.values("returns")) == ([b"a", b"a"], [b"r"])
    replies: list[Any] = []
    node.broker.dead_letters.redrive(RedriveRequest("returns"), replies.append)
    node.commit()
    assert replies == [RedriveReport(redriven=1)]
    assert node.values("returns") == [b"r", b"r"]


def test_many_forged_names_do_not_fill_a_report() -> None:
    node = with_dead(b"a")
    for number in range(50):
        forge(node, topic=f"t{number}", partition="0", offset="0")
    report = redrive(node)
    assert (report.redriven, report.failed, len(report.errors)) == (1, 50, 20)

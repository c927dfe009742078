"""Spans: one for a publish, one for every delivery, each under the right parent."""

import pytest
from msgspec import structs

from goqueue.telemetry import spans as spans_module
from goqueue.telemetry.journeys import Journeys, Note, Step
from goqueue.telemetry.moved import Moved
from goqueue.telemetry.parents import Parents
from goqueue.telemetry.spans import Identities, Link, Span, SpanMaker, moved_to
from goqueue.telemetry.trace_ids import Spot, TraceParent

PARENT = TraceParent("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", is_sampled=True)


class Maker(SpanMaker):
    def __init__(self, sampling: float = 1.0) -> None:
        self.ids = Identities(lambda topic: topic.encode().ljust(16, b"."), Parents(), Moved())
        super().__init__(Journeys(sampling), self.ids)

    def of(self, *notes: tuple[object, ...]) -> list[Span]:
        return self.make([Note(*note) for note in notes])  # type: ignore[arg-type]


def spot(offset: int, topic: str = "orders") -> Spot:
    return Spot(topic, 0, offset)


def test_a_publish_lasts_from_received_to_persisted() -> None:
    maker = Maker()
    assert maker.of((10, Step.RECEIVED, "orders", 0, 0, 1), (11, Step.RECEIVED, "orders", 0, 2, 2)) == []
    found = maker.of((15, Step.PERSISTED, "orders", 0, 0, 2))
    assert [(each.offset, each.start_ms, each.end_ms) for each in found] == [(0, 10, 15), (1, 10, 15), (2, 11, 15)]
    assert {(each.name, each.kind, each.parent_span_id) for each in found} == {("publish orders", "producer", "")}
    assert [each.trace_id for each in found] == [maker.ids.made_id(spot(offset)) for offset in range(3)]
    assert len({each.span_id for each in found}) == 3


def test_the_span_of_the_producer_is_the_parent() -> None:
    maker = Maker()
    maker.ids.parents.add(spot(0), PARENT)
    (publish,) = maker.of((10, Step.RECEIVED, "orders", 0, 0, 0), (10, Step.PERSISTED, "orders", 0, 0, 0))
    assert (publish.trace_id, publish.parent_span_id) == (PARENT.trace_id, PARENT.span_id)
    assert publish.is_parent_remote
    (fetch,) = maker.of((12, Step.FETCHED, "orders", 0, 0, 0, "", "reader"))
    assert (fetch.trace_id, fetch.parent_span_id) == (PARENT.trace_id, publish.span_id)
    assert not fetch.is_parent_remote


def test_each_delivery_is_a_child_of_the_publish() -> None:
    maker = Maker()
    (publish,) = maker.of((10, Step.RECEIVED, "orders", 0, 0, 0), (10, Step.PERSISTED, "orders", 0, 0, 0))
    first, second = maker.of(
        (20, Step.LEASED, "orders", 0, 0, 0, "workers", "anna"),
        (25, Step.NACKED, "orders", 0, 0, 0, "workers", "", "no luck"),
        (30, Step.LEASED, "orders", 0, 0, 0, "workers", "ben"),
        (36, Step.ACKED, "orders", 0, 0, 0, "workers"),
    )
    assert (first.event, first.error, first.consumer_id, first.start_ms, first.end_ms) == (
        "consume.nacked",
        "no luck",
        "anna",
        20,
        25,
    )
    assert (second.event, second.error, second.consumer_id, second.start_ms, second.end_ms) == (
        "consume.acked",
        "",
        "ben",
        30,
        36,
    )
    assert {first.parent_span_id, second.parent_span_id} == {publish.span_id}
    assert first.span_id != second.span_id


def test_a_delayed_record_is_one_trace_with_its_wait() -> None:
    maker = Maker()
    maker.ids.moved.add(Note(0, Step.DUE, "orders", 0, 0, 0, detail="7"))
    publish, delay, deliver = maker.of(
        (10, Step.RECEIVED, "orders", 0, 0, 0),
        (10, Step.SCHEDULED, "orders", 0, 0, 0, "", "", "5000"),
        (11, Step.PERSISTED, "orders", 0, 0, 0),
        (5000, Step.DUE, "orders", 0, 0, 0, "", "", "7"),
        (5001, Step.PERSISTED, "orders", 0, 7, 7),
        (6000, Step.LEASED, "orders", 0, 7, 7, "workers", "anna"),
        (6001, Step.ACKED, "orders", 0, 7, 7, "workers"),
    )
    assert (delay.name, delay.start_ms, delay.end_ms) == ("delay orders", 10, 5000)
    assert {publish.trace_id, delay.trace_id, deliver.trace_id} == {maker.ids.made_id(spot(0))}
    assert delay.parent_span_id == publish.span_id
    assert deliver.parent_span_id == delay.span_id


def test_a_dead_letter_is_linked_with_what_it_is_now() -> None:
    maker = Maker()
    (dead,) = maker.of((9, Step.DEAD_LETTERED, "orders", 0, 3, 3, "workers", "", "rejected: bad; now orders.dlq/0/5"))
    letter = spot(5, "orders.dlq")
    assert dead.links == (Link(maker.ids.made_id(letter), maker.ids.publish_span(letter)),)
    assert dead.error.startswith("rejected: bad")


def test_where_something_went_is_told_by_its_note() -> None:
    note = Note(0, Step.REDRIVEN, "orders.dlq", 0, 4, 9, detail="orders/2/70")
    assert moved_to(note, 6) == Spot("orders", 2, 72)
    assert moved_to(structs.replace(note, detail="somewhere"), 6) is None


def test_with_sampling_only_chosen_ones_and_all_that_went_wrong() -> None:
    maker = Maker(0.01)
    found = maker.of((1, Step.RECEIVED, "orders", 0, 0, 299), (2, Step.PERSISTED, "orders", 0, 0, 299))
    assert [each.offset for each in found] == [0, 100, 200]
    wrong = maker.of((3, Step.REJECTED, "orders", 0, 5, 7, "workers", "", "bad"))
    assert [(each.offset, each.error) for each in wrong] == [(5, "bad"), (6, "bad"), (7, "bad")]


def test_what_is_too_much_is_counted_and_what_went_wrong_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans_module, "SPANS_MAX", 10)
    maker = Maker()
    found = maker.of(
        (1, Step.RECEIVED, "orders", 0, 0, 99),
        (2, Step.PERSISTED, "orders", 0, 0, 99),
        (3, Step.REFUSED, "orders", 0, -4, -1, "", "", "too large"),
    )
    assert [(each.event, each.offset) for each in found] == [
        ("publish.refused", -1),
        *[("publish.persisted", offset) for offset in range(9)],
    ]
    assert maker.dropped == 91
    assert (
        maker.of((4, Step.LEASED, "orders", 0, 0, 9, "g", "c"), (5, Step.ACKED, "orders", 0, 9, 9, "g"))[0].start_ms
        == 4
    )

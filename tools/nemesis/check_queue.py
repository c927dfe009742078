"""Queues: every acknowledged message is delivered at least once and settled once; a lease is respected; what is settled
never comes again.

Operations: `publish` asks queue and id; `receive` asks queue and is answered with `messages` of `id`, `receipt` and
`lease_ms`; `settle` asks queue, id, receipt and `how`: ack, nack, reject, or SQS's delete. A run ends when workers find
nothing more. `fifo delete` says that the message is gone, whoever has deleted it. `delete`, for standard queues, is
answered `ok`, too, if the lease was over and another worker has the message: it counts if the lease was surely held.

The kinds of faults: lost, phantom, unsettled, settled twice, after settled, too early.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tools.nemesis.history import FAIL, Fault, Operation, Window

ONCE = ("ack", "reject")
"""What one worker can do, and then no other."""
FIRM = (*ONCE, "fifo delete")
"""What makes that a message never comes again."""
ENDING = (*FIRM, "delete")


class _Delivery(NamedTuple):
    receive: Operation
    receipt: Any
    lease_s: float


class _Story(NamedTuple):
    """All that happened to one message."""

    name: str
    published: list[Operation]
    delivered: list[_Delivery]
    settled: list[Operation]


def check_queues(
    history: Iterable[Operation], changes: Sequence[Window] = (), *, is_drained: bool = True
) -> list[Fault]:
    """`changes`: when leaders may have changed, which forgets leases. `is_drained`: workers went on until the end."""
    found: list[Fault] = []
    for story in _stories(history):
        found += [
            *_phantom(story),
            *_settled_twice(story),
            *_after_settled(story, changes),
            *_too_early(story, changes),
        ]
        if is_drained:
            found += _undone(story)
    return found


def _stories(history: Iterable[Operation]) -> Iterable[_Story]:
    stories: dict[tuple[str, Any], _Story] = {}

    def story(queue: str, message: Any) -> _Story:
        return stories.setdefault((queue, message), _Story(f"{message!r} of {queue}", [], [], []))

    for operation in history:
        asked = operation.asked
        if operation.what == "publish":
            story(asked["queue"], asked["id"]).published.append(operation)
        elif operation.what == "settle":
            story(asked["queue"], asked["id"]).settled.append(operation)
        elif operation.what == "receive" and operation.is_ok:
            for message in operation.answer["messages"]:
                delivery = _Delivery(operation, message["receipt"], message["lease_ms"] / 1000)
                story(asked["queue"], message["id"]).delivered.append(delivery)
    return stories.values()


def _phantom(story: _Story) -> Iterator[Fault]:
    if story.delivered and all(publish.outcome == FAIL for publish in story.published):
        why = "was refused" if story.published else "was published by nobody"
        yield Fault("phantom", f"{story.name} {why} and was delivered")


def _undone(story: _Story) -> Iterator[Fault]:
    if not any(publish.is_ok for publish in story.published):
        return
    if not story.delivered:
        yield Fault("lost", f"{story.name} was acknowledged and never delivered")
    elif not any(settle.asked["how"] in ENDING and settle.outcome != FAIL for settle in story.settled):
        yield Fault("unsettled", f"{story.name} was delivered {len(story.delivered)} times and never settled")


def _settled_twice(story: _Story) -> Iterator[Fault]:
    receipts: dict[Any, Operation] = {}
    for settle in story.settled:
        if settle.is_ok and settle.asked["how"] in ONCE:
            receipts.setdefault(settle.asked["receipt"], settle)
    if len(receipts) > 1:
        yield Fault("settled twice", f"{story.name} with receipts {sorted(map(str, receipts))}")


def _after_settled(story: _Story, changes: Sequence[Window]) -> Iterator[Fault]:
    """An answer that said "settled" was given before somebody asked for more, and got it all the same."""
    ends = [settle.ended for settle in story.settled if settle.is_ok and _is_firm(settle, story, changes)]
    if not ends:
        return
    for delivery in story.delivered:
        if delivery.receive.began > min(ends):
            late_s = delivery.receive.began - min(ends)
            yield Fault("after settled", f"{story.name} was delivered again {late_s:.1f} s after it was settled")


def _is_firm(settle: Operation, story: _Story, changes: Sequence[Window]) -> bool:
    if settle.asked["how"] in FIRM:
        return True
    if settle.asked["how"] not in ENDING:
        return False
    for delivery in story.delivered:
        if delivery.receipt == settle.asked["receipt"]:
            began = delivery.receive.began
            in_time = settle.ended < began + delivery.lease_s
            return in_time and not any(change.touches(began, settle.ended) for change in changes)
    return False


def _too_early(story: _Story, changes: Sequence[Window]) -> Iterator[Fault]:
    """A lease begins after it was asked for: whoever got the message before that plus the lease got it too early."""
    given_back: dict[Any, list[Operation]] = defaultdict(list)
    for settle in story.settled:
        given_back[settle.asked["receipt"]].append(settle)
    ordered = sorted(story.delivered, key=lambda delivery: delivery.receive.ended)
    for before, after in pairwise(ordered):
        held_until = before.receive.began + before.lease_s
        if after.receive.ended >= held_until or before.receive is after.receive:
            continue
        if any(settle.outcome != FAIL and settle.began <= after.receive.ended for settle in given_back[before.receipt]):
            continue
        if any(change.touches(before.receive.began, after.receive.ended) for change in changes):
            continue
        early_s = held_until - after.receive.ended
        yield Fault("too early", f"{story.name} came to {after.receive.process} {early_s:.1f} s before its lease ended")

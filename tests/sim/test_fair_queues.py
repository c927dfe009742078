"""One noisy and 99 quiet senders on one queue: how long the quiet ones wait, by a virtual clock, on a real broker."""

import heapq
from random import Random

import pytest

from goqueue.records.messages import NewMessage
from tests.unit.broker.queue_node import Got, queue_node

QUIET = 99
WORKERS = 4
WORK_MS = 10
LOAD = 0.8
"""Of what the workers can do, by the quiet ones alone."""
MESSAGES = 600
BACKLOG = 1000
ARRIVES, IS_DONE = 0, 1


def message(sender: str, value: bytes) -> NewMessage:
    return NewMessage(value, headers=[("gq-fairness-key", sender.encode())])


def waits_of_the_quiet(seed: int, backlog: int, fair_by: str, work_ms_of_noisy: int = WORK_MS) -> list[int]:
    """Milliseconds between the sending and the delivery of each of their messages."""
    dice = Random(seed)
    node = queue_node(fair_by=fair_by, lease_ms="3600000", unacked_max="100000")
    for _ in range(backlog // 500):
        node.put("orders", *[message("noisy", b"noisy")] * 500)
    began_ms = node.clock.now_ms()
    pause_ms = WORK_MS / WORKERS / LOAD
    at_ms, events = 0.0, []
    for number in range(MESSAGES):
        at_ms += dice.expovariate(1 / pause_ms)
        events.append((int(at_ms), ARRIVES, number, b"%d" % dice.randrange(QUIET)))
    waits: list[int] = []
    idle = WORKERS
    held: dict[int, Got] = {}
    while len(waits) < MESSAGES:
        now_ms, kind, number, sender = heapq.heappop(events) if events else (0, ARRIVES, -1, b"")
        assert number >= 0, "a message was lost"
        node.pass_ms(began_ms + now_ms - node.clock.now_ms())
        if kind == ARRIVES:
            node.put("orders", message(sender.decode(), b"%d" % now_ms))
        else:
            idle += 1
            node.ack(held.pop(number))
        while idle and (got := node.receive(most=1)):
            (one,) = got
            assert one.value is not None
            idle -= 1
            held[one.offset] = one
            work_ms = WORK_MS
            if one.value == b"noisy":
                work_ms = work_ms_of_noisy
            else:
                waits.append(now_ms - int(one.value))
            heapq.heappush(events, (now_ms + work_ms, IS_DONE, one.offset, b""))
    return sorted(waits)


def p99(waits: list[int]) -> int:
    return waits[len(waits) * 99 // 100]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_quiet_wait_at_most_twice_as_long_as_they_would_alone(seed: int) -> None:
    alone = p99(waits_of_the_quiet(seed, 0, "header"))
    together = p99(waits_of_the_quiet(seed, BACKLOG, "header"))
    assert alone > WORK_MS
    assert together <= 2 * alone, (together, alone)


def test_without_fairness_they_wait_for_the_backlog() -> None:
    alone = p99(waits_of_the_quiet(1, 0, "none"))
    assert p99(waits_of_the_quiet(1, BACKLOG, "none")) > 20 * alone

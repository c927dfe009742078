"""Leases are kept while somebody holds them."""

import threading
from collections.abc import Sequence

from goqueue.client.errors import ConnectionLost
from goqueue.spark.queue.lease_extender import LeaseExtender


def test_what_is_held_is_extended_again_and_again_also_after_a_failure() -> None:
    asked: list[list[str]] = []
    is_enough = threading.Event()

    def extend(receipts: Sequence[str]) -> None:
        asked.append(list(receipts))
        if len(asked) == 1:
            raise ConnectionLost("the broker restarts")
        is_enough.set()

    extender = LeaseExtender(extend, visibility_ms=3)
    extender.hold(["a", "b"])
    assert is_enough.wait(60)
    extender.stop()
    assert asked[:2] == [["a", "b"], ["a", "b"]]
    extender.let_go(["a"])
    asked.clear()
    extender.extend_now()
    assert asked == [["b"]]
    extender.let_go(["b"])
    extender.extend_now()
    assert asked == [["b"]]

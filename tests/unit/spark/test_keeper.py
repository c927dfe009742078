"""Leases are kept while somebody holds them."""

import threading
from collections.abc import Sequence

from goqueue.client.errors import ConnectionLost
from goqueue.spark.queue.keeper import Keeper


def test_what_is_held_is_extended_again_and_again_also_after_a_failure() -> None:
    asked: list[list[str]] = []
    is_enough = threading.Event()

    def extend(receipts: Sequence[str]) -> None:
        asked.append(list(receipts))
        if len(asked) == 1:
            raise ConnectionLost("the broker restarts")
        is_enough.set()

    keeper = Keeper(extend, visibility_ms=3)
    keeper.hold(["a", "b"])
    assert is_enough.wait(60)
    keeper.stop()
    assert asked[:2] == [["a", "b"], ["a", "b"]]
    keeper.let_go(["a"])
    asked.clear()
    keeper.extend_now()
    assert asked == [["b"]]
    keeper.let_go(["b"])
    keeper.extend_now()
    assert asked == [["b"]]

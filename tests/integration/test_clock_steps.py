"""A real node whose wall clock is set while it runs: nobody moves its timers by hand."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.process import DEADLINE_S, Node, wait_until
from tools.nemesis import stepped_clock

HOUR_MS = 3_600_000


class SteppedNode(Node):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._ahead = directory / "ahead"
        self.program = [sys.executable, "-P", stepped_clock.__file__, str(self._ahead)]
        self.set_clock(0)

    def set_clock(self, ahead_ms: int) -> None:
        stepped_clock.set_ahead(self._ahead, ahead_ms)

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        reply = httpx.post(f"{self.url}{path}", json=body, timeout=DEADLINE_S)
        assert reply.status_code < 300, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def values(self, topic: str) -> list[str]:
        reply = httpx.get(f"{self.url}/v1/topics/{topic}/partitions/0/messages", timeout=DEADLINE_S)
        return [each["value"] for each in reply.json()["messages"]]


@pytest.fixture
def stepped_node(tmp_path: Path) -> Iterator[SteppedNode]:
    node = SteppedNode(tmp_path)
    node.start()
    yield node
    node.clean_up()


def test_a_clock_that_is_set_forward_makes_due_what_it_has_passed(stepped_node: SteppedNode) -> None:
    node = stepped_node
    node.post("/v1/topics", name="orders", num_partitions=1)
    node.post("/v1/topics/orders/messages", messages=[{"value": "later", "delay": "1h"}])
    assert node.values("orders") == []
    node.set_clock(2 * HOUR_MS)
    wait_until(lambda: node.values("orders") == ["later"], "the delayed message")


def test_a_clock_that_is_set_back_holds_up_neither_leases_nor_delays(stepped_node: SteppedNode) -> None:
    node = stepped_node
    node.post("/v1/topics", name="orders", num_partitions=1)
    node.post("/v1/topics/orders/messages", messages=[{"value": "one"}, {"value": "late", "delay": "3s"}])
    (first,) = node.post("/v1/topics/orders/receive", group="workers", lease="3s")["messages"]
    node.set_clock(-HOUR_MS)
    found: dict[str, int] = {}

    def receive() -> bool:
        got = node.post("/v1/topics/orders/receive", group="workers", lease="1h")["messages"]
        found.update({each["value"]: each["delivery_count"] for each in got})
        return len(found) == 2

    assert first["value"] == "one"
    wait_until(receive, "the end of the lease and of the delay")
    assert found == {"one": 2, "late": 1}

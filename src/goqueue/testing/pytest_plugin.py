"""A broker for a test that asks for it by name. It needs no plugin for async tests and works with all of them: the
fixture itself is not async, the broker starts in whatever event loop first asks it for something.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from goqueue.testing.memory_broker import MemoryBroker

MARKER = (
    "goqueue(clock, kafka, http, grpc, now, disk):"
    " what goqueue.testing.broker is called with for the fixture goqueue_broker."
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def goqueue_broker(request: pytest.FixtureRequest) -> Iterator["MemoryBroker"]:
    """A broker of GoQueue in memory, with a virtual clock."""
    from goqueue.testing import broker

    marker = request.node.get_closest_marker("goqueue")
    made = broker(**(marker.kwargs if marker else {}))
    yield made
    made.close_now()

"""A broker, or a cluster, for a test that asks for it by name. It needs no plugin for async tests and works with all of
them: the fixtures themselves are not async, a broker starts in whatever event loop first asks it for something.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from goqueue.testing.memory_broker import MemoryBroker
    from goqueue.testing.memory_cluster import Cluster

MARKER = (
    "goqueue(clock, kafka, http, grpc, now, disk):"
    " what goqueue.testing.broker is called with for the fixture goqueue_broker."
)

CLUSTER_MARKER = (
    "goqueue_cluster(nodes, seed, limit):"
    " what goqueue.testing.cluster is called with for the fixture goqueue_cluster, settings of nodes too."
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.addinivalue_line("markers", CLUSTER_MARKER)


@pytest.fixture
def goqueue_broker(request: pytest.FixtureRequest) -> Iterator["MemoryBroker"]:
    """A broker of GoQueue in memory, with a virtual clock."""
    from goqueue.testing import broker

    marker = request.node.get_closest_marker("goqueue")
    made = broker(**(marker.kwargs if marker else {}))
    yield made
    made.close_now()


@pytest.fixture
def goqueue_cluster(request: pytest.FixtureRequest) -> Iterator["Cluster"]:
    """A cluster of GoQueue in memory, on virtual time: `async with goqueue_cluster as c`, or `goqueue_cluster.run`."""
    from goqueue.testing import cluster

    marker = request.node.get_closest_marker("goqueue_cluster")
    made = cluster(**(marker.kwargs if marker else {}))
    yield made
    made.close_now()

"""What needs more than Python: Go or Node. `make test-ops` runs these tests, and they fail where a tool is missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.process import Node


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[Node]:
    """For one test alone, which may kill and restart it."""
    running = Node(tmp_path).start()
    yield running
    running.clean_up()

"""Thousands of clients that are connected and say nothing: little memory for each, and no less for the others."""

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from tests.integration.clients import Message
from tests.integration.confluent_client import Confluent
from tests.integration.process import Node
from tests.integration.wire import Wire

CONNECTIONS = 5000
FILES = CONNECTIONS + 500
BYTES_EACH_MAX = 8 * 1024
"""They take about 2.4 KiB."""


@pytest.fixture(autouse=True)
def few_files() -> Iterator[None]:
    """The usual soft limit, for the node to raise by itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        pytest.skip(f"this system allows a process {hard} open files, the test needs {FILES}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_bytes(node: Node) -> int:
    return int(Path(f"/proc/{node.pid}/statm").read_text("utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_five_thousand_idle_connections_cost_little_and_nobody_else_anything(own_node: Node) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with Wire(own_node) as first:  # what the first client brings about is not of the others' making
        assert first.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == Code.NONE
    before = resident_bytes(own_node)
    with ExitStack() as stack:
        idle = [stack.enter_context(Wire(own_node)) for _ in range(CONNECTIONS)]
        for wire in idle:
            wire.send(ApiVersionsRequest(), 0)
        for wire in idle:
            assert wire.receive(ApiVersionsResponse, 0)[1].error_code == Code.NONE
        each = (resident_bytes(own_node) - before) / CONNECTIONS
        print(f"{each:.0f} bytes for each of {CONNECTIONS} connections")
        assert each < BYTES_EACH_MAX

        producer = Confluent.producer(own_node.address)
        assert producer.send("served", [Message(0, b"meanwhile")]) == [0]
        producer.close()
        for wire in idle[:: CONNECTIONS // 100]:
            assert wire.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == Code.NONE
    own_node.stop()

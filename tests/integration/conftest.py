"""Real clients against the real process. Most tests share one node per worker; a test that kills takes `own_node`."""

import gc
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.aiokafka_client import AioKafka
from tests.integration.clients import Client
from tests.integration.confluent_client import Confluent
from tests.integration.goqueue_command import Command
from tests.integration.kafka_python_client import KafkaPython
from tests.integration.process import Node
from tests.integration.sqs_door import SqsDoor, client_of
from tests.integration.topics import create_topic

ALL_CLIENTS: tuple[type[Client], ...] = (Confluent, KafkaPython, AioKafka)
CreateTopic = Callable[..., str]

_numbers = itertools.count()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Shared by all tests of one worker: each uses topics and groups of its own."""
    running = Node(tmp_path_factory.mktemp("node")).start()
    yield running
    running.clean_up()


@pytest.fixture
def goqueue(node: Node, tmp_path: Path) -> Command:
    """The command, with the shared node as its server."""
    return Command(tmp_path, node.url)


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[Node]:
    """For one test alone, which may kill and restart it."""
    running = Node(tmp_path).start()
    yield running
    running.clean_up()


@pytest.fixture
def own_reflecting_node(tmp_path: Path) -> Iterator[Node]:
    """For one test alone; its gRPC door tells what it serves."""
    running = Node(tmp_path, "--grpc-reflection", "on").start()
    yield running
    running.clean_up()


@pytest.fixture(scope="session")
def sqs_door() -> Iterator[SqsDoor]:
    """Shared by all tests of one worker: each uses queues of its own."""
    running = SqsDoor().start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def sqs(sqs_door: SqsDoor) -> Any:
    """boto3, as everybody uses it."""
    return client_of(sqs_door.url)


@pytest.fixture
def make_topic(request: pytest.FixtureRequest) -> CreateTopic:
    """Make a topic with a name of its own on the node of this test; returns the name."""
    own = "own_node" if "own_node" in request.fixturenames else "node"
    running: Node = request.getfixturevalue(own)

    def make(partitions: int = 3, **options: str) -> str:
        name = f"topic-{next(_numbers)}"
        create_topic(running.address, name, partitions, options)
        return name

    return make


@pytest.fixture
def group() -> str:
    return f"group-{next(_numbers)}"


@pytest.fixture(params=ALL_CLIENTS, ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest) -> type[Client]:
    """Every client library in turn."""
    kind: type[Client] = request.param
    return kind


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is swept up below may also come to light in the middle of a test."""
    leaked = pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
    )
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(leaked)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """kafka-python forgets to close sockets that could not connect: swept up here, not in some later test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """What the node said stands beside what the test says."""
    report = yield
    if report.failed:  # type: ignore[attr-defined]
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Node):
                report.sections.append(("log of the node", value.log_tail))  # type: ignore[attr-defined]
    return report

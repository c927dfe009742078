"""The examples of the documentation, run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

from tests.integration.confluent_client import Confluent
from tests.integration.process import DEADLINE_S, Node
from tests.integration.topics import end_offsets

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "kafka.md"
BIN = Path(sys.executable).parent
SCHEMAS = DOCS / "schemas.md"
PAGES = (
    *("client", "grpc", "http", "kafka", "schemas", "sqs", "exactly-once"),
    *(
        "from-kafka",
        "from-sqs",
        "from-rabbitmq",
        "from-celery",
        "task-queues",
        "find-a-lost-message",
        "drain-dead-letters",
    ),
)


def test_the_examples_of_the_schema_page_hold(own_node: Node) -> None:
    examples = re.findall(r"```python\n(.*?)```", SCHEMAS.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        placed = example.replace("127.0.0.1:9092", own_node.address).replace("http://127.0.0.1:8080", own_node.url)
        assert placed != example
        exec(compile(placed, str(SCHEMAS), "exec"), {})


def test_the_example_of_the_kafka_page_publishes_its_message(own_node: Node) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert "127.0.0.1:9092" in example
    exec(compile(example.replace("127.0.0.1:9092", own_node.address), str(PAGE), "exec"), {})
    ends = {("clicks", partition): end for partition, end in end_offsets(own_node, "clicks").items()}
    (record,) = Confluent.read(own_node.address, ends)
    assert (record.key, record.value) == (b"customer-7", b"three apples")


def test_the_pages_can_be_tried_one_after_the_other_on_one_node(own_node: Node) -> None:
    """No page spoils the topics, groups or subjects of another."""
    places = {
        "127.0.0.1:9092": own_node.address,
        "127.0.0.1:9000": own_node.grpc,
        "127.0.0.1:8080": own_node.url.removeprefix("http://"),
        "localhost:8080": own_node.url.removeprefix("http://"),
    }
    for page in (DOCS.parent / "README.md", *(DOCS / f"{name}.md" for name in PAGES)):
        for language, example in re.findall(r"```(python|bash|sh)\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            placed = example
            for written, real in places.items():
                placed = placed.replace(written, real)
            if placed == example or "goqueue.spark" in example or "grpcurl" in example:
                continue
            if language == "python":
                exec(compile(placed, str(page), "exec"), {"__name__": "__main__"})
            else:
                script = f"set -e\nPATH={BIN}:$PATH\n{placed}".replace("curl -s", "curl -sS --fail-with-body")
                subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=DEADLINE_S)

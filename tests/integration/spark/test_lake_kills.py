"""Exactly once into a table: the service is killed at every step of a commit, and the table is exact after it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry.avro import AvroSerializer

from goqueue.spark.iceberg.state import read_state
from tests.integration.conftest import CreateTopic
from tests.integration.process import GOQUEUE, Node
from tests.integration.registry import produce, registry, value_of
from tests.integration.spark import lake_driver
from tests.integration.spark.jobs import SPARK_DEADLINE_S
from tests.integration.spark.test_lake import GARBAGE, order, query, table_of

ROWS, BATCH = 3000, 300


def test_a_service_that_is_killed_at_every_step_of_a_commit_has_each_message_once(
    own_node: Node, make_topic: CreateTopic, tmp_path: Path
) -> None:
    node, lake = own_node, tmp_path / "lake"
    options = {"table": "iceberg", "table.freshness.ms": "100", "table.schema": "registry"}
    topic = make_topic(1, **options)
    with registry(node) as client:
        write = AvroSerializer(client, order(("id", "int", 0)))
        values = [write({"id": number}, value_of(topic)) for number in range(ROWS)]
        produce(node, topic, *(GARBAGE if number % 10 == 3 else value for number, value in enumerate(values)))
    asked = ["--lake", str(lake), "--kafka", node.address, "--server", node.url, "--batch", str(BATCH)]
    quiet = ["--listen", "127.0.0.1:0", "--master", "local[2]"]
    # Each run does one batch and dies in its second; before the swap that one leaves nothing, after it everything. The
    # first batch of the last run is the one that the run before it has committed, and Spark does not know that.
    done, batches = 0, {"written": 1, "manifest": 1, "swapped": 2, "settled": 1}
    for step in lake_driver.STEPS:
        at = {"manifest": 3}.get(step, 2)  # the first batch swaps two tables: its own, and that of the dead letters
        command = [sys.executable, "-m", lake_driver.__name__, step, str(at), *asked, *quiet]
        killed = subprocess.run(command, check=False, timeout=SPARK_DEADLINE_S, capture_output=True, text=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        done += batches[step]
        state = read_state(table_of(lake, topic).properties)
        assert state is not None
        assert state.positions == {0: done * BATCH}, step
        assert query(lake, topic, "SELECT count(*), count(DISTINCT _offset) FROM t") == [(done * 270, done * 270)], step
    letters = query(lake, f"{topic}_dead_letters", "SELECT count(*) FROM t")
    assert letters == [(done * 30,)]
    listen = f"{node.address.rpartition(':')[0]}:9099"  # an address that no other test has
    run_to_the_end([GOQUEUE, "pipeline", "serve", *asked, "--listen", listen])
    found = query(lake, topic, "SELECT _offset, id FROM t ORDER BY _offset")
    assert found == [(number, number) for number in range(ROWS) if number % 10 != 3]
    letters = query(lake, f"{topic}_dead_letters", "SELECT _offset, _value FROM t ORDER BY _offset")
    assert letters == [(number, GARBAGE) for number in range(3, ROWS, 10)]


def run_to_the_end(command: list[Any]) -> None:
    """The real command, until it has all; then it is told to stop, with its group."""
    process = subprocess.Popen(list(map(str, command)), start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        status = [GOQUEUE, "pipeline", "status", "--at", command[-1], "-o", "json"]
        give_up, pause = time.monotonic() + SPARK_DEADLINE_S, threading.Event()
        while not is_complete(subprocess.run(list(map(str, status)), check=False, capture_output=True, text=True)):
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            assert time.monotonic() < give_up
            pause.wait(0.5)
        os.killpg(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=SPARK_DEADLINE_S)
        assert process.returncode == 0, said
        assert len(said.splitlines()) == 1, said
    finally:
        process.kill()


def is_complete(asked: "subprocess.CompletedProcess[str]") -> bool:
    tables = json.loads(asked.stdout)["tables"] if asked.stdout else []
    return bool(tables) and all(table["lag"] == 0 and table["state"] == "running" for table in tables)

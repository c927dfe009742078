"""Spark's own source and sink for Kafka run against the Kafka API, and give what ours give."""

import json
import subprocess
import sys
from pathlib import Path

import confluent_kafka as ck

from tests.integration.process import DEADLINE_S, Node
from tests.integration.spark.kafka_compared import ROWS
from tests.integration.topics import create_topic

PARTITIONS = 3
ABORTED = 5


def abort_some(node: Node) -> None:
    producer = ck.Producer({"bootstrap.servers": node.address, "transactional.id": "aborted", "log_level": 0})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    for number in range(ABORTED):
        producer.produce("theirs", b"aborted %d" % number, partition=0)
    producer.flush(DEADLINE_S)
    producer.abort_transaction(DEADLINE_S)


def test_sparks_own_source_and_sink_for_kafka_agree_with_ours(own_node: Node, tmp_path: Path) -> None:
    for topic in ("theirs", "ours", "copied-by-kafka", "copied-by-goqueue"):
        create_topic(own_node.address, topic, PARTITIONS)
    abort_some(own_node)
    program = Path(__file__).with_name("kafka_compared.py")
    words = [sys.executable, "-m", f"tests.integration.spark.{program.stem}", own_node.address, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=program.parents[3])
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["places theirs"] == found["places ours"], "a key is where Kafka's own sink puts it"
    assert len(found["places ours"]) == ROWS
    for topic in ("theirs", "ours"):
        assert found[topic]["kafka"] == found[topic]["goqueue"]
        assert len(found[topic]["goqueue"]) == ROWS
    theirs, ours = found["stream kafka"], found["stream goqueue"]
    assert theirs["copied"] == ours["copied"] == sorted(f"value {number}" for number in range(ROWS))
    assert (theirs["rows"], theirs["behind"]) == (ours["rows"], ours["behind"])
    assert int(ours["behind"][0]["maxOffsetsBehindLatest"]) > 0
    assert ours["behind"][-1] == dict.fromkeys(ours["behind"][-1], "0") | {"avgOffsetsBehindLatest": "0.0"}

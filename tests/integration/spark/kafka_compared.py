"""Spark's own source and sink for Kafka beside ours, in a Spark of its own: `kafka_compared.py address directory`.

The topics `theirs` and `ours` are there, `theirs` with an aborted transaction. What was found goes to `found.json`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from goqueue.spark import behind_latest, session
from tools.kafka_jars import connector_jars

ROWS = 400
TAKEN = {"kafka.max.poll.records": "77", "kafka.fetch.max.wait.ms": "100", "kafkaConsumer.pollTimeoutMs": "60000"}
"""Given to both: some mean nothing to ours."""
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(json.dumps([str(row[name]) for name in COLUMNS]) for row in frame.collect())


def main(address: str, directory: str) -> None:
    jars = ",".join(map(str, connector_jars()))
    spark = session("compared", "local[2]", {"spark.jars": jars, "spark.driver.memory": "512m"})
    at = {"kafka.bootstrap.servers": address, **TAKEN}
    keyed = spark.sql(f"SELECT CAST(id AS STRING) AS key, concat('value ', id) AS value FROM range({ROWS})")
    found: dict[str, Any] = {}
    for format, topic in (("kafka", "theirs"), ("goqueue", "ours")):
        keyed.write.format(format).options(**at, topic=topic).mode("append").save()
    committed = at | {"kafka.isolation.level": "read_committed"}
    for topic in ("theirs", "ours"):
        found[topic] = {
            format: rows_of(spark.read.format(format).options(**committed, subscribe=topic).load())
            for format in ("kafka", "goqueue")
        }
        keys = spark.read.format("goqueue").options(**at, subscribe=topic).load().where("key IS NOT NULL")
        found[f"places {topic}"] = {row.key.decode(): row.partition for row in keys.collect()}
    for format in ("kafka", "goqueue"):
        found[f"stream {format}"] = streamed(spark, format, committed, Path(directory, format))
    Path(directory, "found.json").write_text(json.dumps(found))
    spark.stop()


def streamed(spark: SparkSession, format: str, at: dict[str, str], directory: Path) -> dict[str, Any]:
    """From `theirs` to a topic of its own, all that is there, in several micro-batches."""
    options = {"startingOffsets": "earliest", "subscribe": "theirs", "maxOffsetsPerTrigger": "150"}
    stream = spark.readStream.format(format).options(**(at | options)).load()
    writer = stream.select("key", "value").writeStream.format(format).options(**at, topic=f"copied-by-{format}")
    query = writer.option("checkpointLocation", str(directory)).trigger(availableNow=True).start()
    query.awaitTermination()
    told = [json.loads(each.json) for each in query.recentProgress]
    metrics = [each["sources"][0]["metrics"] if format == "kafka" else behind_latest(each) for each in told]
    copied = spark.read.format(format).options(**at, subscribe=f"copied-by-{format}").load()
    return {
        "rows": [each["numInputRows"] for each in told],
        "behind": [{name: each[name] for name in sorted(each) if "OffsetsBehindLatest" in name} for each in metrics],
        "copied": sorted(row.value.decode() for row in copied.collect()),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A program that uses Spark Connect: `connect_driver.py remote kafka http directory`. It leaves `found.json`.

The topic `letters` has one, which was rejected; nothing here needs a JVM in this process.
"""

import json
import sys
from pathlib import Path
from typing import Any

from goqueue.spark import behind_latest, session
from goqueue.spark.jobs import archive, dlq, reconcile, report

ROWS = 100


def main(remote: str, address: str, url: str, directory: str) -> None:
    spark = session(master=remote)
    at = {"kafka.bootstrap.servers": address}
    found: dict[str, Any] = {"kind": type(spark).__module__}
    rows = spark.sql(f"SELECT CAST(id AS STRING) AS key, CAST(id AS STRING) AS value FROM range({ROWS})")
    rows.write.format("goqueue").options(**at).mode("append").save("first")
    read = spark.read.format("goqueue").options(**at).load("first")
    found["read"] = sorted(int(row.value) for row in read.collect())

    stream = spark.readStream.format("goqueue").options(**at, startingOffsets="earliest").load("first")
    sink = stream.select("key", "value").writeStream.format("goqueue").options(**at, topic="second")
    query = sink.option("checkpointLocation", f"{directory}/second").trigger(availableNow=True).start()
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None
    found["behind"] = behind_latest(progress)
    again = spark.read.format("goqueue").options(**at).load("second")
    found["streamed"] = sorted(int(row.value) for row in again.collect())

    dead = spark.read.format("goqueue").options(**at, table="dlq").load()
    found["dead"] = [(row.topic, row.error) for row in dead.select("topic", "error").collect()]
    asked = ["--kafka", address, "--server", url]
    found["reconciled"] = reconcile.main(["topic:first", "topic:second", "--by", "CAST(value AS STRING)", *asked])
    found["letters"] = dlq.main(["letters", *asked])
    found["reported"] = report.main(["first", *asked])
    found["archived"] = archive.main(["first", "--lake", f"{directory}/lake", *asked])
    Path(directory, "found.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A driver of its own that works through a queue, to be killed: `queue_driver.py SERVERS CHECKPOINT SINK [wait]`.

Each micro-batch is written to SINK under its number, as an idempotent sink would do it. With `wait` it says so when it
is in the middle of its second micro-batch, and waits there for its end.
"""

import json
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from goqueue.spark import session, settle


def work(spark: SparkSession, servers: str, checkpoint: str, sink: str, then: str = "") -> None:
    def handle(batch: DataFrame, number: int) -> None:
        rows = [(row.partition, row.offset, row.value.decode()) for row in batch.collect()]
        Path(sink, f"{number}.json").write_text(json.dumps(rows))
        poison = batch.where("cast(value as string) like '%0'")
        settle(poison.select("receipt", lit("reject").alias("_settle"), lit("ends with 0").alias("_reason")), servers)
        if number == 1 and then == "wait":
            print("in the middle", flush=True)
            threading.Event().wait()

    (
        spark.readStream.format("goqueue")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "killed")
        .option("mode", "queue")
        .option("kafka.group.id", "killed-group")
        .option("maxRecordsPerTrigger", "40")
        .option("visibility", "1h")  # however slow the machine is that starts it again
        .load()
        .writeStream.foreachBatch(handle)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


if __name__ == "__main__":
    work(session("queue driver", "local[2]"), *sys.argv[1:])

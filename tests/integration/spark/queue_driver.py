"""A driver of its own that works through a queue, to be killed: `python queue_driver.py SERVERS CHECKPOINT SINK SIGN`.

Each micro-batch is written to SINK under its number, as an idempotent sink would do it. The first run waits in the
middle of its second micro-batch for a kill, once SIGN is there; a run that finds SIGN does not wait.
"""

import json
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from goqueue.spark import session, settle


def main(servers: str, checkpoint: str, sink: str, sign: str) -> None:
    spark = session("queue driver", "local[2]")
    is_second_run = Path(sign).exists()

    def handle(batch: DataFrame, number: int) -> None:
        rows = [(row.partition, row.offset, row.value.decode()) for row in batch.collect()]
        Path(sink, f"{number}.json").write_text(json.dumps(rows))
        poison = batch.where("value like '%0'")
        settle(poison.select("receipt", lit("reject").alias("_settle"), lit("ends with 0").alias("_reason")), servers)
        if number == 1 and not is_second_run:
            Path(sign).touch()
            threading.Event().wait()

    (
        spark.readStream.format("goqueue")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "killed")
        .option("mode", "queue")
        .option("kafka.group.id", "killed-group")
        .option("maxRecordsPerTrigger", "40")
        .load()
        .writeStream.foreachBatch(handle)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

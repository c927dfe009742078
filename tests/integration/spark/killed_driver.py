"""A query on a small cluster of its own, for a test that kills it: address, topic, sink and checkpoint as arguments."""

import sys

from goqueue.spark import session


def main(address: str, topic: str, sink: str, checkpoint: str) -> None:
    spark = session("killed", "local-cluster[1,2,1024]", {"spark.driver.memory": "512m"})
    frame = spark.readStream.format("goqueue").options(
        **{
            "kafka.bootstrap.servers": address,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "5000",
        }
    )
    query = frame.load().writeStream.format("parquet").option("path", sink).option("checkpointLocation", checkpoint)
    query.start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])

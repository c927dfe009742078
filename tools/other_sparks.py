"""Whether the lake holds on a Spark that the tests do not run on: archived, killed, repeated, read back by every job.

    VENV/bin/python -m tools.other_sparks delta    # VENV has that pyspark; `iceberg`, `parquet`: the same
    VENV/bin/python -m tools.other_sparks table    # what this Spark gives and refuses, for the table in docs/spark.md
    VENV/bin/python -m tools.other_sparks kafka    # reads a topic by Spark's own source for Kafka and by ours

What follows, as NAME=VALUE, are settings of Spark instead of those that fetch packages: spark.jars=...
"""

import asyncio
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from goqueue.client.sync import Admin
from goqueue.spark import session
from goqueue.spark.jobs import archive, backfill, reconcile, restore
from goqueue.spark.jobs.lake import Lake
from goqueue.spark.jobs.lake_tables import settings_of
from goqueue.spark.jobs.running import one_line
from goqueue.spark.jobs.words import setting
from goqueue.spark.read.limits import IS_KNOWN_TO_SPARK
from tests.integration.process import GOQUEUE, Node
from tests.integration.spark.jobs import publish
from tests.integration.spark.killing import kill_all_of
from tests.integration.topics import create_topic

MESSAGES = 60_000
COMMITS = {"delta": "_delta_log/*.json", "iceberg": "metadata/v*.metadata.json", "parquet": "date=*/batch=*"}
KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
NOW_MS = 1_700_000_000_000


def lake(node: Node, directory: Path, format: str, conf: dict[str, str]) -> None:
    root = directory / "lake"
    create_topic(node.address, "orders", 3)
    create_topic(node.address, "again", 3)
    sent = publish(node, "orders", [b"%d" % number for number in range(MESSAGES)])
    # With data written and nothing of it committed; after the first commit; and, with batches, in the middle of them.
    for pattern, count in (("**/*.parquet", 1), (COMMITS[format], 2), (COMMITS[format], 5))[
        : 3 if IS_KNOWN_TO_SPARK else 2
    ]:
        kill_archive(node, root, format, conf, pattern, count)

    spark = session("other sparks", "local[2]", conf)
    call(node, archive, "orders", "--lake", str(root), "--format", format)
    # As if it were killed after a batch is in the lake, and before Spark notes that.
    forget_last_commit(root / "_goqueue" / "checkpoints" / "orders")
    call(node, archive, "orders", "--lake", str(root))
    sent |= publish(node, "orders", [b"more %d" % number for number in range(500)])
    call(node, archive, "orders", "--lake", str(root))
    same(places(Lake(spark, str(root)).read("orders")), sorted((v, *at) for v, at in sent.items()), "the lake")
    call(node, reconcile, "topic:orders", f"lake:{root}")
    shutil.rmtree(root / "_goqueue" / "checkpoints")
    sent |= publish(node, "orders", [b"tail %d" % number for number in range(300)])
    call(node, backfill, "orders", "--lake", str(root), "--out", str(directory / "out"))
    same(places(spark.read.parquet(str(directory / "out"))), sorted((v, *at) for v, at in sent.items()), "the backfill")
    call(node, archive, "orders", "--lake", str(root))  # without its checkpoint: the lake says where to go on
    call(node, reconcile, "topic:orders", f"lake:{root}")
    call(node, restore, "orders", "--lake", str(root), "--into", "again", "--keep-partitions")
    call(node, reconcile, "topic:orders", "topic:again", "--by", "CAST(value AS STRING)")
    spark.stop()


def kill_archive(node: Node, root: Path, format: str, conf: dict[str, str], pattern: str, count: int) -> None:
    command = [str(GOQUEUE), "pipeline", "archive", "orders", "--lake", str(root), "--format", format]
    command += ["--kafka", node.address, *(["--batch", "5000"] if IS_KNOWN_TO_SPARK else [])]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    process = subprocess.Popen(command, start_new_session=True)
    pause = threading.Event()
    while len(list((root / "topic=orders").glob(pattern))) < count and process.poll() is None:
        pause.wait(0.02)
    if process.poll() is None:
        kill_all_of(process.pid)
    print(f"killed at {count} of {pattern}: {process.wait()}", flush=True)


def forget_last_commit(checkpoint: Path) -> None:
    last = max(
        (path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda at: int(at.name)
    )
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def call(node: Node, job: ModuleType, *words: str) -> None:
    name = job.__name__.rpartition(".")[2]
    print(f"-- {name} {' '.join(words)}", flush=True)
    code = job.main([*words, "--kafka", node.address, "--server", node.url])
    if code:
        sys.exit(f"{name} ended with {code}")


def places(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((bytes(row.value), row.partition, row.offset) for row in rows.collect())


def same(found: Sequence[Any], wanted: Sequence[Any], what: str) -> None:
    if list(found) != list(wanted):
        both = set(map(repr, found)), set(map(repr, wanted))
        sys.exit(
            f"{what} DIFFERS: {len(found)} rows for {len(wanted)};"
            f" too much {sorted(both[0] - both[1])[:3]}, missing {sorted(both[1] - both[0])[:3]}"
        )
    print(f"{what}: {len(found)} rows, the same", flush=True)


# -- what this Spark gives


def table(node: Node, directory: Path, conf: dict[str, str]) -> None:
    create_topic(node.address, "orders", 1)
    create_topic(node.address, "copies", 1)
    publish(node, "orders", [b'{"id": %d}' % number for number in range(1000)])
    with Admin(node.url) as admin:
        admin.register_schema("orders-value", '{"type": "object", "properties": {"id": {"type": "integer"}}}', "JSON")
    spark = session("other sparks", "local[2]", conf)
    servers = {"kafka.bootstrap.servers": node.address}

    def batch(topic: str = "orders", **options: str) -> DataFrame:
        return spark.read.format("goqueue").options(**servers, **options).load(topic)

    def write() -> str:
        for _ in range(2):
            writer = batch().select("key", "value").write.format("goqueue").mode("append").options(**servers)
            writer.option("txnAppId", "table").option("txnVersion", "1").save("copies")
        return f"{batch('copies').count()} rows, written twice"

    def stream(sink: str, **options: str) -> str:
        rows = spark.readStream.format("goqueue").options(**servers, **options).load("orders").select("key", "value")
        own = directory / f"stream-{next(numbers)}"
        writer = rows.writeStream.option("checkpointLocation", str(own / "checkpoint")).trigger(availableNow=True)
        path = "copies" if sink == "goqueue" else str(own / "out")
        query = writer.format(sink).options(**(servers if sink == "goqueue" else {})).start(path)
        query.awaitTermination()
        found = "" if sink == "goqueue" else f", {spark.read.parquet(path).count()} rows"
        return f"{len([one for one in query.recentProgress if one.numInputRows])} micro-batches{found}"

    numbers = itertools.count()
    earliest, queue = {"startingOffsets": "earliest"}, {"mode": "queue", "kafka.group.id": "workers"}
    tries: dict[str, Callable[[], Any]] = {
        "batch": lambda: batch().count(),
        "typed": lambda: batch(valueFormat="json").agg({"id": "sum"}).collect()[0][0],
        "table": lambda: spark.read.format("goqueue").options(**servers, table="topics").load().count(),
        "segments": lambda: segments(spark, node).count(),
        "stream": lambda: stream("parquet", **earliest),
        "limits": lambda: stream("parquet", maxOffsetsPerTrigger="300", **earliest),
        "queue": lambda: stream("parquet", **queue),
        "write": write,
        "stream write": lambda: stream("goqueue", **earliest),
    }
    for name, attempt in tries.items():
        try:
            print(f"{name}: {attempt()}", flush=True)
        except PySparkException as error:
            print(f"{name}: REFUSED: {one_line(error)}", flush=True)
    spark.stop()


def segments(spark: SparkSession, node: Node) -> DataFrame:
    reader = spark.read.format("goqueue").option("read", "segments").option("activeSegments", "true")
    return reader.option("subscribe", "orders").load(str(node.data_dir))


# -- Spark's own source for Kafka


async def produce(address: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=address, compression_type="gzip") as producer:
        for number in range(3000):
            await producer.send(
                "orders",
                None if number % 11 == 0 else b"value %d" % number,
                b"key %d" % number if number % 7 or number % 11 == 0 else None,  # one of both is needed
                partition=number % 3,
                timestamp_ms=NOW_MS + 10 * number,
                headers=[("a", b"%d" % number), ("a", b"")] if number % 5 == 0 else [],
            )
    async with AIOKafkaProducer(bootstrap_servers=address, transactional_id="t") as producer:
        for is_kept in (False, True):
            await producer.begin_transaction()
            for number in range(50):
                await producer.send("orders", b"%s %d" % (str(is_kept).encode(), number), partition=number % 2)
            await (producer.commit_transaction() if is_kept else producer.abort_transaction())


def by_partition(*values: int) -> str:
    return json.dumps({"orders": {str(number): value for number, value in enumerate(values)}})


READS: tuple[dict[str, str], ...] = (
    {},
    {"includeHeaders": "true"},
    {"startingOffsets": by_partition(10, -2, -1)},
    {"startingOffsets": by_partition(10, -2, 500), "endingOffsets": by_partition(20, 400, -1)},
    {"startingTimestamp": str(NOW_MS + 5005)},
    {"startingTimestamp": str(NOW_MS + 5000), "endingTimestamp": str(NOW_MS + 5030)},
    {"startingOffsetsByTimestamp": by_partition(NOW_MS, NOW_MS + 100, NOW_MS + 20000)},
    {"endingOffsetsByTimestamp": by_partition(NOW_MS + 1, NOW_MS + 100, NOW_MS + 20000)},
    {"startingTimestamp": "4000000000000"},
    {"startingTimestamp": "4000000000000", "startingOffsetsByTimestampStrategy": "latest"},
    {"endingTimestamp": "4000000000000"},
    {"startingOffsets": by_partition(100_000, 0, 0)},
    {"startingOffsets": by_partition(100_000, 0, 0), "failOnDataLoss": "false"},
    {"startingOffsets": by_partition(50, 0, 0), "endingOffsets": by_partition(20, 10, 10)},
    {"startingOffsets": json.dumps({"orders": {"0": 1}})},
    {"minPartitions": "9"},
)
WHOM: tuple[dict[str, str], ...] = (
    {"subscribe": "orders"},
    {"subscribePattern": "ord.*"},
    {"assign": '{"orders": [0, 2]}'},
)


def kafka(node: Node, directory: Path, conf: dict[str, str]) -> None:
    create_topic(node.address, "orders", 3)
    asyncio.run(produce(node.address))
    spark = session("other sparks", "local[2]", conf)
    for options in (*(WHOM[0] | each for each in READS), *WHOM[1:]):
        theirs, ours = (read(spark, format, node, options) for format in ("kafka", "goqueue"))
        is_same = theirs == ours or (isinstance(theirs, str) and isinstance(ours, str))  # both refuse
        print("same" if is_same else "DIFFERENT", options, told(ours), flush=True)
        if not is_same:
            print("    theirs:", told(theirs), "\n    ours:  ", told(ours), flush=True)
            if isinstance(theirs, list) and isinstance(ours, list):
                print("    for one:", next((pair for pair in zip(theirs, ours) if pair[0] != pair[1]), "lengths"))
    streams = [stream(spark, format, node, directory) for format in ("kafka", "goqueue")]
    same(streams[1][0], streams[0][0], "a stream up to now")
    print("offsets in checkpoints:", *(each[1] for each in streams))
    spark.stop()


def told(found: Any) -> str:
    return f"{len(found)} rows" if isinstance(found, list) else str(found)


def read(spark: SparkSession, format: str, node: Node, options: dict[str, str]) -> Any:
    isolation = "kafka.isolation.level"  # theirs is read_uncommitted unless it is given
    given = {isolation: "read_committed"} | options
    reader = spark.read.format(format).option("kafka.bootstrap.servers", node.address).options(**given)
    try:
        return rows_of(reader.load())
    except (PySparkException, Py4JJavaError) as error:  # what the two say is compared by eye
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"


def rows_of(rows: DataFrame) -> list[str]:
    """Theirs have null for no headers."""
    found = sorted(rows.collect(), key=lambda row: (row.topic, row.partition, row.offset))
    return [repr(row).replace("headers=None", "headers=[]") for row in found]


def stream(spark: SparkSession, format: str, node: Node, directory: Path) -> tuple[list[str], str]:
    reader = spark.readStream.format(format).option("kafka.bootstrap.servers", node.address)
    reader = reader.option("kafka.isolation.level", "read_committed")
    rows = reader.option("subscribe", "orders").option("startingOffsets", "earliest").load()
    writer = rows.writeStream.option("checkpointLocation", str(directory / format))
    query = writer.trigger(availableNow=True).format("memory").queryName(f"read_by_{format}").start()
    query.awaitTermination()
    return rows_of(spark.table(f"read_by_{format}")), (directory / format / "offsets" / "0").read_text().split("\n")[-1]


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what not in ("table", "kafka", *COMMITS):
        sys.exit(__doc__)
    given = dict(map(setting, sys.argv[2:]))
    with tempfile.TemporaryDirectory() as directory:
        node = Node(Path(directory)).start()
        try:
            if what == "table":
                table(node, Path(directory), given)
            elif what == "kafka":
                usual = {"spark.jars.packages": f"{KAFKA_PACKAGE}:{pyspark.__version__}"}
                kafka(node, Path(directory), given or usual)
            else:
                usual = {} if what == "parquet" else settings_of(what, pyspark.__version__)
                lake(node, Path(directory), what, given or usual)
        finally:
            node.clean_up()
    print(f"{what} holds on Spark {pyspark.__version__}")


if __name__ == "__main__":
    main()

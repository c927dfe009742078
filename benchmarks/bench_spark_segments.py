"""The bulk path of Spark: sealed segments to `noop`, beside `spark.range` to the same sink and a plain Python loop over
the same files; 100-byte messages in batches of about a thousand.

Each has three turns, in turns with the others, and its best counts. The baseline is `spark.range` with seven columns of
the same types, which is what Spark takes without reading anything; the ratio is each rate divided by its.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness import Row, best_rates, row, seconds, workplace
from goqueue.records.batch import Codec, check_batch, split
from goqueue.records.build import build_batch
from goqueue.records.decode import decode
from goqueue.spark import GoQueueDataSource, session
from goqueue.storage.log import Log
from goqueue.storage.options import Durability, LogOptions
from goqueue.storage.real_disk import RealDisk

PARTITIONS = 2
MESSAGES = 3_000_000
BATCH = 1000
VALUE = bytes(range(100))
NOW_MS = 1_700_000_000_000
BASELINE = "spark.range"


def run() -> list[Row]:
    with workplace() as directory:
        return [made for codec in (Codec.NONE, Codec.LZ4) for made in _measure(directory / codec.name, codec)]


def _measure(directory: Path, codec: Codec) -> list[Row]:
    _write(directory, codec)
    spark = session("benchmark", "local[2]", {"spark.driver.memory": "1g"})
    spark.dataSource.register(GoQueueDataSource)
    read = spark.read.format("goqueue").option("read", "segments")
    found = read.load(str(directory)).count()
    assert found == MESSAGES, f"{found} of {MESSAGES} messages"
    works: dict[str, Callable[[], None]] = {
        "segments": lambda: _to_nothing(read.load(str(directory))),
        BASELINE: lambda: _to_nothing(_made_up(spark)),
        "python loop": lambda: _loop(directory),
    }
    rates = best_rates({name: partial(_rate, work) for name, work in works.items()})
    aims = {"segments": "value >= 1000000"}
    return [
        row(f"{name}, {len(VALUE)} bytes, {codec.name.lower()}", rate, "rows/s", rates[BASELINE], aims.get(name))
        for name, rate in rates.items()
    ]


def _rate(work: Callable[[], None]) -> float:
    return MESSAGES / seconds(work)


def _write(directory: Path, codec: Codec) -> None:
    directory.mkdir()
    disk = RealDisk(directory)
    options = LogOptions(durability=Durability.OS, disk_reserve_bytes=0)
    data = build_batch([(NOW_MS, b"key", VALUE, [])] * BATCH, codec=codec)
    for partition in range(PARTITIONS):
        disk.make_directory("logs/bench")
        log = Log.open(disk, f"logs/bench/{partition}", options, NOW_MS)
        for _ in range(MESSAGES // PARTITIONS // BATCH):
            log.append([check_batch(memoryview(data))], 0, NOW_MS)
        log.roll(NOW_MS)  # what is written to is not sealed
        log.close()


def _to_nothing(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _made_up(spark: SparkSession) -> DataFrame:
    return spark.range(0, MESSAGES, numPartitions=PARTITIONS).selectExpr(
        "cast('key' as binary) as key",
        f"cast(repeat('x', {len(VALUE)}) as binary) as value",
        "'bench' as topic",
        "cast(id % 2 as int) as partition",
        "id as offset",
        f"timestamp_millis({NOW_MS} + id) as timestamp",
        "0 as timestampType",
    )


def _loop(directory: Path) -> None:
    count = 0
    for path in directory.glob("logs/bench/*/*.log"):
        for batch in split(memoryview(path.read_bytes())):
            count += len(decode(batch))
    assert count == MESSAGES

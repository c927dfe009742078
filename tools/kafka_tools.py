"""Kafka's own `kafka-acls` and `kafka-configs`, unmodified, against a closed node of this checkout over SASL_SSL.

    .venv/bin/python -m tools.kafka_tools [VERSION]

It needs Java. Kafka's jars (46 MB) are fetched once.
Prints what it asks, and ends with 1 if something was answered otherwise than by Kafka.
"""

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goqueue.client.sync import Admin
from goqueue.wire.rest.operations import accounts
from tests.certificates import Authority
from tests.integration.process import Node, own_host
from tools.kafka_jars import NoJars, find_jars

TOOLS, VERSION = "kafka_2.13", "3.9.1"
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""A tool lives for a second: what makes a JVM fast later makes it slow to start."""
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
    try:
        jars = find_jars(TOOLS, (*arguments, VERSION)[0])
    except NoJars as error:
        print(f"kafka-tools: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        told = list(ask_all(jars, Path(name)))
    for answer in told:
        print(answer)
    return int(not all(answer.is_right for answer in told))


def ask_all(jars: Path, directory: Path) -> Iterator["Answer"]:
    host = own_host()
    authority = Authority(directory)
    pair = authority.sign("server", dns=("localhost",), addresses=(host,))
    files = f"cert_file={pair.cert}&key_file={pair.key}"
    client = directory / "client.properties"
    client.write_text(CLIENT.format(ca=authority.ca, password=PASSWORD))
    listener = f"kafka://{host}:9092?name=public&protocol=SASL_SSL&{files}"
    node = Node(directory, "--listeners", listener, is_closed=True, host=host)
    node.start()
    try:
        with Admin(node.url, api_key=node.first_key) as admin:
            admin.call(accounts.CREATE_USER, name="boss", password=PASSWORD, roles=["admin"])
        base = ("--bootstrap-server", node.address, "--command-config", str(client))
        for command, given, wanted in ASKED:
            yield _ask(jars, command, (*base, *given), wanted)
    finally:
        node.stop()


@dataclass(frozen=True)
class Answer:
    asked: tuple[str, ...]
    is_right: bool
    said: str

    def __str__(self) -> str:
        line = f"{'PASSED' if self.is_right else 'FAILED'} {' '.join(self.asked)}"
        return line if self.is_right else f"{line}\n{self.said}"


def _ask(jars: Path, command: str, arguments: tuple[str, ...], wanted: tuple[str, ...]) -> Answer:
    call = ["java", *JVM, "-cp", str(jars / "*"), command, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    is_right = done.returncode == 0 and all(each in done.stdout for each in wanted)
    is_right = is_right and (bool(wanted) or "alice" not in done.stdout)
    return Answer((command.rpartition(".")[2], *arguments[4:]), is_right, done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

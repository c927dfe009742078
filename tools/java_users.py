"""Users of Kafka's own Java clients, in one Java process (`tools/java/KafkaUsers.java`), and what they were told."""

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from tools.kafka_jars import find_jars

MODULE, VERSION = "kafka-clients", "4.2.0"
SOURCE = Path(__file__).parent / "java" / "KafkaUsers.java"
END_S_MAX = 120
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")


class Told(NamedTuple):
    user: str
    event: str
    at_s: float
    """By `time.monotonic`."""
    topic: str
    partition: int
    offset: int
    value: str


def java_jars() -> Path:
    return find_jars(MODULE, VERSION)


class JavaUsers:
    """They begin at once, and go on until `end`."""

    def __init__(
        self,
        users: Sequence[str],
        servers: Sequence[str],
        topic: str,
        partitions: Sequence[int],
        errors: Path,
        heard: Callable[[Told], None],
        every_ms: int = 20,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """`heard` is called in a thread of its own. `errors` gets what Java writes to its standard error."""
        given = {
            "users": ",".join(users),
            "servers": ",".join(servers),
            "topic": topic,
            "partitions": ",".join(map(str, partitions)),
            "every_ms": str(every_ms),
            **{f"setting.{key}": str(value) for key, value in (settings or {}).items()},
        }
        call = ["java", *JVM, "-cp", str(java_jars() / "*"), str(SOURCE)]
        call += [f"{key}={value}" for key, value in given.items()]
        with errors.open("ab") as file:
            self._java = subprocess.Popen(
                call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, encoding="utf-8"
            )
        assert self._java.stdout is not None
        self._heard = heard
        self._hearing = threading.Thread(target=self._hear, args=(self._java.stdout,))
        self._hearing.start()

    def _hear(self, lines: IO[str]) -> None:
        for line in lines:
            user, event, at_ns, topic, partition, offset, value = line.rstrip("\n").split("\t")
            self._heard(Told(user, event, int(at_ns) / 1e9, topic, int(partition), int(offset), value))

    def end_writers(self) -> None:
        """They wait for the answers to what they have sent, and end."""
        assert self._java.stdin is not None
        self._java.stdin.write("\n")
        self._java.stdin.flush()

    def end(self) -> int:
        """How the process ended, after all that its users had begun was answered."""
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        try:
            self._java.stdin.close()
            return self._java.wait(END_S_MAX)
        finally:
            self._java.kill()
            self._java.wait()
            self._hearing.join()
            self._java.stdout.close()

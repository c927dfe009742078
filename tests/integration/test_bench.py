"""`goqueue bench` as a person runs it: the counts are right, the promised figures are there, and failures are told."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.integration.process import DEADLINE_S, GOQUEUE, Node, wait_until
from tests.integration.topics import admin_client

PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text("utf-8")
SEEN_BY_A_CLIENT = {"messages_per_s", "mib_per_s", "messages_per_request", "client_cpu_us_per_message"}
SEEN_BESIDE_THE_BROKER = {
    "broker_cpu_us_per_message",
    "broker_cpu_us_per_request",
    "broker_rss_mib",
    "broker_rss_anonymous_mib",
}
QUANTILES = ("p50_ms", "p99_ms", "p999_ms")


def bench(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [GOQUEUE, "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)


def measure(*arguments: str | Path) -> dict[str, Any]:
    result = bench(*arguments, "-o", "json")
    assert (result.returncode, result.stderr) == (0, "")
    document: dict[str, Any] = json.loads(result.stdout)
    assert set(document) == {"goqueue", "bench", "broker", "load", "counts", "figures"}
    for figure in document["figures"].values():
        assert set(figure) == {"value", "unit", "raw", "ratio"}
        assert figure["value"] > 0
        assert (figure["raw"] is None) == (figure["ratio"] is None)
        assert figure["raw"] is None or figure["ratio"] == pytest.approx(figure["value"] / figure["raw"])
    return document


def bench_topics(address: str) -> list[str]:
    return [name for name in admin_client(address).list_topics(timeout=DEADLINE_S).topics if "bench" in name]


def test_produce_starts_its_own_broker_and_every_message_is_acknowledged(tmp_path: Path) -> None:
    found = measure(
        "produce",
        "--messages",
        "2050",
        "--bytes",
        "300",
        "--batch",
        "100",
        "--durability",
        "os",
        "--directory",
        tmp_path,
    )
    assert found["bench"] == "produce"
    assert found["load"] == {"messages": 2050, "bytes": 300, "batch": 100, "partitions": 1, "durability": "os"}
    assert found["counts"] == {"sent": 2050, "acknowledged": 2050, "stored": 2050, "requests": 21}
    assert found["broker"]["is_own"] is True
    assert found["broker"]["filesystem"]
    figures = found["figures"]
    assert set(figures) == SEEN_BY_A_CLIENT | SEEN_BESIDE_THE_BROKER
    with_raw = {name for name, figure in figures.items() if figure["raw"] is not None}
    assert with_raw == {"messages_per_s", "broker_cpu_us_per_message", "broker_cpu_us_per_request"}
    assert figures["messages_per_request"]["value"] == pytest.approx(2050 / 21)
    per_request = figures["broker_cpu_us_per_request"]["value"] / figures["broker_cpu_us_per_message"]["value"]
    assert per_request == pytest.approx(2050 / 21)
    assert list(tmp_path.iterdir()) == []


def test_a_named_broker_is_measured_as_a_client_sees_it_and_left_as_it_was(own_node: Node) -> None:
    found = measure("produce", "--kafka", own_node.address, "--messages", "1000", "--batch", "10", "--partitions", "3")
    assert found["broker"] == {"kafka": own_node.address, "is_own": False, "filesystem": None}
    assert found["load"]["durability"] == "disk"
    assert found["counts"] == {"sent": 1000, "acknowledged": 1000, "stored": 1000, "requests": 100}
    assert set(found["figures"]) == SEEN_BY_A_CLIENT
    assert [name for name, figure in found["figures"].items() if figure["raw"] is not None] == []
    assert bench_topics(own_node.address) == []


@pytest.mark.parametrize("batch", [["--batch", "50"], []], ids=["batches of 50", "natural"])
def test_consume_reads_every_message_once(node: Node, batch: list[str]) -> None:
    found = measure(
        "consume", "--kafka", node.address, "--messages", "3000", "--bytes", "9", "--partitions", "4", *batch
    )
    requests = found["counts"].pop("requests")
    assert requests >= 1
    assert found["counts"] == {"stored": 3000, "consumed": 3000}
    assert found["figures"]["messages_per_request"]["value"] == 3000 / requests


def test_consume_from_its_own_broker_has_all_figures() -> None:
    found = measure("consume", "--messages", "1000")
    assert set(found["figures"]) == SEEN_BY_A_CLIENT | SEEN_BESIDE_THE_BROKER
    assert found["load"]["durability"] == "disk"


@pytest.mark.parametrize("durability", ["os", "disk"])
def test_latency_has_quantiles_of_publish_and_delivery_beside_raw_ones(durability: str) -> None:
    found = measure("latency", "--messages", "40", "--bytes", "5", "--partitions", "2", "--durability", durability)
    assert found["counts"].pop("stored") > 80  # the warm-up too
    assert found["counts"] == {"published": 40, "delivered": 40}
    raw = ["raw_echo"] + ["raw_sync"] * (durability == "disk")
    figures = found["figures"]
    assert set(figures) == {f"{name}_{each}" for name in ("publish", "delivery", *raw) for each in QUANTILES}
    for name in ("publish", "delivery"):
        p50, p99, p999 = (figures[f"{name}_{each}"] for each in QUANTILES)
        assert p50["value"] <= p99["value"] <= p999["value"]
        assert p50["raw"] <= p99["raw"] <= p999["raw"]
    if durability == "disk":
        assert figures["publish_p50_ms"]["raw"] >= figures["raw_sync_p50_ms"]["value"]


def test_latency_of_a_named_broker_has_no_raw_figures(node: Node) -> None:
    found = measure("latency", "--kafka", node.address, "--messages", "20")
    assert set(found["figures"]) == {f"{name}_{each}" for name in ("publish", "delivery") for each in QUANTILES}


def test_the_table_is_for_people(node: Node) -> None:
    result = bench("produce", "--kafka", node.address, "--messages", "500")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "goqueue bench produce: 500 messages of 100 bytes, 1 partition, durability disk"
    assert re.fullmatch(r"rate +[\d,.]+  msg/s", lines[5])


def test_every_figure_is_explained_in_the_docs() -> None:
    first_cells = re.findall(r"^\| (`[^|]*) \|", PAGE.partition("## make bench")[0], re.MULTILINE)
    explained = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    latencies = {f"{name}_{each}" for name in ("publish", "delivery", "raw_echo", "raw_sync") for each in QUANTILES}
    assert SEEN_BY_A_CLIENT | SEEN_BESIDE_THE_BROKER | latencies == explained


# -- what goes wrong


def check_failure(result: "subprocess.CompletedProcess[str]", message: str) -> None:
    assert (result.returncode, result.stdout) == (1, "")
    assert re.fullmatch(message, result.stderr.removesuffix("\n")), result.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("kind", ["produce", "consume", "latency"])
def test_no_broker_there_is_told_at_once(kind: str) -> None:
    address = f"127.0.0.1:{free_port()}"
    check_failure(bench(kind, "--kafka", address), f"goqueue: cannot reach a broker at {address}: Connection refused")


def test_a_host_that_does_not_exist_is_told() -> None:
    check_failure(
        bench("produce", "--kafka", "no-such-host.invalid:9092"),
        r"goqueue: cannot reach a broker at no-such-host\.invalid:9092: .+",
    )


def test_something_else_at_the_address_is_told() -> None:
    """It takes connections and hangs up on each."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        is_over = threading.Event()

        def hang_up() -> None:
            while not is_over.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=hang_up)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        try:
            result = bench("produce", "--kafka", address)
        finally:
            is_over.set()
            thread.join()
    check_failure(result, f"goqueue: what listens at {address} does not answer as a Kafka broker would")


def first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)


class Running:
    """A long `goqueue bench` in a directory of its own, with its broker already at work."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        command = [str(GOQUEUE), "bench", "produce", "--messages", "100000000", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def broker_pid(self) -> int:
        """Known when the warm-up is over and the first messages that count are stored."""
        wait_until(lambda: len(self._topics_with_messages()) == 2, "the first message")
        (ready_file,) = self.directory.glob("*/ready.json")
        pid: int = json.loads(ready_file.read_text("utf-8"))["pid"]
        return pid

    def _topics_with_messages(self) -> set[str]:
        """Zeroes are only room for messages."""
        logs = self.directory.glob("*/data/logs/goqueue-bench-*/*/*.log")
        return {log.parts[-3] for log in logs if any(first_bytes(log))}

    def end(self) -> tuple[int, str, str]:
        out, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, out, errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_bench_takes_its_broker_and_its_directory_along(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    running = Running(tmp_path, "--directory", str(tmp_path))
    pid = running.broker_pid()
    running.process.send_signal(number)
    assert running.end() == (code, "", "")
    assert not Path(f"/proc/{pid}").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_bench_leaves_no_broker_running(tmp_path: Path) -> None:
    running = Running(tmp_path, "--directory", str(tmp_path))
    pid = running.broker_pid()
    running.process.kill()
    running.end()
    wait_until(lambda: not is_running(pid), "the end of the broker")


def is_running(pid: int) -> bool:
    """An ended process whose new parent has not noticed yet does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_broker_that_dies_meanwhile_is_told(tmp_path: Path) -> None:
    running = Running(tmp_path, "--directory", str(tmp_path))
    os.kill(running.broker_pid(), signal.SIGKILL)
    code, out, errors = running.end()
    assert (code, out) == (1, "")
    assert errors.startswith("goqueue: the broker was lost: ")
    assert len(errors.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_queue_is_measured_and_left_as_it_was(own_node: Node) -> None:
    found = measure("queue", "--kafka", own_node.address, "--messages", "2000", "--partitions", "2")
    assert found["counts"] == {"stored": 2000, "acknowledged": 2000}
    assert set(found["figures"]) == {"messages_per_s", "mib_per_s", "client_cpu_us_per_message"}
    assert bench_topics(own_node.address) == []
    listed = subprocess.run(
        [GOQUEUE, "group", "list", "--server", own_node.url, "-o", "json"], capture_output=True, check=True
    )
    assert json.loads(listed.stdout) == []

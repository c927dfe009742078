"""`goqueue serve` from its start to its end, however that comes."""

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from goqueue.machines.controller_commands import CreateTopic
from goqueue.node.node import Node
from goqueue.node.settings import Settings
from goqueue.node.values import Address, Switch
from goqueue.storage.compaction import Plan
from goqueue.storage.options import LogOptions
from goqueue.storage.real_disk import RealDisk
from goqueue.storage.swap import Manifest
from tests.acceptance.conftest import DEADLINE_S, Serve, wait_until
from tests.directories import open_directory
from tests.logs import append, batch, numbered, stored

ROOT = Path(__file__).parents[2]
ANY_PORT = Address("127.0.0.1", 0)
NOW_MS = 4_000_000_000_000  # far ahead, so that retention finds nothing to do
MESSAGES = [b"message %d" % number for number in range(500)]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data directory with a topic of one partition and messages in it."""
    path = tmp_path / "data"
    path.mkdir()
    make_topic(path)
    directory = open_directory(RealDisk(path), NOW_MS)
    log = directory.open_log("orders", 0, LogOptions(), NOW_MS)
    for message in MESSAGES:
        append(log, batch(message, timestamp=NOW_MS))
    directory.close()
    return path


def make_topic(path: Path) -> None:
    async def make() -> None:
        settings = Settings(data_dir=path, dev=Switch.ON, kafka=ANY_PORT, http=ANY_PORT, grpc=ANY_PORT)
        node = Node(settings, RealDisk(path), compact=never)
        await node.open()
        assert node._assembly is not None
        made = asyncio.Event()
        node._assembly.broker.topics.submit(CreateTopic("orders", b"i" * 16, 1), lambda reply: made.set())
        await made.wait()
        await node.close()

    asyncio.run(make())


async def never(plan: Plan) -> Manifest | None:
    raise AssertionError(f"{plan.directory} should not be compacted")


def read_back(data_dir: Path) -> list[tuple[int, bytes | None]]:
    """Every message, read after the node has gone; and that it left the directory clean."""
    directory = open_directory(RealDisk(data_dir), NOW_MS)
    assert directory.report == []
    found = stored(directory.logs["orders", 0])
    directory.close()
    return found


@pytest.mark.smoke
def test_a_stopped_node_leaves_everything_as_it_was_and_clean(serve: Serve, data_dir: Path, tmp_path: Path) -> None:
    server = serve("--data-dir", data_dir, "--ready-file", "ready.json").wait_ready()
    ready_file = tmp_path / "ready.json"
    ready = json.loads(ready_file.read_text())
    assert (ready["pid"], ready["data_dir"]) == (server.process.pid, str(data_dir.resolve()))
    ready_event = server.event("ready")
    assert (ready_event["topics"], ready_event["partitions"]) == (1, 1)
    host, _, port = ready["kafka"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S):
        pass
    assert server.send(signal.SIGTERM) == 0
    assert server.events[-1]["event"] == "stopped"
    assert not ready_file.exists()
    assert read_back(data_dir) == numbered(MESSAGES)


@pytest.mark.smoke
def test_a_start_after_a_crash_recovers_and_its_stop_is_clean(serve: Serve, data_dir: Path) -> None:
    """A process that ends without closing anything, as a crashed one does."""
    code = (
        "import sys; from pathlib import Path\n"
        "from goqueue.storage.real_disk import RealDisk\n"
        "from tests.directories import open_directory\n"
        "from tests.logs import append, batch\n"
        f"log = open_directory(RealDisk(Path({str(data_dir)!r})), {NOW_MS}).logs['orders', 0]\n"
        f"append(log, batch(b'last', timestamp={NOW_MS}))\n"
        "log.sync()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    server = serve("--data-dir", data_dir).wait_ready()
    recovered = [event["log"] for event in server.events if event["event"] == "recovered log"]
    assert "logs/orders/0" in recovered
    assert server.send(signal.SIGTERM) == 0
    assert read_back(data_dir) == numbered([*MESSAGES, b"last"])


def test_ctrl_c_stops_cleanly_too(serve: Serve, data_dir: Path) -> None:
    assert serve("--data-dir", data_dir).wait_ready().send(signal.SIGINT) == 0


def test_after_kill_9_the_next_start_succeeds_at_once(serve: Serve, data_dir: Path) -> None:
    assert serve("--data-dir", data_dir).wait_ready().send(signal.SIGKILL) == -signal.SIGKILL
    second = serve("--data-dir", data_dir).wait_ready()
    assert second.event("ready")["topics"] == 1
    assert second.send(signal.SIGTERM) == 0
    assert read_back(data_dir) == numbered(MESSAGES)


def test_a_lock_file_that_names_a_living_process_is_no_lock(serve: Serve, data_dir: Path) -> None:
    """In a container every node has pid 1: the number left by the dead one is that of the living one."""
    (data_dir / "lock").write_text(f"{os.getpid()}\n")
    assert serve("--data-dir", data_dir).wait_ready().send(signal.SIGTERM) == 0


def test_a_second_process_is_refused_and_leaves_the_first_unharmed(
    serve: Serve, data_dir: Path, tmp_path: Path
) -> None:
    first = serve("--data-dir", data_dir, "--ready-file", "ready.json").wait_ready()
    second = serve("--data-dir", data_dir, "--ready-file", "ready.json", "--log-level", "error")
    assert second.wait_exit() == 1
    assert second.errors == (
        f"goqueue: cannot open data directory {data_dir}: {data_dir}/lock is held by pid {first.process.pid}\n"
    )
    assert json.loads((tmp_path / "ready.json").read_text())["pid"] == first.process.pid
    assert first.send(signal.SIGTERM) == 0
    assert read_back(data_dir) == numbered(MESSAGES)


def test_a_data_directory_that_cannot_be_used_is_named_without_a_stack(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server = serve("--data-dir", "file", "--log-level", "error")
    assert server.wait_exit() == 1
    assert server.errors.startswith("goqueue: cannot open data directory file: ")
    assert len(server.errors.splitlines()) == 1


def test_a_first_start_on_a_full_disk_is_refused_and_says_why(serve: Serve, tmp_path: Path) -> None:
    server = serve("--data-dir", "new", "--disk-reserve-bytes", str(1 << 60), "--log-level", "error")
    assert server.wait_exit() == 1
    event, line = server.errors.splitlines()
    assert '"event": "disk full, appends are refused"' in event
    assert line.startswith("goqueue: cannot open data directory new: this node is new and cannot store the id")
    assert line.endswith("no room to append: less free space is left than is held in reserve")


@pytest.mark.parametrize("door", ["kafka", "http", "grpc"])
def test_a_door_whose_address_is_taken_is_named_with_the_way_out(serve: Serve, tmp_path: Path, door: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        server = serve("--data-dir", "data", f"--{door}", address, "--log-level", "error")
        assert server.wait_exit() == 1
    assert server.errors == (
        f"goqueue: cannot open the {door} door at {address}: Address already in use; "
        f"choose another address with --{door} HOST:PORT\n"
    )


@pytest.mark.parametrize("door", ["kafka", "http", "grpc"])
def test_a_door_at_nobodys_address_is_named_too(serve: Serve, tmp_path: Path, door: str) -> None:
    server = serve("--insecure", "--data-dir", "data", f"--{door}", "192.0.2.1:9", "--log-level", "error")
    assert server.wait_exit() == 1
    assert server.errors.startswith(f"goqueue: cannot open the {door} door at 192.0.2.1:9: Cannot assign requested")


def test_a_ready_file_that_cannot_be_written_stops_the_start_cleanly(serve: Serve, data_dir: Path) -> None:
    wrong = ("--data-dir", data_dir, "--ready-file", "no/such/place", "--log-level", "error")
    server = serve("--dev", *wrong)
    assert server.wait_exit() == 1
    assert server.errors == "goqueue: cannot write ready file no/such/place: No such file or directory\n"
    server = serve(*wrong)
    assert server.wait_exit() == 1
    assert server.errors == "goqueue: cannot write the first key to no/such/bootstrap.key: No such file or directory\n"
    assert read_back(data_dir) == numbered(MESSAGES)


def test_bad_settings_are_all_listed_and_nothing_is_touched(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text('segment_bytes = "64MB"\nretenion_ms = 1\n')
    server = serve(
        "--data-dir", "data", "--config", "node.toml", "--segment-ms", "soon", GOQUEUE_LOG_LEVEL="loud", GOQUEUE_X="1"
    )
    assert server.wait_exit() == 2
    assert server.errors.splitlines() == [
        "goqueue: these settings cannot be used:",
        "  node.toml: retenion_ms: unknown setting, did you mean retention_ms?",
        '  node.toml: segment_bytes = "64MB": expected bytes such as 64MiB (at least 1MiB, at most 1GiB)',
        "  GOQUEUE_X: unknown setting",
        '  GOQUEUE_LOG_LEVEL = "loud": expected one of debug, info, warning, error',
        '  --segment-ms = "soon": expected a duration such as 1500ms, 30s or 7d (at least 1s)',
    ]
    assert not (tmp_path / "data").exists()


def test_a_person_at_a_terminal_is_told_what_runs_and_how_to_stop_it(serve: Serve, data_dir: Path) -> None:
    server = serve("--data-dir", data_dir, "--log-format", "console").wait_ready()
    wait_until(lambda: "kill" in server.errors, "welcome")
    assert server.send(signal.SIGTERM) == 0
    for part in (f"{data_dir}: 1 topics, ", "kafka 127.0.0.1:", f"kill {server.process.pid}"):
        assert part in server.errors


def test_the_node_may_open_as_many_files_as_the_system_lets_it(serve: Serve, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        server = serve("--data-dir", "data")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    server.wait_ready()
    limits = Path(f"/proc/{server.process.pid}/limits").read_text()
    assert next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3] == str(hard)


def test_a_second_signal_stops_at_once() -> None:
    """While a slow stop goes on: here one that never ends."""
    code = (
        "import asyncio, sys\n"
        "from goqueue.node.process import stop_on_signals\n"
        "async def main():\n"
        "    stop = asyncio.Event()\n"
        "    stop_on_signals(stop)\n"
        "    print('ready', flush=True)\n"
        "    await stop.wait()\n"
        "    print('stopping', flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for word in ("ready", "stopping"):
            assert next(line for line in process.stdout if line.strip() in {"ready", "stopping"}).strip() == word
            process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(timeout=DEADLINE_S) == 128 + signal.SIGTERM
        finally:
            process.kill()


@pytest.mark.parametrize("processes", ["1", "2"])
def test_systemd_is_told_that_it_is_ready_alive_and_stopping(serve: Serve, tmp_path: Path, processes: str) -> None:
    """A datagram socket as systemd has one. What a node starts is told of it no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(DEADLINE_S)
        variables = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
        server = serve("--dev", "--data-dir", tmp_path / "data", "--processes", processes, **variables)
        told = []
        while "READY=1" not in told:
            told.append(systemd.recv(100).decode())
        assert systemd.recv(100) == b"WATCHDOG=1"
        server.process.send_signal(signal.SIGTERM)
        while "STOPPING=1" not in told:
            told.append(systemd.recv(100).decode())
        assert server.wait_exit() == 0
        assert set(told) == {"READY=1", "WATCHDOG=1", "STOPPING=1"}
        assert [told.count(word) for word in ("READY=1", "STOPPING=1")] == [1, 1]

"""Nodes and members of etcd as real processes that may be killed, stopped and started again where they were."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.nemesis import stepped_clock
from tools.nemesis.disks import Disk
from tools.nemesis.waiting import wait_until

GOQUEUE = Path(sys.executable).with_name("goqueue")
START_S_MAX = 180.0
"""A bound for the tool, not a promise: on a machine with a load of 36 Python alone took a minute to begin."""
RESERVE_BYTES = 16 << 20
"""A node refuses appends while its disk has less room."""
STOP_S_MAX = 30.0


NODE_PORTS = (9092, 8080, 9000, 9192)
"""Kafka, HTTP, gRPC, and other nodes."""
ETCD_PORTS = (2379, 2380)


class NotStarted(Exception):
    """With the end of what the process said."""


class Process:
    """One command with a log file; `prefix` puts it into a network namespace."""

    def __init__(self, name: str, folder: Path, command: Sequence[str], prefix: Sequence[str] = ()) -> None:
        self.name = name
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._command = [*prefix, *command]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def log_tail(self) -> str:
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-30:]) if self.log.exists() else ""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def launch(self) -> None:
        environment: Mapping[str, str] = {
            name: value for name, value in os.environ.items() if not name.startswith(("GOQUEUE_", "ETCD_"))
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=environment)

    def begin(self) -> None:
        """Without waiting: nodes of a new cluster may wait for each other. One that runs goes on."""
        if not self.is_running:
            self.launch()

    def wait_ready(self) -> None:
        """Others find out by themselves whether it serves."""

    def start(self) -> None:
        """And wait until it serves."""
        self.begin()
        self.wait_ready()

    def send_signal(self, number: int) -> None:
        if self.is_running:
            assert self._process is not None
            self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9: no handler runs."""
        self.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """Asked to, as a rolling restart does; killed if it does not follow."""
        self.send_signal(signal.SIGTERM)
        if not self._wait(STOP_S_MAX):
            self.kill()

    def pause(self) -> None:
        self.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.send_signal(signal.SIGCONT)

    def _wait(self, seconds: float = STOP_S_MAX) -> bool:
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


class Node(Process):
    """`goqueue serve` at `host`, each time the same. It listens `behind` it, where a forwarder finds it."""

    def __init__(
        self,
        node_id: int,
        folder: Path,
        host: str,
        behind: str,
        *,
        etcd: Sequence[str] = (),
        prefix: Sequence[str] = (),
        disk: Disk | None = None,
        has_clock: bool = False,
    ) -> None:
        self.node_id, self.host, self.disk = node_id, host, disk
        self.kafka, self.http, self.grpc = (f"{host}:{port}" for port in NODE_PORTS[:3])
        self.ready_file = folder / "ready.json"
        self._ahead = folder / "ahead"
        command = [str(GOQUEUE)]
        if has_clock:
            command = [sys.executable, "-P", stepped_clock.__file__, str(self._ahead)]
        command += ["serve", "--insecure", "--data-dir", str((disk.place if disk else folder) / "data")]
        command += ["--node-id", str(node_id), "--ready-file", str(self.ready_file)]
        if disk:
            command += ["--disk-reserve-bytes", str(RESERVE_BYTES)]
        doors = ("kafka", "http", "grpc", "peer") if etcd else ("kafka", "http", "grpc")
        for door, port in zip(doors, NODE_PORTS, strict=False):
            command += [f"--{door}", f"{behind}:{port}"]
            if behind != host:
                command += [f"--{door}-advertised", f"{host}:{port}"]
        if etcd:
            command += ["--etcd", ",".join(etcd)]
        super().__init__(f"node-{node_id}", folder, command, prefix)
        self.set_clock(0)

    def set_clock(self, ahead_ms: int) -> None:
        stepped_clock.set_ahead(self._ahead, ahead_ms)

    @property
    def url(self) -> str:
        return f"http://{self.http}"

    def wait_ready(self) -> None:
        if not wait_until(lambda: self.is_ready or not self.is_running, START_S_MAX) or not self.is_running:
            raise NotStarted(f"{self.name} did not start:\n{self.log_tail}")

    def begin(self) -> None:
        if not self.is_running:
            self.ready_file.unlink(missing_ok=True)
            self.launch()

    @property
    def is_ready(self) -> bool:
        try:
            return bool(json.loads(self.ready_file.read_text("utf-8")))
        except (OSError, ValueError):
            return False


class EtcdMember(Process):
    def __init__(
        self,
        number: int,
        folder: Path,
        binary: Path,
        hosts: Sequence[str],
        behind: str,
        *,
        prefix: Sequence[str] = (),
    ) -> None:
        client, peer = ETCD_PORTS
        self.client = f"{hosts[number]}:{client}"
        peers = ",".join(f"e{other}=http://{each}:{peer}" for other, each in enumerate(hosts))
        command = [str(binary), "--name", f"e{number}", "--data-dir", str(folder / "data")]
        command += ["--listen-client-urls", f"http://{behind}:{client}"]
        command += ["--advertise-client-urls", f"http://{self.client}"]
        command += ["--listen-peer-urls", f"http://{behind}:{peer}"]
        command += ["--initial-advertise-peer-urls", f"http://{hosts[number]}:{peer}"]
        command += ["--initial-cluster", peers, "--initial-cluster-state", "new", "--log-level", "warn"]
        command += ["--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1h"]
        super().__init__(f"etcd-{number}", folder, command, prefix)

"""`goqueue cluster dev` as a process: whole nodes and a real etcd, which a test may kill."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx

from tests.integration.process import GOQUEUE, own_host, wait_until
from tools.etcd.server import ETCD

SHOWN_LINES = 40


class DevCluster:
    def __init__(self, directory: Path, nodes: int = 3, *arguments: str) -> None:
        self.directory = directory
        self.host = own_host()
        self._ready_file = directory / "ready.json"
        self._output = directory / "output"
        self._command = [
            *(str(GOQUEUE), "cluster", "dev", "--nodes", str(nodes), "--data-dir", str(directory / "data")),
            *("--host", self.host, "--ready-file", str(self._ready_file), "--etcd-binary", str(ETCD.build())),
            *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "DevCluster":
        with self._output.open("ab") as output:
            self._process = process = subprocess.Popen(self._command, stdout=output, stderr=output)
        wait_until(lambda: self._ready_file.exists() or process.poll() is not None, "start of a cluster")
        assert process.poll() is None, self.said()
        return self

    def start_balanced(self) -> "DevCluster":
        """`start`, and wait until the preferred replicas lead: else leaders move half a minute after a node that came
        later than the others, and streams through them end. For clusters that are open."""
        self.start()
        url = f"http://{self.nodes[0]['http']}/cluster/partitions"

        def is_balanced() -> bool:
            return all(each["leader"] == each["replicas"][0] for each in httpx.get(url).json()["partitions"])

        wait_until(is_balanced, "leaders at their preferred replicas")
        return self

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self._ready_file.read_text("utf-8"))
        return facts

    @property
    def nodes(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = self.facts()["nodes"]
        return nodes

    @property
    def kafka(self) -> list[str]:
        return [node["kafka"] for node in self.nodes]

    @property
    def is_ready(self) -> bool:
        return self._ready_file.exists()

    @property
    def pids(self) -> list[int]:
        facts = self.facts()
        return [*(node["pid"] for node in facts["nodes"]), *facts["etcd_pids"]]

    def pid_of(self, node_id: int) -> int:
        (pid,) = [node["pid"] for node in self.nodes if node["id"] == node_id]
        assert isinstance(pid, int)
        return pid

    def kill(self, node_id: int) -> None:
        pid = self.pid_of(node_id)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), f"end of node {node_id}")

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(120)

    def words(self) -> str:
        """Of the command itself, but for what it says it does."""
        lines = self._output.read_text("utf-8").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(("starting ", "stopping ")))

    def said(self) -> str:
        logs = sorted((self.directory / "data").glob("*.log"))
        shown = [self._output, *logs]
        return "\n".join(
            f"== {path.name}\n" + "\n".join(path.read_text("utf-8", "replace").splitlines()[-SHOWN_LINES:])
            for path in shown
            if path.exists()
        )

    def clean_up(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(") ")[2][0]
    except OSError:
        return False
    return state != "Z"

"""Who listens where in a cluster on one machine, and with which command each process is started."""

import sys
from pathlib import Path
from typing import NamedTuple

KAFKA, HTTP, GRPC, PEER, ETCD, ETCD_PEER = 9092, 8080, 9000, 9192, 2379, 2380
CLUSTER_NAME = "dev"

TETHERED = (
    "import ctypes, os, sys\n"
    "if sys.platform == 'linux':\n"
    "    ctypes.CDLL(None).prctl(1, 15)\n"  # PR_SET_PDEATHSIG, SIGTERM
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)
"""Becomes another program, which ends with whoever started it, even if that is killed."""
SERVE = "import sys; from goqueue.cli.main import main; sys.exit(main())"


class NodePlan(NamedTuple):
    node_id: int
    directory: Path
    kafka: str
    http: str
    grpc: str
    peer: str

    @property
    def name(self) -> str:
        return f"node {self.node_id}"

    @property
    def log_file(self) -> Path:
        return self.directory.with_suffix(".log")

    @property
    def ready_file(self) -> Path:
        return self.directory.with_suffix(".ready")


class Plan(NamedTuple):
    data_dir: Path
    nodes: tuple[NodePlan, ...]
    etcd: str
    etcd_peer: str

    @property
    def etcd_log_file(self) -> Path:
        return self.data_dir / "etcd.log"


def make_plan(data_dir: Path, nodes: int, host: str) -> Plan:
    """The first node is where a single one would be, the others beside it."""
    plans = tuple(
        NodePlan(
            number,
            data_dir / f"node-{number}",
            *(f"{host}:{port + number - 1}" for port in (KAFKA, HTTP, GRPC, PEER)),
        )
        for number in range(1, nodes + 1)
    )
    return Plan(data_dir, plans, f"http://{host}:{ETCD}", f"http://{host}:{ETCD_PEER}")


def node_command(plan: Plan, node: NodePlan) -> list[str]:
    serve = [sys.executable, "-c", SERVE, "serve", "--dev", "--log-format", "console"]
    addresses = {"--kafka": node.kafka, "--http": node.http, "--grpc": node.grpc, "--peer": node.peer}
    return _tethered(
        *serve,
        *("--node-id", str(node.node_id), "--etcd", plan.etcd, "--cluster-name", CLUSTER_NAME),
        *(word for pair in addresses.items() for word in pair),
        *("--data-dir", str(node.directory), "--ready-file", str(node.ready_file)),
    )


def etcd_command(plan: Plan, program: Path) -> list[str]:
    return _tethered(
        str(program),
        *("--name", "dev", "--data-dir", str(plan.data_dir / "etcd"), "--log-level", "warn"),
        *("--listen-client-urls", plan.etcd, "--advertise-client-urls", plan.etcd),
        *("--listen-peer-urls", plan.etcd_peer, "--initial-advertise-peer-urls", plan.etcd_peer),
        *("--initial-cluster", f"dev={plan.etcd_peer}"),
        *("--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1h"),
    )


def _tethered(*command: str) -> list[str]:
    return [sys.executable, "-c", TETHERED, *command]

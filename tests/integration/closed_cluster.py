"""A closed cluster as an operator starts it: etcd, and three `goqueue serve` with TLS for clients and between nodes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from goqueue.client import Security
from tests.certificates import Authority
from tests.integration.etcd_members import Etcds
from tests.integration.process import Node, own_host

NODES = (1, 2, 3)


class ClosedCluster:
    def __init__(self, directory: Path) -> None:
        self._authority = Authority(directory)
        self.ca = self._authority.ca
        self.etcd = Etcds(directory)
        master = directory / "master.key"
        master.write_text("5e" * 32)
        master.chmod(0o600)
        self._master = master
        self.hosts = {number: own_host() for number in NODES}
        self.nodes = {number: self._node(directory / f"node-{number}", number) for number in NODES}

    def _node(self, directory: Path, number: int) -> Node:
        directory.mkdir()
        host = self.hosts[number]
        pair = self._authority.sign(f"node-{number}", dns=[f"goqueue-node-{number}"], addresses=[host])
        cert, key = str(pair.cert), str(pair.key)
        listeners = (
            f"kafka://{host}:9092?protocol=SASL_SSL",
            f"http://{host}:8080?protocol=SSL",
            f"grpc://{host}:9000?protocol=SSL",
        )
        return Node(
            directory,
            *("--node-id", str(number), "--etcd", self.etcd.endpoints[0], "--peer", f"{host}:9192"),
            *("--peer-ca-file", str(self.ca), "--peer-cert-file", cert, "--peer-key-file", key),
            *("--tls-cert-file", cert, "--tls-key-file", key, "--listeners", ",".join(listeners)),
            *("--master-key-file", str(self._master)),
            is_closed=True,
            host=host,
        )

    def start(self) -> "ClosedCluster":
        """All at once, as after a power cut."""
        self.etcd.start()
        with ThreadPoolExecutor(len(NODES)) as threads:
            list(threads.map(Node.start, self.nodes.values()))
        return self

    def url(self, number: int) -> str:
        return f"https://{self.hosts[number]}:8080"

    @property
    def kafka(self) -> str:
        return ",".join(f"{host}:9092" for host in self.hosts.values())

    def security(self, **shown: Any) -> Security:
        return Security(tls=True, ca_file=self.ca, **shown)

    def clean_up(self) -> None:
        for node in self.nodes.values():
            node.clean_up()
        self.etcd.clean_up()

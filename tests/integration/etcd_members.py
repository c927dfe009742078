"""Real etcd, of one or three members, as processes that a test may kill, stop and start again."""

import signal
import subprocess
from pathlib import Path

import grpc

from goqueue.cluster.etcd.endpoints import Endpoints, EtcdOptions
from goqueue.cluster.etcd.messages import STATUS
from goqueue.cluster.etcd.port import EtcdFault
from tests.integration.process import own_host, wait_until
from tools.etcd.server import ETCD


class EtcdMember:
    def __init__(self, directory: Path, number: int, *arguments: str, scheme: str = "http") -> None:
        self.name = f"m{number}"
        self.host = own_host()
        self.url = f"{scheme}://{self.host}:2379"
        self.peer_url = f"http://{self.host}:2380"
        self._directory = directory / self.name
        self.arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, initial_cluster: str) -> None:
        command = [
            str(ETCD.build()),
            *("--name", self.name, "--data-dir", str(self._directory), "--log-level", "warn"),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url),
            *("--initial-cluster", initial_cluster, "--unsafe-no-fsync"),
            *self.arguments,
        ]
        with self._directory.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait()

    def clean_up(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Etcds:
    def __init__(self, directory: Path, members: int = 1, *arguments: str, scheme: str = "http") -> None:
        self.members = [EtcdMember(directory, number, *arguments, scheme=scheme) for number in range(1, members + 1)]

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(member.url for member in self.members)

    @property
    def initial_cluster(self) -> str:
        return ",".join(f"{member.name}={member.peer_url}" for member in self.members)

    def start(self, options: EtcdOptions | None = None) -> "Etcds":
        for member in self.members:
            member.start(self.initial_cluster)
        for member in self.members:
            wait_until(lambda member=member: is_well(member.url, options), f"start of {member.name}")  # type: ignore[misc]
        return self

    def clean_up(self) -> None:
        for member in self.members:
            member.clean_up()


def is_well(url: str, options: EtcdOptions | None = None) -> bool:
    endpoints = Endpoints(options if options is not None else EtcdOptions((url,)))
    try:
        return bool(endpoints.ask(STATUS, STATUS.request(), endpoint=url).leader)
    except (EtcdFault, grpc.RpcError):
        return False
    finally:
        endpoints.close()

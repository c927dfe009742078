"""All processes of one run: one node by itself, or three nodes with three members of etcd, in namespaces of their own
where that is allowed, and on loopback addresses where it is not.
"""

from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from tools.nemesis.disks import Disk, NoDisks
from tools.nemesis.forwarder import Forwarder
from tools.nemesis.network import Namespaces, Network, NoNamespaces
from tools.nemesis.processes import EtcdMember, Node, Process

_dice = SystemRandom()
ETCD_MEMBERS = 3
LOOPBACK, NAMESPACES, FORWARDER = "loopback", "namespaces", "forwarder"
"""Of the three networks the first has no cuts, and the last needs no rights."""


class Town:
    def __init__(
        self,
        folder: Path,
        nodes: int,
        *,
        network: str = LOOPBACK,
        with_disks: bool = False,
        with_clocks: bool = False,
        prefix: Sequence[str] = (),
    ) -> None:
        self.why_no_disks = "" if with_disks else "only root may mount them"
        self.etcd: list[EtcdMember] = []
        self.nodes: list[Node] = []
        members = ETCD_MEMBERS if nodes > 1 else 0
        self.network = self._make_network(network if members else LOOPBACK, nodes + members)
        subnet = _dice.randrange(1, 255)
        hosts, behind, prefixes = [], [], []
        for number in range(1, nodes + members + 1):
            hosts.append(self.network.address(number) if self.network else f"127.{subnet}.7.{number}")
            behind.append(self.network.behind(number) if self.network else hosts[-1])
            prefixes.append([*prefix, *(self.network.prefix(number) if self.network else ())])
        if members:
            self._make_etcd(folder, hosts[nodes:], behind[nodes:], prefixes[nodes:])
        clients = [member.client for member in self.etcd]
        for at in range(nodes):
            place = folder / f"node-{at + 1}"
            disk = self._make_disk(place) if with_disks else None
            node = Node(
                at + 1,
                place,
                hosts[at],
                behind[at],
                etcd=clients,
                prefix=prefixes[at],
                disk=disk,
                has_clock=with_clocks,
            )
            self.nodes.append(node)

    def _make_network(self, kind: str, hosts: int) -> Network | None:
        if kind == NAMESPACES:
            try:
                return Namespaces(hosts)
            except NoNamespaces as error:
                print(f"no namespaces here, so cuts are made by a forwarder: {error}")
                kind = FORWARDER
        return Forwarder(hosts, self._hosts_by_pid) if kind == FORWARDER else None

    def _make_etcd(
        self, folder: Path, hosts: Sequence[str], behind: Sequence[str], prefixes: Sequence[list[str]]
    ) -> None:
        from tools.etcd.server import ETCD

        binary = ETCD.build(say=print)
        for number in range(len(hosts)):
            place = folder / f"etcd-{number}"
            self.etcd.append(EtcdMember(number, place, binary, hosts, behind[number], prefix=prefixes[number]))

    def _make_disk(self, folder: Path) -> Disk | None:
        try:
            return Disk(folder)
        except NoDisks as error:
            self.why_no_disks = str(error)
            return None

    def _hosts_by_pid(self) -> dict[int, int]:
        return {each.pid: self.number_of(each) for each in self.processes_in_order if each.is_running}

    @property
    def processes(self) -> list[Process]:
        return [*self.etcd, *self.nodes]

    def start(self) -> None:
        for member in self.etcd:
            member.start()
        for node in self.nodes:
            node.begin()
        for node in self.nodes:
            node.wait_ready()

    def heal(self) -> None:
        """Everything runs and hears everything."""
        if self.network:
            self.network.heal()
        for process in self.processes:
            process.resume()
        self.start()

    def end(self) -> None:
        for process in self.processes:
            process.resume()
            process.kill()
        if self.network:
            self.network.remove()

    # -- who is where, for cuts

    def number_of(self, process: Process) -> int:
        return self.processes_in_order.index(process) + 1

    @property
    def processes_in_order(self) -> list[Process]:
        return [*self.nodes, *self.etcd]

    def addresses(self, processes: Sequence[Process]) -> list[str]:
        assert self.network is not None
        return [self.network.address(self.number_of(process)) for process in processes]

"""Cuts and delays for those who may make no namespaces: every host is reached through a forwarder that knows who sends.

A host listens at one loopback address and is known by another, where the forwarder listens. Who has connected is found
by the socket: the process that holds its other end is a node, a member of etcd, or else a client. A cut stops the bytes
of one direction, in connections of either side; they flow on when it is healed, as TCP's would.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from random import SystemRandom

from tools.nemesis.carrier import CLIENTS, address, behind

_dice = SystemRandom()
END_S_MAX = 10.0


class Forwarder:
    def __init__(self, hosts: int, hosts_by_pid: Callable[[], Mapping[int, int]]) -> None:
        """`hosts_by_pid`: the processes that run now. All others are clients. It is asked with every change: none is
        started while something is cut."""
        self._net = _dice.randrange(1, 255)
        self._hosts_by_pid = hosts_by_pid
        self._cuts: set[tuple[int, int]] = set()
        self._slow: set[int] = set()
        command = [sys.executable, "-m", "tools.nemesis.carrier", str(self._net), str(hosts)]
        self._carrier = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._hear()

    def address(self, host: int) -> str:
        return address(self._net, host)

    def behind(self, host: int) -> str:
        return behind(self._net, host)

    @property
    def clients(self) -> str:
        return self.address(CLIENTS)

    def prefix(self, host: int) -> list[str]:
        return []

    def cut(self, sender: int, addresses: Iterable[str]) -> None:
        self._cuts |= {(sender, int(each.rpartition(".")[2])) for each in addresses}
        self._tell()

    @property
    def can_slow(self) -> bool:
        return True

    def slow(self, host: int) -> None:
        self._slow.add(host)
        self._tell()

    def heal(self) -> None:
        self._cuts.clear()
        self._slow.clear()
        self._tell()

    def remove(self) -> None:
        stdin, stdout = self._carrier.stdin, self._carrier.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.close()
        try:
            self._carrier.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self._carrier.kill()
            self._carrier.wait()
        stdout.close()

    def _tell(self) -> None:
        assert self._carrier.stdin is not None
        state = {"cuts": sorted(self._cuts), "slow": sorted(self._slow), "pids": dict(self._hosts_by_pid())}
        self._carrier.stdin.write(json.dumps(state).encode() + b"\n")
        self._carrier.stdin.flush()
        self._hear()

    def _hear(self) -> None:
        assert self._carrier.stdout is not None
        if not self._carrier.stdout.readline():
            raise RuntimeError("the forwarder has ended")

"""A network of our own: one namespace for each process, on a bridge. Cuts are routes that lead nowhere, set in the
namespace that shall not send any more: so a cut may go one way, and needs no packet filter, which a kernel may lack.
A slow link is a token bucket.

Needs root, and a namespace of its own for whoever makes it: nothing else can be reached from there.
"""

import subprocess
from collections.abc import Iterable
from contextlib import suppress
from random import SystemRandom
from typing import Protocol

_dice = SystemRandom()


SLOW = ("rate", "128kbit", "burst", "16kbit", "latency", "500ms")


class Network(Protocol):
    """Hosts by number, from 1 on."""

    def address(self, host: int) -> str:
        """Where others reach it."""

    def behind(self, host: int) -> str:
        """Where it listens."""

    def prefix(self, host: int) -> list[str]:
        """Before a command that shall run there."""

    @property
    def clients(self) -> str:
        """The address of everybody who is no host."""

    def cut(self, sender: int, addresses: Iterable[str]) -> None:
        """What `sender` sends to these vanishes, or waits; it still hears them."""

    @property
    def can_slow(self) -> bool: ...

    def slow(self, host: int) -> None:
        """What it sends comes late."""

    def heal(self) -> None: ...

    def remove(self) -> None: ...


class NoNamespaces(Exception):
    """Not allowed here."""


def _ip(*words: str) -> None:
    _do("ip", *words)


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespaces(f"{' '.join(command)}: {done.stderr.strip()}")


class Namespaces:
    """Clients are on the bridge itself, with an address of their own."""

    def __init__(self, hosts: int) -> None:
        self._mark = f"{_dice.randrange(16**4):04x}"
        self._bridge = f"gqn{self._mark}"
        self._subnet = f"10.{_dice.randrange(64, 128)}.{_dice.randrange(256)}"
        self._hosts = range(1, hosts + 1)
        self._cuts: set[tuple[int, str]] = set()
        self._slow: set[int] = set()
        try:
            self._make()
        except NoNamespaces:
            self.remove()
            raise

    def _make(self) -> None:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self._subnet}.254/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for host in self._hosts:
            space, here, there = self._space(host), f"gq{self._mark}h{host}", f"gq{self._mark}n{host}"
            _ip("netns", "add", space)
            _ip("link", "add", here, "type", "veth", "peer", "name", there)
            _ip("link", "set", there, "netns", space)
            _ip("link", "set", here, "master", self._bridge, "up")
            _ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", there)
            _ip("-n", space, "link", "set", there, "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def _space(self, host: int) -> str:
        return f"gq{self._mark}-{host}"

    def address(self, host: int) -> str:
        return f"{self._subnet}.{host}"

    def behind(self, host: int) -> str:
        return self.address(host)

    @property
    def clients(self) -> str:
        return f"{self._subnet}.254"

    def prefix(self, host: int) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self._space(host)}"]

    def cut(self, sender: int, addresses: Iterable[str]) -> None:
        for address in addresses:
            if (sender, address) not in self._cuts:
                _ip("-n", self._space(sender), "route", "add", "blackhole", f"{address}/32")
                self._cuts.add((sender, address))

    @property
    def can_slow(self) -> bool:
        """Some kernels lack token buckets. It is tried."""
        try:
            self.slow(self._hosts[0])
        except (NoNamespaces, FileNotFoundError):
            return False
        self.heal()
        return True

    def slow(self, host: int) -> None:
        words = ("qdisc", "add", "dev", f"gq{self._mark}n{host}", "root", "tbf", *SLOW)
        _do("tc", "-n", self._space(host), *words)
        self._slow.add(host)

    def heal(self) -> None:
        for host in sorted(self._slow):
            with suppress(NoNamespaces):
                _do("tc", "-n", self._space(host), "qdisc", "del", "dev", f"gq{self._mark}n{host}", "root")
        self._slow.clear()
        for sender, address in sorted(self._cuts):
            with suppress(NoNamespaces):
                _ip("-n", self._space(sender), "route", "del", "blackhole", f"{address}/32")
        self._cuts.clear()

    def remove(self) -> None:
        for host in self._hosts:
            with suppress(NoNamespaces):
                _ip("netns", "del", self._space(host))
            with suppress(NoNamespaces):
                _ip("link", "del", f"gq{self._mark}h{host}")
        with suppress(NoNamespaces):
            _ip("link", "del", self._bridge)

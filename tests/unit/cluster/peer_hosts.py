"""Two or more nodes that are nothing but a peer door and a way to the others, in a simulation."""

import asyncio

from goqueue.cluster.peers import Peers
from goqueue.doors.kafka.peer_door import PeerDoor
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import Api
from goqueue.model.placements import NodeInfo
from goqueue.ports.listening import plain
from goqueue.runtime.clock import LoopClock
from goqueue.testing.simulation import Process, Simulation

PEER_PORT = 9192


class VirtualTime(LoopClock):
    def monotonic_s(self) -> float:
        return self._loop.time()


class Host:
    """A node on a host called after its id."""

    def __init__(
        self, sim: Simulation, node_id: int, book: dict[int, NodeInfo], secret: bytes = b"secret", start: int = 1
    ) -> None:
        self.node_id = node_id
        self._secret = secret
        self.process = Process(sim, f"n{node_id}", start)
        self._sim = sim
        self.book = book
        self.refused: list[NodeInfo] = []

    async def start(self) -> "Host":
        await self.process.spawn(self._start())
        return self

    async def _start(self) -> None:
        network, dice, clock = self._sim.network.at(self.process.name), self.process.dice, VirtualTime()
        self.peers = Peers(self.node_id, lambda: self._secret, self.book.get, network, clock, dice)
        self.peers.on_refused = self.refused.append
        self.door = PeerDoor(self.node_id, lambda: self._secret, clock, dice, plain(Api.KAFKA, network))
        await self.door.open(self.process.name, PEER_PORT)
        self.book[self.node_id] = NodeInfo(self.node_id, 1, peer=(self.process.name, PEER_PORT))

    async def ask(self, node_id: int, api_key: int, body: bytes, timeout_ms: int = 1000) -> bytes | GoQueueError:
        return await self.process.spawn(self._ask(node_id, api_key, body, timeout_ms))

    async def _ask(self, node_id: int, api_key: int, body: bytes, timeout_ms: int) -> bytes | GoQueueError:
        future: asyncio.Future[bytes | GoQueueError] = asyncio.get_running_loop().create_future()
        self.peers.ask(node_id, api_key, body, future.set_result, timeout_ms)
        return await future

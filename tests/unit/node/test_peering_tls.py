"""Nodes over mutual TLS: each is who its certificate says, and nobody else gets in."""

import asyncio
from pathlib import Path

import pytest
import uvloop

from goqueue.cluster.peers import Peers
from goqueue.doors.kafka.peer_door import PeerDoor
from goqueue.model.errors import GoQueueError, NotReached
from goqueue.model.listener import ClientAuth
from goqueue.model.node_names import NODE_RULES
from goqueue.model.placements import NodeInfo
from goqueue.node.peering import PEER, PeerDialing
from goqueue.ports.dice import system_dice
from goqueue.ports.listening import Listening
from goqueue.ports.network import LoopNetwork
from goqueue.ports.peers import PeerRequest
from goqueue.ports.tls import ServerTls, TlsFiles
from goqueue.ports.tls_network import Handshakes, TlsListening
from goqueue.runtime.clock import LoopClock
from tests.certificates import Authority

ECHO = 20077
HOST = "127.0.0.1"
FAR_S = 60.0
SECRET = b"secret of the cluster"


class Nodes:
    """Node 1 listens, and others ask it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority(directory, "nodes")

    def tls(self, name: str, authority: Authority | None = None) -> ServerTls:
        pair = (authority or self.authority).sign(name, dns=[name])
        return ServerTls(TlsFiles(pair.cert, pair.key, None, self.authority.ca), ClientAuth.REQUIRE)

    async def ask(self, shown: ServerTls | None, claimed: int, wanted: int = 1) -> bytes | GoQueueError:
        """As node `claimed`, with the certificate that is shown."""
        clock, dice, tls = LoopClock(), system_dice(), self.tls("goqueue-node-1")
        listening = Listening(PEER, TlsListening(tls.front, Handshakes()), tls, NODE_RULES, "Node")
        door = PeerDoor(1, lambda: SECRET, clock, dice, listening)
        door.handlers[ECHO] = _echo
        _, port = await door.open(HOST, 0)
        life = NodeInfo(wanted, 1, peer=(HOST, port))
        peers = Peers(claimed, lambda: SECRET, lambda node_id: life, LoopNetwork(), clock, dice)
        if shown is not None:
            peers.network_to = PeerDialing(shown).to
        try:
            async with asyncio.timeout(FAR_S):
                return await _answer(peers, wanted)
        finally:
            await peers.close()
            await door.close()
            clock.stop()


async def _answer(peers: Peers, wanted: int) -> bytes | GoQueueError:
    """A dial has two seconds, which a busy machine may not: then it is dialed again."""
    while True:
        answer: asyncio.Future[bytes | GoQueueError] = asyncio.get_running_loop().create_future()
        peers.ask(wanted, ECHO, b"hello", answer.set_result, 10_000)
        found = await answer
        if not isinstance(found, NotReached) or not str(found).endswith(("in time", "a moment ago")):
            return found


def _echo(request: PeerRequest) -> None:
    request.answer([b"node %d: " % request.node_id, bytes(request.body)])


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


def test_a_node_is_known_by_its_certificate(nodes: Nodes) -> None:
    assert uvloop.run(nodes.ask(nodes.tls("goqueue-node-2"), 2)) == b"node 2: hello"


def test_a_node_cannot_claim_to_be_another(nodes: Nodes) -> None:
    answer = uvloop.run(nodes.ask(nodes.tls("goqueue-node-3"), 2))
    assert isinstance(answer, NotReached)
    assert "the certificate of Node:3 is not that of node 2" in str(answer)


def test_a_certificate_that_names_no_node_is_refused(nodes: Nodes) -> None:
    assert isinstance(uvloop.run(nodes.ask(nodes.tls("web-server"), 2)), NotReached)


def test_a_node_finds_another_where_it_looked_for_a_third(nodes: Nodes) -> None:
    answer = uvloop.run(nodes.ask(nodes.tls("goqueue-node-2"), 2, wanted=5))
    assert isinstance(answer, NotReached)
    assert "goqueue-node-5" in str(answer)


def test_a_stranger_and_one_without_tls_are_refused(nodes: Nodes) -> None:
    stranger = Authority(nodes.directory, "stranger")
    assert isinstance(uvloop.run(nodes.ask(nodes.tls("goqueue-node-2", stranger), 2)), NotReached)
    assert isinstance(uvloop.run(nodes.ask(None, 2)), NotReached)

"""Other nodes of the cluster as a port: who asks one of them has it passed in, and who answers is handed what was
asked. Neither knows of connections.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from goqueue.model.errors import GoQueueError

OnAnswer = Callable[[bytes | GoQueueError], None]


class Peers(Protocol):
    def ask(self, node_id: int, api_key: int, body: bytes, on_done: OnAnswer, timeout_ms: int) -> None:
        """Send a request to a node, and be told the body of its answer. NotReached: it was not done, and may be asked
        again. Indeterminate: it may have been done. `on_done` is called once, and never from within this call."""


class PeerRequest(Protocol):
    """What another node asks. It has proved that it is one."""

    @property
    def node_id(self) -> int:
        """Who asks."""

    @property
    def version(self) -> int: ...

    @property
    def body(self) -> memoryview:
        """Good only until the handler returns: who needs it longer copies it."""

    @property
    def not_before_ms(self) -> int:
        """On the monotonic clock of this node: it was sent later than that."""

    @property
    def connection(self) -> object:
        """The same for all that came through one."""

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call when nobody can take the answer any more, if it was not given."""

    def answer(self, body: Sequence[bytes | memoryview]) -> None:
        """Answers may be given in any order, each once."""

    def refuse(self, why: str) -> None:
        """It was not done: the one that asks gets NotReached."""


PeerHandler = Callable[[PeerRequest], None]

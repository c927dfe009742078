"""Other nodes as the APIs see them: who has what, and asking them by kind of question."""

from collections.abc import Callable
from typing import Protocol

from goqueue.model.errors import GoQueueError
from goqueue.ports.peers import OnAnswer


class NotHere(GoQueueError):
    """What was asked belongs to another node, and nothing was done."""

    retriable = True


Stop = Callable[[], None]
OnReply = Callable[[bytes | NotHere], None]
Serve = Callable[[bytes, int, OnReply], Stop | None]
"""Given the payload, how many milliseconds the one that asks will wait, and where to put the answer. Returns how to
stop it, if it may take long; after that no answer is needed."""


class Asked(Protocol):
    def cancel(self) -> None:
        """Its answer is of no use any more. It comes all the same."""


class Homes(Protocol):
    """Node ids; None: nobody leads it at the moment."""

    me: int

    def others(self) -> list[int]: ...

    def partition(self, topic: str, partition: int) -> int | None: ...

    def leads(self, topic: str, partition: int) -> bool: ...

    def group(self, group_id: str) -> int | None: ...

    def transaction(self, transactional_id: str) -> int | None: ...

    def schemas(self) -> int | None: ...


class Forwarding(Protocol):
    @property
    def homes(self) -> Homes: ...

    def ask(self, node_id: int, kind: str, payload: bytes, on_done: OnAnswer, timeout_ms: int) -> Asked: ...

    def ask_home(
        self, find: Callable[[], int | None], kind: str, payload: bytes, on_done: OnAnswer, timeout_ms: int
    ) -> Asked:
        """Of whoever `find` names, or will name soon. NotHere: that is this node by now."""

    def serve(self, kind: str, serve: Serve) -> None: ...

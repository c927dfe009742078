"""How many records a move of a whole topic has before it, in partitions that other nodes lead: each counts its own."""

from collections.abc import Callable
from typing import Any

from goqueue.broker.dead_letters.moves import Moves
from goqueue.broker.forwarding.calls import Call
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Stop

READY: Call[tuple[str, str], int] = Call("ready-of-topic", tuple[str, str], int)
ASK_MS_MAX = 2000


class SpreadMoves:
    """What `Moves.count_elsewhere` does in a cluster. An error, if one node does not answer: a move ends when it has
    moved as many records as there were.
    """

    def __init__(self, forwarding: Forwarding, moves: Moves) -> None:
        self._forwarding = forwarding
        self._moves = moves
        moves.ready_elsewhere = self.ask
        READY.serve(forwarding, self._serve)

    def ask(self, group_id: str, source: str, on_count: Callable[[int | GoQueueError], None]) -> None:
        others = self._forwarding.homes.others()
        replies: list[int | GoQueueError] = []

        def told(reply: int | GoQueueError) -> None:
            replies.append(reply)
            if len(replies) == len(others):
                wrong = next((each for each in replies if isinstance(each, GoQueueError)), None)
                on_count(wrong or sum(each for each in replies if isinstance(each, int)))

        if not others:
            on_count(0)
        for node_id in others:
            READY.ask(self._forwarding, node_id, (group_id, source), told, ASK_MS_MAX)

    def _serve(self, wanted: tuple[str, str], _timeout_ms: int, on_reply: Callable[[Any], None]) -> Stop | None:
        on_reply(self._moves.ready_here(*wanted))
        return None

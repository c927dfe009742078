"""How many records a move of a whole topic has before it, in partitions that other nodes lead: each counts its own."""

from goqueue.broker.dead_letters.moves import Moves
from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.others import ask_others, first_error, good_ones
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

    def ask(self, group_id: str, source: str, on_count: OnDone[int]) -> None:
        def told(replies: dict[int, int | GoQueueError]) -> None:
            on_count(first_error(replies.values()) or sum(good_ones(replies.values())))

        ask_others(self._forwarding, READY, (group_id, source), told, ASK_MS_MAX)

    def _serve(self, wanted: tuple[str, str], _timeout_ms: int, on_reply: OnDone[int]) -> Stop | None:
        on_reply(self._moves.ready_here(*wanted))
        return None

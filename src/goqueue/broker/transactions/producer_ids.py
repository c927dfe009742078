"""Producer ids: given out one by one from blocks that belong to this node alone, so that an id costs no sync and is
never given twice, whatever crashes. The rest of a block is lost with the process.
"""

from collections.abc import Callable
from functools import partial

from goqueue.machines.controller_commands import ProducerIdBlock, TakeProducerIds
from goqueue.model.errors import GoQueueError
from goqueue.runtime.ahead import OnReply
from goqueue.telemetry.calls import call_each

BLOCK_IDS = 1000

OnId = Callable[[int | GoQueueError], None]


class ProducerIds:
    def __init__(
        self, submit: Callable[[TakeProducerIds, OnReply[ProducerIdBlock]], None], taken_end: Callable[[], int]
    ) -> None:
        """`submit` asks the controller; `taken_end` says below what all blocks are that anybody was given."""
        self._submit = submit
        self._taken_end = taken_end
        self._block = ProducerIdBlock(0, 0)
        self._waiting: list[OnId] = []
        """Invariant: while anybody waits, a block is being asked for."""

    def take(self, on_id: OnId) -> None:
        """Give an id that nobody has had; at once, but for the first of a block."""
        first, end = self._block
        if first < end:
            self._block = ProducerIdBlock(first + 1, end)
            on_id(first)
            return
        self._waiting.append(on_id)
        if len(self._waiting) == 1:
            try:
                self._submit(TakeProducerIds(BLOCK_IDS), self._taken)
            except BaseException:
                self._waiting.clear()  # else nobody would ask again, and all who come would wait for ever
                raise

    def was_given(self, producer_id: int) -> bool:
        """To whomever; of blocks before the last start, and of other nodes, also what was only set aside."""
        return 0 <= producer_id < self._taken_end() and not self._block.first <= producer_id < self._block.end

    def _taken(self, reply: ProducerIdBlock | GoQueueError) -> None:
        waiting, self._waiting = self._waiting, []
        if isinstance(reply, GoQueueError):
            call_each(partial(on_id, reply) for on_id in waiting)
            return
        self._block = reply
        call_each(partial(self.take, on_id) for on_id in waiting)

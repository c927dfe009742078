"""Who sends: the producer id that the broker knows batches by, so that one sent twice is stored once."""

from collections.abc import Callable

from goqueue.client.cluster import Cluster
from goqueue.client.errors import refusal
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.wire.kafka.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

NOBODY = -1


class Identity:
    """Of a producer without transactions."""

    transactional_id: str | None = None

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.producer_id = NOBODY
        self.epoch = 0
        self.on_ready: Callable[[], object] = lambda: None
        """Called when something may be sent that could not before."""

    @property
    def is_ready(self) -> bool:
        return self.producer_id != NOBODY

    async def make(self) -> None:
        answer = await self._cluster.ask_any(
            InitProducerIdRequest(None, transaction_timeout_ms=2**31 - 1), InitProducerIdResponse
        )
        if answer.error_code != Code.NONE:
            raise refusal(answer.error_code)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.on_ready()

    def forget(self) -> None:
        """All epochs of this id are used up."""
        self.producer_id = NOBODY

    def may_write(self, place: tuple[str, int]) -> bool:  # noqa: ARG002  a transaction must know of it first
        return True

    async def enlist(self) -> None:
        """Make it so that what `may_write` has refused may be written."""

    def fail(self, error: GoQueueError) -> None:
        """A message could not be delivered, which ends a transaction; without one it concerns only that message."""

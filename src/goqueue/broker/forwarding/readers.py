"""Groups that read a partition as a stream are known to their coordinators, which may be on any node: all are asked."""

from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.others import ask_others, good_ones
from goqueue.broker.forwarding.parts import Spot
from goqueue.broker.groups.lag import Lag, OnReaders, Reader
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Stop

READERS: Call[Spot, list[Reader]] = Call("readers-of-partition", Spot, list[Reader])
ASK_MS_MAX = 2000


class SpreadReaders:
    """What `Lag.readers` does in a cluster. A node that does not answer is left out."""

    def __init__(self, forwarding: Forwarding, lag: Lag) -> None:
        self._forwarding = forwarding
        self._lag = lag
        lag.readers_elsewhere = self.ask
        READERS.serve(forwarding, self._serve)

    def ask(self, topic: str, partition: int, on_readers: OnReaders) -> None:
        def told(replies: dict[int, list[Reader] | GoQueueError]) -> None:
            on_readers([one for each in good_ones(replies.values()) for one in each])

        ask_others(self._forwarding, READERS, (topic, partition), told, ASK_MS_MAX)

    def _serve(self, spot: Spot, _timeout_ms: int, on_reply: OnDone[list[Reader]]) -> Stop | None:
        self._lag.readers_here(*spot, on_reply)
        return None

"""Members of one machine share the port that is scraped: whoever is asked for metrics asks the others for theirs."""

from collections.abc import Callable
from typing import NamedTuple

from goqueue.broker.forwarding.calls import Call, OnDone
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.others import ask_others
from goqueue.broker.metrics.metrics import Metrics
from goqueue.model.again import Again
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Stop

ASK_MS_MAX = 2000


class Wanted(NamedTuple):
    tenant: str
    """Empty: of all."""
    accept: str


METRICS: Call[Wanted, bytes] = Call("metrics", Wanted, bytes)


class SpreadMetrics:
    """A member that does not answer is left out, as a node that cannot be scraped."""

    def __init__(self, forwarding: Forwarding, metrics: Metrics) -> None:
        self._forwarding = forwarding
        self._metrics = metrics
        metrics.elsewhere = self.ask
        METRICS.serve(forwarding, self._serve)

    def ask(self, tenant: str, accept: str, on_pages: Callable[[dict[str, str]], None]) -> None:
        def told(replies: dict[int, bytes | GoQueueError]) -> None:
            on_pages({str(node): page.decode() for node, page in replies.items() if isinstance(page, bytes)})

        ask_others(self._forwarding, METRICS, Wanted(tenant, accept), told, ASK_MS_MAX)

    def _serve(self, wanted: Wanted, _timeout_ms: int, on_reply: OnDone[bytes]) -> Stop | None:
        metrics, (tenant, accept) = self._metrics, wanted
        steps = metrics.exposing_of(tenant, accept) if tenant else metrics.exposing(accept)

        def step(again: Again) -> None:
            try:
                next(steps)
            except StopIteration as end:
                on_reply(end.value[0])
                return
            self._forwarding.clock.call_soon(again)

        Again(step)()
        return None

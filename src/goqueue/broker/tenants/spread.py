"""What tenants have on other nodes of a cluster. Bytes are told every few seconds, as long as any tenant is limited in
them: so a limit may be exceeded by what comes in between. Groups are asked for when a new one begins.
"""

from collections.abc import Callable, Iterable, Mapping

from goqueue.broker.remote.asking import Asking
from goqueue.broker.remote.messages import Answered, Tally, TallyOf, decode_tally, encode
from goqueue.broker.remote.serving import OnAnswer, Serving
from goqueue.broker.tenants.group_counts import GroupCounts
from goqueue.broker.tenants.tenants import Tenants
from goqueue.model.errors import GoQueueError
from goqueue.model.tenancy import TenantLimit
from goqueue.runtime.clock import Clock, Timer

TELL_MS = 5000
TALLY_MS = 2000

OnTallies = Callable[[Mapping[int, Tally]], None]
"""By node; those that do not answer are left out."""


class SpreadTallies:
    def __init__(self, asking: Asking, serving: Serving, tenants: Tenants, counts: GroupCounts, clock: Clock) -> None:
        self._asking = asking
        self._tenants = tenants
        self._counts = counts
        self._clock = clock
        self._told: dict[int, Mapping[str, int]] = {}
        """By node: bytes of tenants, as it said last."""
        self._timer: Timer | None = None
        serving.others[TallyOf] = self._answer
        counts.elsewhere = self.group_names
        tenants.others = self

    def ask(self, tenants: Iterable[str], on_tallies: OnTallies, *, with_groups: bool = False) -> None:
        nodes = [node_id for node_id in sorted(self._asking.image().nodes) if node_id != self._asking.me]
        request = TallyOf(tuple(tenants), with_groups, TALLY_MS)
        found: dict[int, Tally] = {}
        waiting = len(nodes)
        if not nodes:
            on_tallies(found)

        def answered(node_id: int, answer: Answered | GoQueueError) -> None:
            nonlocal waiting
            waiting -= 1
            if not isinstance(answer, GoQueueError):
                found[node_id] = decode_tally(answer.value)
            if not waiting:
                on_tallies(found)

        for node_id in nodes:
            self._asking.ask_node(node_id, request, lambda answer, node_id=node_id: answered(node_id, answer), TALLY_MS)  # type: ignore[misc]

    def group_names(self, tenant_id: str, on_names: Callable[[Iterable[str]], None]) -> None:
        def told(tallies: Mapping[int, Tally]) -> None:
            on_names({name for each in tallies.values() for name in each.groups})

        self.ask((tenant_id,), told, with_groups=True)

    def stored_bytes(self, tenant_id: str) -> int:
        """As those nodes said last that are there."""
        nodes = self._asking.image().nodes
        return sum(told.get(tenant_id, 0) for node_id, told in self._told.items() if node_id in nodes)

    def _answer(self, request: TallyOf, on_answer: OnAnswer) -> None:
        stored = {each: self._tenants.stored_bytes(each) for each in request.tenants}
        groups = {name for each in request.tenants for name in self._counts.names(each)} if request.with_groups else ()
        connections = {each: self._tenants.seats.taken(each) for each in request.tenants}
        on_answer(Answered(0, encode(Tally(stored, tuple(sorted(groups)), connections))))

    def start(self) -> None:
        """Tenants, or their limits, may be others. Doing so twice is fine."""
        if self._timer is None and self._limited():
            self._timer = self._clock.call_after(0, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _limited(self) -> list[str]:
        return [name for name, each in self._tenants.all().items() if TenantLimit.STORAGE_BYTES in each.quotas]

    def _look(self) -> None:
        limited = self._limited()
        if not limited:
            self._timer = None
            return
        self._timer = self._clock.call_after(TELL_MS, self._look)
        self.ask(limited, self._heard)

    def _heard(self, tallies: Mapping[int, Tally]) -> None:
        for node_id, tally in tallies.items():
            self._told[node_id] = tally.stored

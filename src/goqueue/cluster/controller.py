"""The controller of a cluster: it takes the commands that the embedded one takes, decides them by the same machine, and
brings them about in etcd. Every node has one, and none of them has powers of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from goqueue.cluster.changes import Answer, Change, Changes, Reread, Until
from goqueue.cluster.metadata import Metadata
from goqueue.cluster.mirror import Mirror
from goqueue.cluster.store import OnDone, OnEvents, OnListed, Store
from goqueue.machines.machine import Command
from goqueue.machines.name_table import NameTable
from goqueue.model.accounts import AccessImage
from goqueue.model.codes import Code
from goqueue.model.errors import CoordinatorFailed, GoQueueError
from goqueue.model.metadata import Compare, Event, Listing, Put, RemovedKey, RemovedValue, Step, TopicKey
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.refusal import Refused
from goqueue.runtime.clock import Clock, Timer
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")

COMMAND_MS_MAX = 15_000
"""After which whoever asked is told that it may have been done or not."""


class StartedStore(Store, Protocol):
    """The one in etcd."""

    def start(self) -> None:
        """Whoever watches is told to list."""


R = TypeVar("R")


class ClusterController:
    """Behind the calls of a store and of `EmbeddedStore`, in front of the one in etcd."""

    def __init__(
        self, store: StartedStore, node_id: int, clock: Clock, limits: PartitionLimits, default_factor: int
    ) -> None:
        self._store = store
        self._node_id = node_id
        self._clock = clock
        self.mirror = Mirror(limits, default_factor)
        self.changes = Changes(self.mirror)
        self._on_events: OnEvents = lambda events: None
        self._on_lost: Callable[[], None] = lambda: None
        self._rereading = False
        self._reread: list[Callable[[], None]] = []
        self._next_reread: list[Callable[[], None]] = []
        self._watchers: dict[object, Callable[[], None]] = {}
        self.metadata = Metadata(self)
        self._undecided = 0
        self.on_change: list[Callable[[], None]] = []
        """Called whenever anything in the metadata has changed, after the image was replaced."""
        self.on_group_changed: Callable[[str], None] = lambda group_id: None
        """Called with each group whose options were changed, by whichever node."""

    # -- what is known

    @property
    def cluster_id(self) -> str:
        return self.mirror.cluster.cluster_id

    @property
    def secret(self) -> bytes:
        return self.mirror.cluster.secret

    @property
    def producer_ids_end(self) -> int:
        return self.mirror.machine.producer_ids_end

    @property
    def schedules(self) -> Mapping[str, tuple[bytes, int]]:
        return self.mirror.schedules

    @property
    def group_options(self) -> NameTable[Mapping[str, str]]:
        return self.mirror.group_options

    @property
    def topic_sizes(self) -> Mapping[str, int]:
        """Partitions of every topic, also of those that are being made or deleted."""
        return {name: each.partitions for name, each in self.mirror.machine.topics.items()}

    @property
    def access(self) -> AccessImage:
        return self.mirror.machine.access

    @property
    def faults(self) -> int:
        """Of ours, as a coordinator counts them: what could not be decided, or not be taken in."""
        return self._undecided + self.mirror.faults

    def start(self, on_ready: Callable[[], None]) -> None:
        """Called when all that there is is known. From then on every change is."""
        self._next_reread.append(on_ready)
        self._store.watch(self._changed, self._relist)
        self._store.start()

    def load(self) -> None:
        """Whoever makes the image come true is told of all that there is."""
        image = self.metadata.image
        self.metadata.on_change([*image.topics, *image.ledgers, *self.metadata.deleting])

    # -- the calls of a store

    def list(self, on_listed: OnListed) -> None:
        known = self.mirror.all()
        on_listed(Listing(max((event.revision for event in known), default=0), known))

    def watch(self, on_events: OnEvents, on_lost: Callable[[], None]) -> None:
        self._on_events, self._on_lost = on_events, on_lost

    def txn(self, step: Step, on_done: OnDone) -> None:
        self._store.txn(step, on_done)

    def removed(self, name: str, revision: int) -> None:
        """This node has removed its logs of a topic that is being deleted."""
        topic = self.mirror.topic(name)
        if topic is None or not topic.is_deleting:
            return
        said = Put(RemovedKey(topic.topic_id, self._node_id), RemovedValue(self._clock.now_ms()))
        self._store.txn(Step((Compare(TopicKey(name), revision),), (said,)), lambda outcome: None)

    # -- news

    def _relist(self) -> None:
        self._rereading = True
        self._reread, self._next_reread = [*self._reread, *self._next_reread], []
        self._store.list(self._listed)

    def _listed(self, listing: Listing) -> None:
        waiting, self._reread, self._rereading = self._reread, [], False
        self._tell(self.mirror.listed(listing))
        call_each(waiting)
        if self._next_reread and not self._rereading:
            self._relist()

    def _changed(self, changed: Sequence[Event]) -> None:
        self._tell(self.mirror.changed(changed))

    def _tell(self, news: Sequence[Event]) -> None:
        groups, self.mirror.changed_groups = self.mirror.changed_groups, {}
        if news:
            told = [partial(self.on_group_changed, group_id) for group_id in groups]
            call_each((partial(self._on_events, news), *list(self._watchers.values()), *self.on_change, *told))

    # -- commands

    def submit(self, command: Command[R], on_reply: Callable[[R | GoQueueError], None]) -> None:
        self.run(self.changes.of(command), on_reply)

    def run(self, change: Change[R], on_reply: Callable[[R | GoQueueError], None]) -> None:
        """Bring it about; the reply, or Refused after a while, when it may have been done or not."""
        UnderWay(self, change, on_reply, self._clock).go_on(None)

    def not_decided(self, fault: Exception) -> CoordinatorFailed:
        """`decide` only reads: the next command may fare better."""
        self._undecided += 1
        events.error("command failed", coordinator="metadata", exc_info=fault)
        return CoordinatorFailed("the metadata could not be changed: a fault of the node, see its log")

    def reread(self, call: Callable[[], None]) -> None:
        """Call when everything is known that is in etcd now."""
        self._next_reread.append(call)
        if not self._rereading:
            self._relist()

    def wait(self, who: object, call: Callable[[], None]) -> None:
        """Call on every change of the metadata."""
        self._watchers[who] = call

    def stop_waiting(self, who: object) -> None:
        self._watchers.pop(who, None)


class UnderWay(Generic[R]):
    """One change on its way through etcd."""

    def __init__(
        self,
        controller: ClusterController,
        change: Change[R],
        on_reply: Callable[[R | GoQueueError], None],
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._change = change
        self._on_reply = on_reply
        self._clock = clock
        self._is_over = False
        self._waiting: Timer | None = None
        self._deadline = clock.call_after(COMMAND_MS_MAX, self._give_up)

    def go_on(self, answer: Answer) -> None:
        if self._is_over:
            return
        try:
            wanted = self._change.send(answer)
        except StopIteration as end:
            self._end(end.value)
            return
        except GoQueueError as error:
            self._end(error)
            return
        except Exception as fault:  # noqa: BLE001  whoever asked is told now, not when time is up
            self._end(self._controller.not_decided(fault))
            return
        match wanted:
            case Step():
                self._controller.txn(wanted, self.go_on)
            case Reread():
                self._controller.reread(lambda: self.go_on(None))
            case Until():
                self._wait(wanted)

    def _wait(self, until: Until) -> None:
        if until.is_so():
            self.go_on(True)
            return

        def look(*, is_late: bool = False) -> None:
            if until.is_so() or is_late:
                self._stop_waiting()
                self.go_on(not is_late)

        self._waiting = self._clock.call_after(until.ms_max, partial(look, is_late=True))
        self._controller.wait(self, look)

    def _stop_waiting(self) -> None:
        self._controller.stop_waiting(self)
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        text = "etcd, which keeps the metadata of the cluster, did not answer: it may have been done or not"
        self._end(Refused(Code.REQUEST_TIMED_OUT, text))

    def _end(self, reply: R | GoQueueError) -> None:
        if not self._is_over:
            self._is_over = True
            self._deadline.cancel()
            self._stop_waiting()
            self._change.close()
            self._on_reply(reply)

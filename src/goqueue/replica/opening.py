"""Some copies of one topic on their way into service. The disk's part takes long for many new partitions, so it may be
done in another thread: nobody else knows of these copies yet.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from goqueue.machines.partitions.following import is_made_doubtful
from goqueue.model.errors import GoQueueError, LogPoisoned
from goqueue.model.topics import Topic, TopicOptions
from goqueue.records.batch import NO_EPOCH
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Following, Reign
from goqueue.replica.standing import Defer
from goqueue.storage.crew import SideBySide, one_by_one
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions

FIRST_EPOCH = 0
Role = Reign | Following
Judge = Callable[[tuple[str, int], Log], int]
"""The high watermark of a log, as it was saved. One that has lost something is marked."""


class Opening:
    """`run` in any thread, once; then the rest belongs to the owner's."""

    def __init__(  # noqa: PLR0913  all that a copy is made of
        self,
        directory: DataDirectory,
        topic: Topic,
        partitions: Sequence[int],
        options: TopicOptions,
        log_options: LogOptions,
        defer: Defer,
        now_ms: int,
        *,
        roles: Mapping[int, Role],
        is_lazy: bool = False,
        judge: Judge | None = None,
        side_by_side: SideBySide = one_by_one,
    ) -> None:
        """`roles`: of each partition. `is_lazy`: nothing is synced here, new logs become durable with their first
        append. `judge`: in a cluster."""
        self.topic = topic.name
        self._topic_id = topic.id
        self.partitions = partitions
        self.opened: dict[int, Replica] = {}
        self.failed: dict[int, GoQueueError] = {}
        self._directory = directory
        self._options = options
        self._log_options = log_options
        self._defer = defer
        self._now_ms = now_ms
        self._is_lazy = is_lazy
        self._roles = roles
        self._judge = judge
        self._side_by_side = side_by_side

    def run(self) -> None:
        """Each is opened or known to have failed when this returns; one costs the others nothing."""
        made: set[int] = set()
        if not self._is_lazy:
            with suppress(OSError):  # each meets the error again, or does not
                made = self._directory.make_directories(self.topic, self.partitions)
        self._side_by_side(
            [partial(self._try, partition, has_directory=partition in made) for partition in self.partitions]
        )

    def _try(self, partition: int, *, has_directory: bool) -> None:
        try:
            self.opened[partition] = self._open(partition, has_directory=has_directory)
        except GoQueueError as error:
            self.failed[partition] = error
        except OSError as error:
            self.failed[partition] = LogPoisoned(f"{self.topic}/{partition} cannot be opened: {error}")

    def _open(self, partition: int, *, has_directory: bool) -> Replica:
        role = self._roles[partition]
        log = self._directory.load_log(
            self.topic,
            partition,
            self._log_options,
            self._now_ms,
            # A follower learns of epochs with the batches of their leaders, the earlier ones too.
            first_epoch=max(role.epoch, FIRST_EPOCH) if isinstance(role, Reign) else NO_EPOCH,
            has_directory=has_directory,
            is_lazy=self._is_lazy,
            topic_id=self._topic_id,
            is_doubtful=self._is_late(role),
        )
        if isinstance(role, Reign) and not role.is_given:
            # Never an epoch that the log has seen, whatever became of the metadata.
            role = role._replace(epoch=max(role.epoch, log.state.epochs.latest + (not log.is_new)))
        reign = role if isinstance(role, Reign) else None
        replica = Replica(
            log,
            f"{self.topic}/{partition}",
            reign=reign,
            options=self._options,
            defer=self._defer,
            high_watermark=0 if self._judge is None else self._judge((self.topic, partition), log),
        )
        if isinstance(role, Following) and role.epoch > NO_EPOCH:
            replica.follow(role.epoch, role.leader)
        replica.place = self.topic, partition
        return replica

    def _is_late(self, role: Role) -> bool:
        """In a cluster: the copies of a partition are made with its first epoch, and one that is made later may be in
        the place of one that was lost. A companion is made when it is first needed."""
        is_placed = isinstance(role, Following) or role.is_given
        return is_placed and is_made_doubtful(role.epoch) and CompanionName.parse(self.topic, 0) is None

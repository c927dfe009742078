"""Everything one node keeps on its disk: `logs/{topic}/{partition}/` and `logs/@{ledger}/{partition}/`, owned by one
process at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from goqueue.model.errors import DamagedFile, GoQueueError, InvalidName, LogPoisoned
from goqueue.model.names import LEDGER_PREFIX, check_log_name
from goqueue.records.batch import NO_EPOCH
from goqueue.records.log_files import LOGS_NAME
from goqueue.storage.committer import Committer
from goqueue.storage.disk import Disk, Lock
from goqueue.storage.format_file import note_formats, refuse_newer
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.recovery import RecoveryReport
from goqueue.storage.retention import expire
from goqueue.storage.room import DiskRoom
from goqueue.storage.state import LogState
from goqueue.telemetry.logs import get_logger

LOCK_NAME = "lock"
DELETED_NAME = "deleted"
ASIDE_NAME = "aside"
OLD_PREFIX, OLD_METADATA, METADATA_SNAPSHOT = "__", "__metadata", "snapshot-metadata-"

events = get_logger("storage")

LogName = tuple[str, int]
"""Topic and partition."""

OPEN, OTHER = "open", "other"
OPERATIONS = (OPEN, "write", "sync", OTHER)


class OpeningStopped(BaseException):
    """The node is to stop before all its logs are open. It is no error of a log: it goes past whoever takes care of
    those, to whoever starts the node."""


class DataDirectory:
    """Invariant: while this object is open, its process holds the lock; taken before anything else was looked at."""

    def __init__(self, disk: Disk, committer: Committer, lock: Lock) -> None:
        self.disk = disk
        self.committer = committer
        self._lock: Lock | None = lock
        self.logs: dict[LogName, Log] = {}
        self.report: list[RecoveryReport] = []
        """One for each log whose opening took more than a look."""
        self.room = DiskRoom()
        self.failures = dict.fromkeys(OPERATIONS, 0)
        """What took logs out of service, by what they were about to do."""
        self._is_stopping: Callable[[], bool] | None = None
        self._unadopted: list[Log] = []
        """Of a start: what was opened and is nobody's yet."""

    @classmethod
    def open(cls, disk: Disk, *, committer: Committer) -> "DataDirectory":
        """Take the lock and finish interrupted deletions. The logs are opened one by one: each has its own options.
        NewerFormat: a later version has written here, and nothing was changed."""
        directory = cls(disk, committer, disk.lock(LOCK_NAME))
        try:
            refuse_newer(disk)
            directory._sweep_deleted()
            directory._rename_old_ledgers()
        except BaseException:
            directory.close()
            raise
        return directory

    def begin_start(self, is_stopping: Callable[[], bool]) -> None:
        """Until `end_start` no log is opened once it says so: whoever wants one gets OpeningStopped. `is_stopping`: it
        is asked in any thread."""
        self._is_stopping = is_stopping

    def end_start(self) -> None:
        self._is_stopping, self._unadopted = None, []

    def note_formats(self) -> None:
        """Before anything is written in the formats of this version: others may have to refuse the directory then."""
        note_formats(self.disk)

    def names(self) -> Iterator[LogName]:
        """What is on the disk under a name that we would have given. Anything else is left alone."""
        for topic in self.disk.list(LOGS_NAME):
            try:
                check_log_name(topic)
                partitions = self.disk.list(f"{LOGS_NAME}/{topic}")
            except (InvalidName, NotADirectoryError) as error:
                events.warning("not one of our topics", path=f"{LOGS_NAME}/{topic}", reason=str(error))
                continue
            for partition in partitions:
                try:
                    yield topic, _partition_number(partition)
                except InvalidName as error:
                    events.warning("not one of our logs", path=f"{LOGS_NAME}/{topic}/{partition}", reason=str(error))

    def has(self, topic: str) -> bool:
        """Whether there is a directory for its logs."""
        return self.disk.exists(f"{LOGS_NAME}/{topic}")

    def partitions_of(self, topic: str) -> list[int]:
        """The numbers of its logs on the disk."""
        found = []
        for text in self.disk.list(f"{LOGS_NAME}/{topic}"):
            with suppress(InvalidName):
                found.append(_partition_number(text))
        return found

    def open_log(self, topic: str, partition: int, options: LogOptions, now_ms: int) -> Log:
        """The log of that name, recovered, or made if there is none. One that cannot be opened costs the others
        nothing.
        """
        name = topic, partition
        if name not in self.logs:
            self.adopt(topic, partition, self.load_log(topic, partition, options, now_ms))
        return self.logs[name]

    def make_directories(self, topic: str, partitions: Iterable[int]) -> set[int]:
        """For logs that are not there yet; which those are. In any thread. A log's first file is made when this is
        done: so where there is a file, the name of its directory is durable."""
        check_log_name(topic)
        missing = {one for one in partitions if not self.disk.exists(_log_path(topic, one))}
        if missing:
            self.disk.make_directories(f"{LOGS_NAME}/{topic}", [str(_checked(one)) for one in sorted(missing)])
        return missing

    def load_log(  # noqa: PLR0913  all that a log is made of
        self,
        topic: str,
        partition: int,
        options: LogOptions,
        now_ms: int,
        *,
        first_epoch: int = NO_EPOCH,
        has_directory: bool = False,
        is_lazy: bool = False,
        topic_id: bytes = b"",
        is_doubtful: bool = False,
    ) -> Log:
        """Opened, but nobody's yet: in any thread, so that nobody need wait for the disk. See `Log.open`. A log of
        another topic is put aside, and a new one made."""
        check_log_name(topic)
        path = _log_path(topic, _checked(partition))
        if self._is_stopping is not None and self._is_stopping():
            raise OpeningStopped(path)
        try:
            if topic_id:
                self._put_aside_foreign(path, topic_id)
            log = Log.open(
                self.disk,
                path,
                options,
                now_ms,
                first_epoch=first_epoch,
                has_directory=has_directory,
                is_lazy=is_lazy,
                topic_id=topic_id,
                is_doubtful=is_doubtful,
            )
            if self._is_stopping is not None:
                self._unadopted.append(log)
            return log
        except GoQueueError as error:
            events.error("log not opened", topic=topic, partition=partition, reason=str(error))
            self._failed(OPEN)
            raise

    def _put_aside_foreign(self, path: str, topic_id: bytes) -> None:
        """Of a topic that had this name: not to be served, and not ours to delete."""
        try:
            stored_id = LogState.load(self.disk, path).topic_id
        except (OSError, DamagedFile):
            return  # there is none, or recovery tells
        if not stored_id or stored_id == topic_id:
            return
        self._put_aside(path, stored_id.hex(), "it belongs to another topic of that name")

    def _put_aside(self, path: str, suffix: str, why: str) -> None:
        target = f"{ASIDE_NAME}/{path.removeprefix(LOGS_NAME + '/').replace('/', '-')}-{suffix}"
        try:
            self.disk.make_directory(ASIDE_NAME)
            while self.disk.exists(target):
                target += "-again"
            self.disk.rename(path, target)
            self.disk.sync_directory(path.rpartition("/")[0])
            self.disk.sync_directory(ASIDE_NAME)
        except OSError as error:
            raise LogPoisoned(f"{path} cannot be put aside ({why}): {error}") from error
        events.error("log put aside", log=path, as_=target, reason=why)

    def put_aside_later(self, topic: str, partitions: Iterable[int]) -> Callable[[], None]:
        """Take logs out of service. Returns what puts their files aside, which any thread may do."""
        numbers = list(partitions)
        for number in numbers:
            self._let_go(topic, number)

        def put_aside() -> None:
            for number in numbers:
                path = _log_path(topic, number)
                if self.disk.exists(path):
                    self._put_aside(path, "moved", "this node is not to have a copy of it any more")

        return put_aside

    def _let_go(self, topic: str, number: int) -> Log | None:
        log = self.logs.pop((topic, number), None)
        if log is not None:
            self.committer.remove(log)
            log.abandon()
        return log

    def put_aside(self) -> list[str]:
        """Where logs are that belonged to other topics than their names said."""
        return [f"{ASIDE_NAME}/{name}" for name in self.disk.list(ASIDE_NAME)]

    def adopt(self, topic: str, partition: int, log: Log) -> None:
        """It belongs to the owner's thread from now on, and its appends are synced."""
        log.on_failure = self._failed
        log.room = self.room
        self.committer.add(log)
        self.logs[topic, partition] = log
        if log.report.needed_work:
            self.report.append(log.report)

    def _failed(self, doing: str) -> None:
        self.failures[doing if doing in OPERATIONS else OTHER] += 1

    def free_bytes(self) -> int:
        return self.disk.free_bytes()

    def look_at_room(self, reserve_bytes: int) -> str:
        """Why appends are refused; empty: they are not. OSError: the disk does not tell."""
        self.room.look(self.disk.free_bytes(), reserve_bytes)
        return self.room.refusal

    def total_bytes(self) -> int:
        return self.disk.total_bytes()

    def retire(self, topic: str, partitions: Iterable[int]) -> Callable[[], None]:
        """Take logs out of service. Returns what removes their files, which any thread may do; LogPoisoned if that
        fails."""
        numbers = list(partitions)
        retired = [self._let_go(topic, number) for number in numbers]

        def remove() -> None:
            self._delete(topic, numbers)
            retired.clear()  # here, since closing a large file that has no name any more takes its time

        return remove

    def _delete(self, topic: str, partitions: Iterable[int]) -> None:
        """Gone once the renames are durable; a crash while the files are removed is finished at the next start."""
        parent = f"{LOGS_NAME}/{topic}"
        targets = {_log_path(topic, number): f"{DELETED_NAME}/{topic}-{number}" for number in partitions}
        try:
            self.disk.make_directory(DELETED_NAME)
            for path, target in targets.items():
                self._remove_tree(target)
                if self.disk.exists(path):  # else a crash came right behind the rename
                    self.disk.rename(path, target)
        except OSError as error:
            raise LogPoisoned(f"{parent} cannot be deleted: {error}") from error
        try:
            self._finish_deletion(parent, targets.values())
        except OSError as error:
            raise LogPoisoned(f"{parent} may come back after a crash: {error}") from error

    def _finish_deletion(self, parent: str, targets: Iterable[str]) -> None:
        if not self.disk.exists(parent):
            return
        self.disk.sync_directory(parent)
        self.disk.sync_directory(DELETED_NAME)
        for target in targets:
            self._remove_tree(target)
        if not self.disk.list(parent):
            self.disk.remove(parent)
            self.disk.sync_directory(LOGS_NAME)

    def _sweep_deleted(self) -> None:
        for name in self.disk.list(DELETED_NAME):
            self._remove_tree(f"{DELETED_NAME}/{name}")

    def _rename_old_ledgers(self) -> None:
        """Ledgers were once called `__metadata`, `__groups` and so on; topics may have such names now. The metadata is
        renamed last: until then a start after a crash goes on with the others."""
        names = self.disk.list(LOGS_NAME)
        is_old = any(one.startswith(METADATA_SNAPSHOT) for one in self.disk.list(f"{LOGS_NAME}/{OLD_METADATA}/0"))
        if not is_old or f"{LEDGER_PREFIX}metadata" in names:  # a topic of that name has no such snapshot
            return
        for name in sorted((one for one in names if one.startswith(OLD_PREFIX)), key=OLD_METADATA.__eq__):
            new = LEDGER_PREFIX + name.removeprefix(OLD_PREFIX)
            events.info("ledger renamed", old=name, new=new)
            self.disk.rename(f"{LOGS_NAME}/{name}", f"{LOGS_NAME}/{new}")
        self.disk.sync_directory(LOGS_NAME)

    def _remove_tree(self, path: str) -> None:
        with suppress(NotADirectoryError):
            for name in self.disk.list(path):
                self._remove_tree(f"{path}/{name}")
        if self.disk.exists(path):
            self.disk.remove(path)

    def maintain(self, now_ms: int) -> None:
        """To be called now and then: what retention says goes. A log that fails takes only itself out of service."""
        for name, log in self.logs.items():
            try:
                if log.failure is None and not log.is_copy:
                    expire(log, now_ms)
            except GoQueueError as error:
                events.error("retention failed", topic=name[0], partition=name[1], reason=str(error))

    def close(self) -> None:
        """Sync and close every log, then let the lock go. Closing twice is fine."""
        if self._lock is None:
            return
        for log in dict.fromkeys((*self.logs.values(), *self._unadopted)):
            try:
                self.committer.remove(log)
                log.close()
            except GoQueueError as error:
                events.error("log not closed cleanly", log=log.directory, reason=str(error))
        self._lock.release()
        self._lock = None


def _log_path(topic: str, partition: int) -> str:
    return f"{LOGS_NAME}/{topic}/{partition}"


def _checked(partition: int) -> int:
    return _partition_number(str(partition))


def _partition_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or str(int(text)) != text or int(text) >= 1 << 31:
        raise InvalidName(f"{text!r} is not the number of a partition")
    return int(text)

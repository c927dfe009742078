"""What a node of a cluster saves of its copies every few seconds, and what it concludes from it when it starts: a copy
that ends below its saved high watermark, or whose unsynced end went with its machine, is doubtful.
"""

from collections.abc import Iterable

from goqueue.machines.partitions.following import doubt
from goqueue.replica.replica import Replica
from goqueue.storage.disk import Disk
from goqueue.storage.log import Log
from goqueue.storage.options import Durability
from goqueue.storage.watermarks import NONE_SAVED, LogName, Watermark, Watermarks, load_watermarks, save_watermarks
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")

OUT_OF_REACH = 2**62


class SavedWatermarks:
    def __init__(self, disk: Disk, boot_id: str) -> None:
        self._disk = disk
        self._boot_id = boot_id
        self._known = load_watermarks(disk)
        self._is_unclean = self._known is not NONE_SAVED and not self._known.is_clean and self._known.boot_id != boot_id
        """The machine went down with what was not synced."""
        self._may_be_unsynced = not self._known.is_clean
        """Logs that were not opened since have perhaps never been synced: a stop cannot call that clean."""
        self._carried: dict[LogName, Watermark] = dict(self._known.logs)
        """Of logs that were not opened since."""
        self._last: bytes = b""

    def begin(self) -> None:
        """All copies that are here were opened, and those in doubt are marked: from now on this start counts. What was
        not opened stays in doubt: no log reaches so far."""
        if self._is_unclean:
            self._carried = {
                name: one._replace(offset=OUT_OF_REACH) if one.is_unsynced else one
                for name, one in self._carried.items()
            }
        self._is_unclean = self._may_be_unsynced = False

    def judge(self, name: LogName, log: Log) -> int:
        """The high watermark of a log that was opened, as it was saved; it is marked if it lacks something. Durable
        when it returns. In any thread."""
        saved = self._known.logs.get(name)
        if saved is None or (saved.topic_id and saved.topic_id != log.state.topic_id):
            return 0  # of another topic of this name, if of any
        why = doubt(log.end_offset, saved.offset, is_unsynced=saved.is_unsynced, machine_went_down=self._is_unclean)
        if why and not log.state.is_doubtful:
            events.warning("copy is doubtful", copy=f"{name[0]}/{name[1]}", reason=why)
            log.state.is_doubtful = True
            log.save_state()
        return saved.offset

    def of(self, replicas: Iterable[Replica], *, is_clean: bool) -> Watermarks:
        """As they are now. One that is being opened is carried until it is among them."""
        opened = list(replicas)
        for replica in opened:
            self._carried.pop(replica.place, None)
        logs = dict(self._carried)
        for replica in opened:
            if replica.log.failure is None:
                is_unsynced = replica.log.options.durability is not Durability.DISK
                topic_id = replica.log.state.topic_id
                logs[replica.place] = Watermark(replica.high_watermark, is_unsynced, topic_id)
        boot_id = self._known.boot_id if self._is_unclean else self._boot_id
        return Watermarks(boot_id, is_clean and not self._may_be_unsynced, logs)

    def save(self, watermarks: Watermarks) -> None:
        """In any thread, one at a time. OSError: it was not saved, and the last one counts still."""
        body = watermarks.encode()
        if body != self._last:
            save_watermarks(self._disk, watermarks)
            self._last = body

"""The high watermarks of all logs of a node, in one file, saved now and then: a copy that ends below its own has lost
what an in-sync replica must hold. And whether the machine went down in good order: else what was not synced is gone,
which is much where nobody waits for syncs.

A lower watermark than the true one is always safe.
"""

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from goqueue.model.errors import DamagedFile
from goqueue.records.log_files import Kind
from goqueue.storage import side_file
from goqueue.storage.disk import Disk
from goqueue.telemetry.logs import get_logger

WATERMARKS_NAME = "watermarks"
FORMAT = 1
TOPIC_ID_BYTES = 16

_HEAD = Struct("<BBHI")
_ENTRY = Struct("<HIqB")

events = get_logger("storage")

LogName = tuple[str, int]


class Watermark(NamedTuple):
    offset: int
    is_unsynced: bool
    """Its appends were acknowledged without a sync."""
    topic_id: bytes = b""
    """A topic that was deleted and made again has another. Empty: it is not known."""


class Watermarks(NamedTuple):
    boot_id: str
    """Of the machine, when they were saved."""
    is_clean: bool
    """The node was stopped in good order, and everything was synced."""
    logs: Mapping[LogName, Watermark]

    def encode(self) -> bytes:
        boot = self.boot_id.encode()
        parts = [_HEAD.pack(FORMAT, self.is_clean, len(boot), len(self.logs)), boot]
        for (topic, partition), (offset, is_unsynced, _) in self.logs.items():
            name = topic.encode()
            parts += (_ENTRY.pack(len(name), partition, offset, is_unsynced), name)
        # Behind all entries, where a version that does not know of them does not look.
        parts += (one.topic_id.ljust(TOPIC_ID_BYTES, b"\0") for one in self.logs.values())
        return b"".join(parts)

    @classmethod
    def decode(cls, body: bytes) -> "Watermarks":
        try:
            format_, is_clean, boot_bytes, count = _HEAD.unpack_from(body)
            if format_ != FORMAT:
                raise DamagedFile(f"watermarks of format {format_}")
            at = _HEAD.size + boot_bytes
            boot_id = body[_HEAD.size : at].decode()
            logs: dict[LogName, Watermark] = {}
            for _ in range(count):
                name_bytes, partition, offset, is_unsynced = _ENTRY.unpack_from(body, at)
                at += _ENTRY.size
                logs[body[at : at + name_bytes].decode(), partition] = Watermark(offset, bool(is_unsynced))
                at += name_bytes
            if len(body) == at + count * TOPIC_ID_BYTES:
                ids = (body[start : start + TOPIC_ID_BYTES] for start in range(at, len(body), TOPIC_ID_BYTES))
                for name, topic_id in zip(list(logs), ids, strict=True):
                    logs[name] = logs[name]._replace(topic_id=topic_id if any(topic_id) else b"")
        except (StructError, UnicodeDecodeError) as error:
            raise DamagedFile(f"watermarks of {len(body)} bytes cannot be read") from error
        return cls(boot_id, bool(is_clean), logs)


NONE_SAVED = Watermarks("", is_clean=True, logs={})


def save_watermarks(disk: Disk, watermarks: Watermarks) -> None:
    """In any thread."""
    side_file.save_durably(disk, WATERMARKS_NAME, Kind.WATERMARKS, watermarks.encode())


def load_watermarks(disk: Disk) -> Watermarks:
    """Nothing, where there is none: then nobody has promised anything."""
    try:
        return Watermarks.decode(side_file.load(disk, WATERMARKS_NAME, Kind.WATERMARKS))
    except FileNotFoundError:
        return NONE_SAVED
    except (OSError, DamagedFile) as error:
        events.error("high watermarks not read", reason=str(error))
        return NONE_SAVED

"""How far a queue group is behind, in numbers: apart from the queues themselves, since only those who watch ask."""

from goqueue.model.errors import GoQueueError
from goqueue.records.batch import split
from goqueue.records.portions import find_record
from goqueue.replica.replica import Replica

TIME_BYTES_MAX = 1024 * 1024


def time_of(replica: Replica, offset: int) -> int | None:
    """When the record at `offset`, or the next one that there is, was published."""
    piece = replica.read(offset, 1, replica.last_stable_offset) if offset < replica.last_stable_offset else None
    if piece is None:
        return None
    for batch in split(piece.view()):
        if not batch.is_control:
            try:
                record = find_record(batch, offset, max_bytes=TIME_BYTES_MAX)
            except GoQueueError:  # much to unpack for a time that its header tells nearly as well
                return batch.base_timestamp
            return batch.max_timestamp if record is None else record.timestamp
    return None

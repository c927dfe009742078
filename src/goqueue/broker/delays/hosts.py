"""What the log of a partition holds of the places that its delays name. Each keeps its own end when the power fails, so
after every load, before anything is published, the ledger is told how far the log goes: see `machines.delays.hosts`.
"""

from collections.abc import Iterator

from goqueue.machines.delays.commands import NO_SEQUENCE, FollowHost
from goqueue.machines.delays.machine import Delays
from goqueue.model.errors import GoQueueError
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica

ONE_BATCH = 1


def host_of(machine: Delays, replica: Replica) -> FollowHost:
    epoch, up_to = machine.known_place()
    next_sequence = NO_SEQUENCE
    producer = machine.producer()
    if producer is not None and replica.producers.knows(*producer):
        next_sequence = replica.producers.next_sequence(*producer)
    end_offset = replica.end_of_epoch(epoch)
    sent = replica.producers.last_batches() if replica.options.wishes != "off" else []
    known_to = min(up_to, end_offset - 1)
    unkept = tuple(place for first, last in sent if last > known_to for place in _free_places(replica, first, last))
    return FollowHost(
        end_offset,
        replica.leader_epoch,
        next_sequence,
        unkept,
        min((first for first, _ in sent), default=replica.end_offset),
    )


def _free_places(replica: Replica, first: int, last: int) -> Iterator[int]:
    """Of one batch: its header tells whether there are any."""
    if first < replica.start_offset:
        return
    try:
        piece = replica.read(first, ONE_BATCH, replica.end_offset)
    except GoQueueError:
        return
    if piece is None or piece.first_offset != first:  # damaged, or compacted away
        return
    batch = next(iter(split(piece.view())))
    if batch.is_control:
        yield from range(first, last + 1)
    elif batch.record_count <= last - first:
        there = {record.offset for record in decode(batch)}
        yield from (offset for offset in range(first, last + 1) if offset not in there)

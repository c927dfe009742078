"""What the logs hold of the places that the delays' ledger names. Each keeps its own end when the power fails, so at
every start, before anything is published, the ledger is told how far each log goes: see `machines.delay_hosts`.
"""

from collections.abc import Iterator
from typing import Any

from goqueue.broker.topics.topics import Topics
from goqueue.machines.delays.commands import NO_SEQUENCE, FollowHost
from goqueue.machines.delays.machine import Delays
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import Image, Topic
from goqueue.records.batch import split
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica
from goqueue.runtime.coordinator import Coordinator
from goqueue.telemetry.logs import get_logger

ONE_BATCH = 1

events = get_logger("broker")


def follow_hosts(coordinator: Coordinator[Delays], machine: Delays, topics: Topics, image: Image) -> None:
    """Partitions that cannot be opened are left as they are: nothing can be published to them."""
    for topic in image.topics.values():
        for partition in range(topic.partitions):
            replica = topics.find_replica(topic.name, partition)
            if replica is None or replica.failure is not None:
                continue
            command = _host(machine, topic, partition, replica)
            if machine.is_known(topic.id, partition) or command.unkept:
                _follow(coordinator, command)


def _follow(coordinator: Coordinator[Delays], command: FollowHost) -> None:
    def followed(reply: Any) -> None:
        if isinstance(reply, GoQueueError):
            place = {"topic": command.topic, "partition": command.partition}
            events.error("delays not compared with their log", **place, reason=str(reply))
        elif reply:
            _follow(coordinator, command)

    coordinator.submit(command, followed)


def _host(machine: Delays, topic: Topic, partition: int, replica: Replica) -> FollowHost:
    epoch, up_to = machine.known_place(topic.id, partition)
    next_sequence = NO_SEQUENCE
    producer = machine.producer()
    if producer is not None and replica.producers.knows(*producer):
        next_sequence = replica.producers.next_sequence(*producer)
    end_offset = replica.end_of_epoch(epoch)
    sent = replica.producers.last_batches() if replica.options.wishes != "off" else []
    known_to = min(up_to, end_offset - 1)
    unkept = tuple(place for first, last in sent if last > known_to for place in _free_places(replica, first, last))
    return FollowHost(
        topic.name,
        topic.id,
        partition,
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

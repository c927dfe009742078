"""Where copies lie and who leads them. On a node that is its own cluster most answers are: it is as it must be."""

from contextlib import suppress

from goqueue.doors.kafka.handlers.topics import submit_all
from goqueue.doors.kafka.request import Request
from goqueue.machines.controller_commands import Reassign, Result
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.wire.kafka.messages import placement as wire

LOG_DIRECTORY = "data"


def handle_describe_log_dirs(request: Request) -> None:
    message: wire.DescribeLogDirsRequest = request.message
    image = request.broker.topics.image
    if message.topics is None:
        wanted = {topic.name: list(range(topic.partitions)) for topic in image.topics.values()}
    else:
        wanted = {topic.topic: topic.partitions for topic in message.topics if topic.topic in image.topics}
    result = wire.DescribeLogDirsResult(log_dir=LOG_DIRECTORY)
    for name, numbers in wanted.items():
        partitions = []
        for number in numbers:
            try:
                size = request.broker.topics.replica(name, number).size_bytes
            except GoQueueError as error:
                if code_of(error) is Code.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                size = 0
            partitions.append(wire.DescribeLogDirsPartition(number, size))
        result.topics.append(wire.DescribeLogDirsTopic(name, partitions))
    with suppress(OSError):  # then they stay unknown
        result.total_bytes, result.usable_bytes = request.broker.health.disk_bytes()
    request.answer(wire.DescribeLogDirsResponse(results=[result]))


def handle_elect_leaders(request: Request) -> None:
    message: wire.ElectLeadersRequest = request.message
    topics = request.broker.topics
    response = wire.ElectLeadersResponse()
    for topic in message.topic_partitions or ():
        results = []
        for number in topic.partitions:
            known = topics.end_offset(topic.topic, number) is not None
            code = Code.ELECTION_NOT_NEEDED if known else Code.UNKNOWN_TOPIC_OR_PARTITION
            results.append(wire.ElectedPartition(number, code, None))
        response.replica_election_results.append(wire.ElectedTopic(topic.topic, results))
    request.answer(response)


def handle_alter_reassignments(request: Request) -> None:
    message: wire.AlterPartitionReassignmentsRequest = request.message
    wanted = [(topic.name, one) for topic in message.topics for one in topic.partitions]
    commands = [_reassignment(request, name, one) for name, one in wanted]

    def answer(results: list[Result]) -> None:
        response = wire.AlterPartitionReassignmentsResponse(error_message=None)
        answered = iter(results)
        for topic in message.topics:
            partitions = []
            for one in topic.partitions:
                result = next(answered)
                code, words = result.code, result.message or None
                partitions.append(wire.ReassignablePartitionResponse(one.partition_index, code, words))
            response.responses.append(wire.ReassignableTopicResponse(topic.name, partitions))
        request.answer(response)

    submit_all(request, commands, answer)


def _reassignment(request: Request, name: str, wanted: wire.ReassignablePartition) -> Reassign | Result:
    image = request.broker.topics.image
    topic = image.topics.get(name)
    if topic is None or not 0 <= wanted.partition_index < topic.partitions:
        return Result(Code.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    if not image.ledgers:  # a node that is its own cluster
        if wanted.replicas is None:
            return Result(Code.NO_REASSIGNMENT_IN_PROGRESS)
        if wanted.replicas == [request.broker.identity.node_id]:
            return Result()
    replicas = None if wanted.replicas is None else tuple(wanted.replicas)
    return Reassign(name, wanted.partition_index, replicas)


def handle_list_reassignments(request: Request) -> None:
    message: wire.ListPartitionReassignmentsRequest = request.message
    image = request.broker.topics.image
    asked = None if message.topics is None else {one.name: set(one.partition_indexes) for one in message.topics}
    response = wire.ListPartitionReassignmentsResponse(error_message=None)
    for name, topic in image.topics.items():
        if asked is not None and name not in asked:
            continue
        moving = [
            wire.OngoingPartitionReassignment(number, list(one.replicas), list(one.adding), list(one.removing))
            for number, one in enumerate(topic.placements)
            if (one.adding or one.removing) and (asked is None or number in asked[name])
        ]
        if moving:
            response.topics.append(wire.OngoingTopicReassignment(name, moving))
    request.answer(response)

"""Where copies lie and who leads them. One node holds everything, so most answers are: it is as it must be."""

from contextlib import suppress

from goqueue.broker.topics.topics import code_of
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
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
    here = [request.broker.identity.node_id]
    response = wire.AlterPartitionReassignmentsResponse(error_message=None)
    for topic in message.topics:
        results = []
        for wanted in topic.partitions:
            result = wire.ReassignablePartitionResponse(wanted.partition_index, error_message=None)
            if request.broker.topics.end_offset(topic.name, wanted.partition_index) is None:
                result.error_code = Code.UNKNOWN_TOPIC_OR_PARTITION
            elif wanted.replicas is None:
                result.error_code = Code.NO_REASSIGNMENT_IN_PROGRESS
            elif wanted.replicas != here:
                result.error_code = Code.INVALID_REPLICA_ASSIGNMENT
                result.error_message = "this cluster has one node"
            results.append(result)
        response.responses.append(wire.ReassignableTopicResponse(topic.name, results))
    request.answer(response)


def handle_list_reassignments(request: Request) -> None:
    request.answer(wire.ListPartitionReassignmentsResponse(error_message=None))

"""TopicService: made, looked at, configured, deleted."""

from contextlib import suppress
from functools import partial

from goqueue.doors.grpc.call import Call, named
from goqueue.doors.grpc.errors import GrpcError
from goqueue.machines.controller_commands import CreateTopic, DeleteTopic, SetOptions
from goqueue.model.refusal import Refused
from goqueue.wire.grpc import topic_pb2 as pb


class TopicService:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def create_topic(self, request: pb.CreateTopicRequest) -> pb.CreateTopicResponse:
        if request.partitions < 0:
            raise GrpcError(f"a topic cannot have {request.partitions} partitions")
        broker = self._call.broker
        partitions = request.partitions or broker.default_partitions
        name = named("name", request.name)
        command = CreateTopic(name, broker.topics.new_id(), partitions, dict(request.options))
        await self._call.order(partial(broker.topics.submit, command))
        return pb.CreateTopicResponse(name=name, partitions=partitions)

    async def list_topics(self, _request: pb.ListTopicsRequest) -> pb.ListTopicsResponse:
        return pb.ListTopicsResponse(names=sorted(self._call.broker.topics.image.topics))

    async def describe_topic(self, request: pb.DescribeTopicRequest) -> pb.DescribeTopicResponse:
        topic = self._call.topic(request.name)
        return pb.DescribeTopicResponse(
            name=topic.name,
            partitions=[self._partition(topic.name, number) for number in range(topic.partitions)],
            options=dict(topic.overrides),
        )

    def _partition(self, topic: str, number: int) -> pb.PartitionInfo:
        with suppress(Refused):
            replica = self._call.broker.topics.replica(topic, number)
            return pb.PartitionInfo(
                partition=number,
                start_offset=replica.start_offset,
                end_offset=replica.high_watermark,
                size_bytes=replica.size_bytes,
                in_service=True,
            )
        return pb.PartitionInfo(partition=number)

    async def configure_topic(self, request: pb.ConfigureTopicRequest) -> pb.ConfigureTopicResponse:
        topic = self._call.topic(request.name)
        changes: dict[str, str | None] = {**request.options, **dict.fromkeys(request.unset)}
        await self._call.order(partial(self._call.broker.topics.submit, SetOptions(topic.name, changes)))
        return pb.ConfigureTopicResponse(options=dict(self._call.topic(topic.name).overrides))

    async def delete_topic(self, request: pb.DeleteTopicRequest) -> pb.DeleteTopicResponse:
        await self._call.order(partial(self._call.broker.topics.submit, DeleteTopic(request.name)))
        return pb.DeleteTopicResponse()

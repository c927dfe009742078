"""No call reaches a log of the broker's own."""

import pytest

from goqueue.client.grpc import GrpcRefused
from goqueue.wire.grpc import topic_pb2, transaction_pb2
from tests.unit.doors.grpc.door_client import Door, served

LEDGER = "@metadata"


@served
async def test_a_call_that_names_a_ledger_is_refused(door: Door) -> None:
    made = await door.ask(transaction_pb2.InitProducerRequest(transactional_id="t"))
    before = [replica.end_offset for replica in door.b._live().node.replicas.ledgers if replica.place[0] == LEDGER]
    for request in (
        topic_pb2.CreateTopicRequest(name=LEDGER),
        topic_pb2.DescribeTopicRequest(name=LEDGER),
        topic_pb2.ConfigureTopicRequest(name=LEDGER, options={"retention.ms": "1"}),
        topic_pb2.DeleteTopicRequest(name=LEDGER),
        transaction_pb2.AddPartitionRequest(
            transactional_id="t", producer_id=made.producer_id, epoch=made.epoch, topic=LEDGER
        ),
    ):
        with pytest.raises(GrpcRefused):
            await door.ask(request)
    with pytest.raises(GrpcRefused):
        await door.client.publish(LEDGER, None, key=b"orders", partition=0)
    with pytest.raises(GrpcRefused):
        await door.read(LEDGER)
    after = [replica.end_offset for replica in door.b._live().node.replicas.ledgers if replica.place[0] == LEDGER]
    assert after == before

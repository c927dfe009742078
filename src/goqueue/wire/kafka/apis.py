"""What is implemented: the one table from which doors advertise, clients choose and codecs know what is flexible."""

from typing import NamedTuple

from goqueue.wire.kafka.messages import (
    acls,
    classic_groups,
    cluster,
    configs,
    describe_groups,
    fetch,
    list_offsets,
    metadata,
    offsets,
    placement,
    produce,
    quotas,
    sasl,
    share_groups,
    share_offsets,
    topics,
    transactions,
)
from goqueue.wire.kafka.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from goqueue.wire.kafka.messages.describe_transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import Span

NOT_FLEXIBLE = 2**15
"""A first flexible version that never comes."""


class Api(NamedTuple):
    key: int
    name: str
    versions: Span
    """Implemented: these can be encoded and decoded."""
    flexible_from: int
    request: type[Message]
    response: type[Message]
    advertised: Span

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from

    def has_flexible_response_header(self, version: int) -> bool:
        """ApiVersions never has one: its client does not know yet what we speak."""
        return self.request is not metadata.ApiVersionsRequest and self.is_flexible(version)


def _api(
    key: int,
    versions: tuple[int, int],
    flexible_from: int,
    request: type[Message],
    response: type[Message],
    advertised_from: int | None = None,
) -> Api:
    first, last = versions
    advertised = Span(first if advertised_from is None else advertised_from, last)
    name = request.__name__.removesuffix("Request")
    return Api(key, name, Span(first, last), flexible_from, request, response, advertised)


APIS = {
    api.key: api
    for api in (
        # librdkafka 2.0 sends uncompressed batches to a broker that does not advertise Produce from 0 on.
        _api(0, (3, 13), 9, produce.ProduceRequest, produce.ProduceResponse, advertised_from=0),
        _api(1, (4, 18), 12, fetch.FetchRequest, fetch.FetchResponse),
        _api(2, (1, 11), 6, list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse),
        _api(3, (0, 13), 9, metadata.MetadataRequest, metadata.MetadataResponse),
        _api(8, (2, 10), 8, offsets.OffsetCommitRequest, offsets.OffsetCommitResponse),
        _api(9, (1, 10), 6, offsets.OffsetFetchRequest, offsets.OffsetFetchResponse),
        _api(10, (0, 6), 3, classic_groups.FindCoordinatorRequest, classic_groups.FindCoordinatorResponse),
        _api(11, (0, 9), 6, classic_groups.JoinGroupRequest, classic_groups.JoinGroupResponse),
        _api(12, (0, 4), 4, classic_groups.HeartbeatRequest, classic_groups.HeartbeatResponse),
        _api(13, (0, 5), 4, classic_groups.LeaveGroupRequest, classic_groups.LeaveGroupResponse),
        _api(14, (0, 5), 4, classic_groups.SyncGroupRequest, classic_groups.SyncGroupResponse),
        _api(15, (0, 6), 5, describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse),
        _api(16, (0, 5), 3, describe_groups.ListGroupsRequest, describe_groups.ListGroupsResponse),
        # Version 0 of SaslHandshake goes on without frames. librdkafka 2.0 does not log in where it is not advertised,
        # and uses version 1.
        _api(17, (1, 1), NOT_FLEXIBLE, sasl.SaslHandshakeRequest, sasl.SaslHandshakeResponse, advertised_from=0),
        _api(18, (0, 5), 3, metadata.ApiVersionsRequest, metadata.ApiVersionsResponse),
        _api(19, (2, 7), 5, topics.CreateTopicsRequest, topics.CreateTopicsResponse),
        _api(20, (1, 6), 4, topics.DeleteTopicsRequest, topics.DeleteTopicsResponse),
        _api(21, (0, 2), 2, topics.DeleteRecordsRequest, topics.DeleteRecordsResponse),
        _api(22, (0, 5), 2, transactions.InitProducerIdRequest, transactions.InitProducerIdResponse),
        _api(23, (2, 4), 4, list_offsets.OffsetForLeaderEpochRequest, list_offsets.OffsetForLeaderEpochResponse),
        _api(24, (0, 5), 3, transactions.AddPartitionsToTxnRequest, transactions.AddPartitionsToTxnResponse),
        _api(25, (0, 4), 3, transactions.AddOffsetsToTxnRequest, transactions.AddOffsetsToTxnResponse),
        _api(26, (0, 5), 3, transactions.EndTxnRequest, transactions.EndTxnResponse),
        _api(27, (1, 2), 1, transactions.WriteTxnMarkersRequest, transactions.WriteTxnMarkersResponse),
        _api(28, (0, 6), 3, transactions.TxnOffsetCommitRequest, transactions.TxnOffsetCommitResponse),
        _api(29, (1, 3), 2, acls.DescribeAclsRequest, acls.DescribeAclsResponse),
        _api(30, (1, 3), 2, acls.CreateAclsRequest, acls.CreateAclsResponse),
        _api(31, (1, 3), 2, acls.DeleteAclsRequest, acls.DeleteAclsResponse),
        _api(32, (1, 4), 4, configs.DescribeConfigsRequest, configs.DescribeConfigsResponse),
        _api(33, (0, 2), 2, configs.AlterConfigsRequest, configs.AlterConfigsResponse),
        _api(35, (1, 5), 2, placement.DescribeLogDirsRequest, placement.DescribeLogDirsResponse),
        _api(36, (0, 2), 2, sasl.SaslAuthenticateRequest, sasl.SaslAuthenticateResponse),
        _api(37, (0, 3), 2, topics.CreatePartitionsRequest, topics.CreatePartitionsResponse),
        _api(42, (0, 3), 2, describe_groups.DeleteGroupsRequest, describe_groups.DeleteGroupsResponse),
        _api(43, (0, 2), 2, placement.ElectLeadersRequest, placement.ElectLeadersResponse),
        _api(44, (0, 1), 1, configs.IncrementalAlterConfigsRequest, configs.IncrementalAlterConfigsResponse),
        _api(
            45, (0, 1), 0, placement.AlterPartitionReassignmentsRequest, placement.AlterPartitionReassignmentsResponse
        ),
        _api(46, (0, 0), 0, placement.ListPartitionReassignmentsRequest, placement.ListPartitionReassignmentsResponse),
        _api(47, (0, 0), NOT_FLEXIBLE, offsets.OffsetDeleteRequest, offsets.OffsetDeleteResponse),
        _api(48, (0, 1), 1, quotas.DescribeClientQuotasRequest, quotas.DescribeClientQuotasResponse),
        _api(49, (0, 1), 1, quotas.AlterClientQuotasRequest, quotas.AlterClientQuotasResponse),
        _api(50, (0, 0), 0, quotas.DescribeUserScramCredentialsRequest, quotas.DescribeUserScramCredentialsResponse),
        _api(51, (0, 0), 0, quotas.AlterUserScramCredentialsRequest, quotas.AlterUserScramCredentialsResponse),
        _api(55, (0, 2), 0, cluster.DescribeQuorumRequest, cluster.DescribeQuorumResponse),
        _api(57, (0, 2), 0, cluster.UpdateFeaturesRequest, cluster.UpdateFeaturesResponse),
        _api(60, (0, 2), 0, metadata.DescribeClusterRequest, metadata.DescribeClusterResponse),
        _api(61, (0, 0), 0, DescribeProducersRequest, DescribeProducersResponse),
        _api(65, (0, 0), 0, DescribeTransactionsRequest, DescribeTransactionsResponse),
        _api(66, (0, 2), 0, ListTransactionsRequest, ListTransactionsResponse),
        _api(68, (0, 1), 0, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
        _api(69, (0, 1), 0, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
        _api(74, (0, 1), 0, cluster.ListConfigResourcesRequest, cluster.ListConfigResourcesResponse),
        _api(75, (0, 0), 0, cluster.DescribeTopicPartitionsRequest, cluster.DescribeTopicPartitionsResponse),
        _api(76, (1, 1), 0, share_groups.ShareGroupHeartbeatRequest, share_groups.ShareGroupHeartbeatResponse),
        _api(77, (1, 1), 0, share_groups.ShareGroupDescribeRequest, share_groups.ShareGroupDescribeResponse),
        _api(78, (1, 2), 0, share_groups.ShareFetchRequest, share_groups.ShareFetchResponse),
        _api(79, (1, 2), 0, share_groups.ShareAcknowledgeRequest, share_groups.ShareAcknowledgeResponse),
        _api(
            90,
            (0, 1),
            0,
            share_offsets.DescribeShareGroupOffsetsRequest,
            share_offsets.DescribeShareGroupOffsetsResponse,
        ),
        _api(91, (0, 0), 0, share_offsets.AlterShareGroupOffsetsRequest, share_offsets.AlterShareGroupOffsetsResponse),
        _api(
            92, (0, 0), 0, share_offsets.DeleteShareGroupOffsetsRequest, share_offsets.DeleteShareGroupOffsetsResponse
        ),
    )
}

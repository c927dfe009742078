"""Which handler answers which request, and what its client must be allowed. Every API that is offered stands here."""

from collections.abc import Callable
from typing import NamedTuple

from goqueue.doors.kafka.handlers import (
    acls,
    cluster,
    configs,
    consumer_groups,
    delete_records,
    fetch,
    groups,
    joining,
    list_offsets,
    metadata,
    offsets,
    placement,
    quotas,
    sasl,
    scram,
    share_fetch,
    share_groups,
    share_offsets,
    topics,
    transactions,
)
from goqueue.doors.kafka.request import Request
from goqueue.model.access import OPEN, Kind, Operation, Permission

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = Kind.TOPIC, Kind.GROUP, Kind.CLUSTER, Kind.TRANSACTIONAL_ID
SUBJECT = Kind.SUBJECT
READ, WRITE, CREATE, DELETE, ALTER = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
)
DESCRIBE, CLUSTER_ACTION = Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS


class Api(NamedTuple):
    """How a request is answered, and what its client needs for that: as in Kafka's documentation of ACLs."""

    handle: Callable[[Request], None]
    permission: Permission


HANDLERS: dict[int, Api] = {
    0: Api(joining.handle_produce, Permission({TOPIC: WRITE, TRANSACTIONAL_ID: WRITE})),
    1: Api(fetch.handle_fetch, Permission({TOPIC: READ})),
    2: Api(list_offsets.handle_list_offsets, Permission({TOPIC: DESCRIBE})),
    3: Api(metadata.handle_metadata, Permission({TOPIC: (DESCRIBE, CREATE)})),
    8: Api(offsets.handle_offset_commit, Permission({GROUP: READ, TOPIC: READ})),
    9: Api(offsets.handle_offset_fetch, Permission({GROUP: DESCRIBE, TOPIC: DESCRIBE})),
    10: Api(metadata.handle_find_coordinator, Permission({GROUP: DESCRIBE, TRANSACTIONAL_ID: DESCRIBE})),
    11: Api(groups.handle_join_group, Permission({GROUP: READ, TOPIC: READ})),
    12: Api(groups.handle_heartbeat, Permission({GROUP: READ})),
    13: Api(groups.handle_leave_group, Permission({GROUP: READ})),
    14: Api(groups.handle_sync_group, Permission({GROUP: READ, TOPIC: READ})),
    15: Api(groups.handle_describe_groups, Permission({GROUP: DESCRIBE, TOPIC: DESCRIBE})),
    16: Api(groups.handle_list_groups, Permission({GROUP: DESCRIBE})),
    17: Api(sasl.handle_handshake, OPEN),
    18: Api(metadata.handle_api_versions, OPEN),
    19: Api(topics.handle_create_topics, Permission({TOPIC: (CREATE, DESCRIBE_CONFIGS, WRITE), SUBJECT: READ})),
    20: Api(topics.handle_delete_topics, Permission({TOPIC: DELETE})),
    21: Api(delete_records.handle_delete_records, Permission({TOPIC: DELETE})),
    22: Api(transactions.handle_init_producer_id, Permission({TRANSACTIONAL_ID: WRITE})),
    23: Api(list_offsets.handle_offset_for_leader_epoch, Permission({TOPIC: DESCRIBE})),
    24: Api(transactions.handle_add_partitions, Permission({TRANSACTIONAL_ID: WRITE, TOPIC: WRITE})),
    25: Api(transactions.handle_add_offsets, Permission({TRANSACTIONAL_ID: WRITE, GROUP: READ})),
    26: Api(transactions.handle_end_txn, Permission({TRANSACTIONAL_ID: WRITE})),
    27: Api(transactions.handle_write_markers, Permission({CLUSTER: CLUSTER_ACTION, TOPIC: WRITE})),
    28: Api(joining.handle_txn_offset_commit, Permission({TRANSACTIONAL_ID: WRITE, GROUP: READ, TOPIC: READ})),
    29: Api(acls.handle_describe_acls, Permission({CLUSTER: DESCRIBE})),
    30: Api(acls.handle_create_acls, Permission({CLUSTER: ALTER})),
    31: Api(acls.handle_delete_acls, Permission({CLUSTER: ALTER})),
    32: Api(
        configs.handle_describe_configs,
        Permission({TOPIC: DESCRIBE_CONFIGS, GROUP: DESCRIBE_CONFIGS, CLUSTER: DESCRIBE_CONFIGS}),
    ),
    33: Api(
        configs.handle_alter_configs,
        Permission({TOPIC: (ALTER_CONFIGS, WRITE), GROUP: ALTER_CONFIGS, CLUSTER: ALTER_CONFIGS, SUBJECT: READ}),
    ),
    35: Api(placement.handle_describe_log_dirs, Permission({CLUSTER: DESCRIBE, TOPIC: DESCRIBE})),
    36: Api(sasl.handle_authenticate, OPEN),
    37: Api(topics.handle_create_partitions, Permission({TOPIC: ALTER})),
    42: Api(groups.handle_delete_groups, Permission({GROUP: DELETE})),
    43: Api(placement.handle_elect_leaders, Permission({CLUSTER: ALTER, TOPIC: ALTER})),
    44: Api(
        configs.handle_incremental_alter_configs,
        Permission({TOPIC: (ALTER_CONFIGS, WRITE), GROUP: ALTER_CONFIGS, CLUSTER: ALTER_CONFIGS, SUBJECT: READ}),
    ),
    45: Api(placement.handle_alter_reassignments, Permission({CLUSTER: ALTER, TOPIC: ALTER})),
    46: Api(placement.handle_list_reassignments, Permission({CLUSTER: DESCRIBE, TOPIC: DESCRIBE})),
    47: Api(offsets.handle_offset_delete, Permission({GROUP: DELETE, TOPIC: READ})),
    48: Api(quotas.handle_describe_client_quotas, Permission({CLUSTER: DESCRIBE_CONFIGS})),
    49: Api(quotas.handle_alter_client_quotas, Permission({CLUSTER: ALTER_CONFIGS})),
    50: Api(scram.handle_describe_scram_credentials, Permission({CLUSTER: DESCRIBE})),
    51: Api(scram.handle_alter_scram_credentials, Permission({CLUSTER: ALTER})),
    55: Api(cluster.handle_describe_quorum, Permission({CLUSTER: DESCRIBE, TOPIC: DESCRIBE})),
    57: Api(cluster.handle_update_features, Permission({CLUSTER: ALTER})),
    60: Api(metadata.handle_describe_cluster, Permission({CLUSTER: DESCRIBE})),
    61: Api(transactions.handle_describe_producers, Permission({TOPIC: READ})),
    65: Api(transactions.handle_describe_transactions, Permission({TRANSACTIONAL_ID: DESCRIBE, TOPIC: DESCRIBE})),
    66: Api(transactions.handle_list_transactions, Permission({TRANSACTIONAL_ID: DESCRIBE})),
    68: Api(consumer_groups.handle_heartbeat, Permission({GROUP: READ, TOPIC: DESCRIBE})),
    69: Api(consumer_groups.handle_describe, Permission({GROUP: DESCRIBE, TOPIC: DESCRIBE})),
    74: Api(
        cluster.handle_list_config_resources,
        Permission({CLUSTER: DESCRIBE_CONFIGS, TOPIC: DESCRIBE_CONFIGS, GROUP: DESCRIBE_CONFIGS}),
    ),
    75: Api(cluster.handle_describe_topic_partitions, Permission({TOPIC: DESCRIBE})),
    76: Api(share_groups.handle_heartbeat, Permission({GROUP: READ, TOPIC: DESCRIBE})),
    77: Api(share_groups.handle_describe, Permission({GROUP: DESCRIBE, TOPIC: DESCRIBE})),
    78: Api(share_fetch.handle_share_fetch, Permission({GROUP: READ, TOPIC: READ})),
    79: Api(share_fetch.handle_share_acknowledge, Permission({GROUP: READ, TOPIC: READ})),
    90: Api(share_offsets.handle_describe_offsets, Permission({GROUP: DESCRIBE, TOPIC: DESCRIBE})),
    91: Api(share_offsets.handle_alter_offsets, Permission({GROUP: READ, TOPIC: READ}, is_change=True)),
    92: Api(share_offsets.handle_delete_offsets, Permission({GROUP: DELETE, TOPIC: READ})),
}

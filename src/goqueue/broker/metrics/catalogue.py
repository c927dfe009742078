"""Every metric that there is: its name, kind, labels and meaning. What is not in this table cannot be exported, and
`docs/metrics.md` is checked against it. All have the label `node_id` too.
"""

from typing import NamedTuple

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
BY_TOPIC, BY_GROUP, BY_BOTH = ("topic",), ("consumer_group",), ("topic", "consumer_group")
BY_LANE = (*BY_BOTH, "priority")


class Metric(NamedTuple):
    name: str
    """Of a counter: with `_total`."""
    kind: str
    labels: tuple[str, ...]
    help: str
    has_partition: bool = False
    """It gets a label `partition` if the settings say so."""


METRICS = (
    # -- what is published
    Metric(
        "goqueue_broker_messages_published_total",
        COUNTER,
        BY_TOPIC,
        "Messages published and acknowledged, each once: neither a retry nor a delayed message that becomes due counts "
        "again.",
    ),
    Metric("goqueue_broker_bytes_published_total", COUNTER, BY_TOPIC, "Bytes of batches appended to topics."),
    Metric(
        "goqueue_broker_publish_latency_seconds",
        HISTOGRAM,
        BY_TOPIC,
        "Time from when a publish request is taken up to when it may be acknowledged, per request.",
    ),
    Metric(
        "goqueue_broker_messages_failed_total",
        COUNTER,
        ("topic", "error_type"),
        "Messages that were turned away, or taken and never acknowledged because their log failed.",
    ),
    Metric(
        "goqueue_broker_acknowledgements_pending", GAUGE, (), "Publishes of Kafka clients that wait to be acknowledged."
    ),
    # -- what is read
    Metric(
        "goqueue_broker_messages_consumed_total",
        COUNTER,
        BY_BOTH,
        "Messages leased to a consumer of a queue group, or sent to a stream reader (no group: a fetch names none).",
    ),
    Metric(
        "goqueue_broker_bytes_consumed_total",
        COUNTER,
        BY_BOTH,
        "Bytes of batches sent to stream readers, or read for what was leased.",
    ),
    Metric(
        "goqueue_broker_fetch_latency_seconds",
        HISTOGRAM,
        BY_TOPIC,
        "Time that a stream read took which found something, without the time that it waited for it.",
    ),
    Metric("goqueue_broker_messages_acked_total", COUNTER, BY_BOTH, "Messages acknowledged by consumers."),
    Metric("goqueue_broker_messages_nacked_total", COUNTER, BY_BOTH, "Messages given back by consumers."),
    Metric("goqueue_broker_messages_rejected_total", COUNTER, BY_BOTH, "Messages rejected by consumers for good."),
    Metric("goqueue_broker_leases_timed_out_total", COUNTER, BY_BOTH, "Messages not settled before their lease ended."),
    Metric("goqueue_broker_messages_expired_total", COUNTER, BY_BOTH, "Messages whose time to live ended unread."),
    Metric("goqueue_broker_messages_dead_lettered_total", COUNTER, BY_BOTH, "Messages written to a dead letter topic."),
    Metric("goqueue_broker_messages_redriven_total", COUNTER, BY_BOTH, "Dead letters sent back to their topic."),
    Metric(
        "goqueue_broker_ack_latency_seconds",
        HISTOGRAM,
        ("topic", "ack_type"),
        "Time until what a consumer said of its messages was durable, per request.",
    ),
    # -- schemas
    Metric("goqueue_broker_schemas", GAUGE, (), "Schemas that are registered, each once."),
    Metric("goqueue_broker_schema_subjects", GAUGE, (), "Subjects that have a version which is not deleted."),
    Metric(
        "goqueue_broker_schema_validations_total",
        COUNTER,
        ("topic", "result"),
        "Messages held against a schema: passed or failed.",
    ),
    Metric(
        "goqueue_broker_schema_validation_latency_seconds",
        HISTOGRAM,
        BY_TOPIC,
        "Time to hold a batch against its schemas.",
    ),
    # -- what waits
    Metric("goqueue_broker_delayed_messages_scheduled_total", COUNTER, BY_TOPIC, "Messages taken to wait for a time."),
    Metric("goqueue_broker_delayed_messages_fired_total", COUNTER, BY_TOPIC, "Delayed messages that became due."),
    Metric("goqueue_broker_delayed_messages_cancelled_total", COUNTER, BY_TOPIC, "Delayed messages that never will."),
    Metric("goqueue_broker_delayed_messages_pending", GAUGE, BY_TOPIC, "Messages that wait for their time."),
    Metric("goqueue_broker_lane_messages_ready", GAUGE, BY_LANE, "Messages of a queue group that could be leased now."),
    Metric("goqueue_broker_lane_messages_in_flight", GAUGE, BY_LANE, "Messages leased and not settled."),
    Metric("goqueue_broker_lane_messages_served_total", COUNTER, BY_LANE, "Messages leased, by lane."),
    Metric("goqueue_broker_fairness_keys", GAUGE, BY_BOTH, "Senders with messages ready or leased, by fair.by."),
    Metric("goqueue_broker_retries_pending", GAUGE, BY_BOTH, "Messages that wait for their next delivery."),
    # -- transactions
    Metric("goqueue_broker_transactions_open", GAUGE, (), "Transactions that are under way."),
    Metric("goqueue_broker_transactions_started_total", COUNTER, (), "Transactions begun."),
    Metric(
        "goqueue_broker_transaction_latency_seconds",
        HISTOGRAM,
        (),
        "Time from the first that belongs to a transaction to when all is written that ends it.",
    ),
    Metric("goqueue_broker_transactions_committed_total", COUNTER, (), "Transactions committed."),
    Metric("goqueue_broker_transactions_aborted_total", COUNTER, (), "Transactions aborted."),
    # -- the node
    Metric("goqueue_broker_ready", GAUGE, (), "1 if clients may be sent here: what /readyz says."),
    Metric("goqueue_broker_topic_count", GAUGE, (), "Topics."),
    Metric("goqueue_broker_topic_partitions", GAUGE, BY_TOPIC, "Partitions of a topic."),
    Metric("goqueue_broker_partitions_out_of_service", GAUGE, (), "Partitions whose log failed or cannot be opened."),
    Metric("goqueue_broker_active_connections", GAUGE, ("door",), "Connections of clients."),
    Metric("goqueue_broker_requests_total", COUNTER, ("door",), "Requests of clients."),
    Metric("goqueue_broker_requests_malformed_total", COUNTER, ("door",), "Requests that made no sense."),
    Metric("goqueue_broker_fetch_sessions", GAUGE, (), "Fetch sessions of Kafka consumers."),
    Metric("goqueue_broker_fetch_session_partitions", GAUGE, (), "Partitions that these sessions read."),
    Metric("goqueue_broker_fetch_session_evictions_total", COUNTER, (), "Fetch sessions that made room for others."),
    Metric("goqueue_broker_http_responses_total", COUNTER, ("status",), "Answers of the HTTP and SQS doors."),
    Metric("goqueue_broker_grpc_calls_open", GAUGE, ("method",), "Calls of gRPC clients that go on, streams mostly."),
    Metric("goqueue_broker_grpc_calls_total", COUNTER, ("method", "code"), "Calls of gRPC clients that have ended."),
    # -- storage
    Metric("goqueue_storage_bytes_written_total", COUNTER, BY_TOPIC, "Bytes appended to logs, the broker's own too."),
    Metric("goqueue_storage_bytes_read_total", COUNTER, BY_TOPIC, "Bytes read from logs, by clients and the broker."),
    Metric("goqueue_storage_log_end_offset", GAUGE, BY_TOPIC, "End of the log, summed over partitions.", True),
    Metric("goqueue_storage_log_start_offset", GAUGE, BY_TOPIC, "Start of the log, summed over partitions.", True),
    Metric("goqueue_storage_log_size_bytes", GAUGE, BY_TOPIC, "Bytes of the log on the disk.", True),
    Metric("goqueue_storage_segments", GAUGE, BY_TOPIC, "Segments of the log.", True),
    Metric("goqueue_storage_segments_created_total", COUNTER, BY_TOPIC, "Segments begun behind a full or old one."),
    Metric("goqueue_storage_segments_deleted_total", COUNTER, BY_TOPIC, "Segments deleted by retention."),
    Metric("goqueue_storage_compaction_runs_total", COUNTER, BY_TOPIC, "Compactions that changed a log."),
    Metric(
        "goqueue_storage_compaction_bytes_reclaimed_total",
        COUNTER,
        BY_TOPIC,
        "Bytes by which compaction made logs smaller.",
    ),
    Metric("goqueue_storage_damaged_batches_total", COUNTER, BY_TOPIC, "Batches found damaged and left out."),
    Metric(
        "goqueue_storage_missing_offsets_total",
        COUNTER,
        BY_TOPIC,
        "Offsets that a log once had and that were not there when it was opened.",
    ),
    Metric("goqueue_storage_logs_made_anew", GAUGE, (), "Logs whose files were gone at the start of the node."),
    Metric("goqueue_storage_appends_refused_total", COUNTER, (), "Appends that found no room on the disk."),
    Metric("goqueue_storage_fsync_latency_seconds", HISTOGRAM, (), "Time of a sync of one log."),
    Metric("goqueue_storage_fsync_errors_total", COUNTER, (), "Syncs that failed; each takes a log out of service."),
    Metric(
        "goqueue_storage_write_errors_total",
        COUNTER,
        ("operation",),
        "Failures of the disk that took a log out of service.",
    ),
    Metric("goqueue_storage_disk_free_bytes", GAUGE, (), "Free space of the disk."),
    Metric("goqueue_storage_disk_reserve_bytes", GAUGE, (), "Free space below which appends are refused."),
    # -- groups
    Metric("goqueue_consumer_groups", GAUGE, (), "Groups, of all kinds."),
    Metric("goqueue_consumer_group_members", GAUGE, BY_GROUP, "Members of a group."),
    Metric("goqueue_consumer_group_state", GAUGE, ("consumer_group", "state"), "1 for the state that a group is in."),
    Metric("goqueue_consumer_group_generation", GAUGE, BY_GROUP, "Generation or epoch of a group."),
    Metric(
        "goqueue_consumer_rebalances_total",
        COUNTER,
        ("consumer_group", "trigger"),
        "Generations of a group: because a member joined, left or timed out, because topics or subscriptions changed.",
    ),
    Metric("goqueue_consumer_group_joins_total", COUNTER, BY_GROUP, "Members that joined."),
    Metric(
        "goqueue_consumer_group_leaves_total",
        COUNTER,
        ("consumer_group", "reason"),
        "Members that left, or were silent for too long (timeout).",
    ),
    Metric("goqueue_consumer_polls_total", COUNTER, BY_GROUP, "Requests for messages of a queue group."),
    Metric("goqueue_consumer_polls_empty_total", COUNTER, BY_GROUP, "Those of them that got none."),
    Metric("goqueue_consumer_offset_commits_total", COUNTER, BY_BOTH, "Offsets committed, one per partition."),
    Metric(
        "goqueue_consumer_offset_commit_errors_total",
        COUNTER,
        (*BY_BOTH, "error_type"),
        "Offsets that were not committed, one per partition.",
    ),
    Metric(
        "goqueue_consumer_offset_commit_latency_seconds",
        HISTOGRAM,
        BY_GROUP,
        "Time until committed offsets were durable, per request.",
    ),
    Metric(
        "goqueue_consumer_committed_offset",
        GAUGE,
        BY_BOTH,
        "Where a group goes on, summed over the partitions that it has been in: committed, or all settled below.",
        True,
    ),
    Metric(
        "goqueue_consumer_lag_messages",
        GAUGE,
        BY_BOTH,
        "Offsets between there and the end of what may be read, summed over the same partitions.",
        True,
    ),
    # -- the cluster, as this node sees it
    Metric(
        "goqueue_cluster_access_age_seconds",
        GAUGE,
        (),
        "For how long changes of users, keys and rules have not been heard of; 0: they are, or there is no etcd.",
    ),
    *(
        Metric(f"goqueue_cluster_{name}", kind, (), words)
        for name, kind, words in (
            ("nodes", GAUGE, "Nodes that are alive, and those that should hold replicas and are not."),
            ("nodes_healthy", GAUGE, "Nodes that are alive."),
            ("session_valid", GAUGE, "1 while etcd has heard of this node of late; always, without etcd."),
            ("is_controller", GAUGE, "1 on the node that looks after what is not urgent."),
            ("partition_count", GAUGE, "Partitions of topics and of the cluster's own ledgers."),
            ("offline_partitions", GAUGE, "Partitions without a leader."),
            ("under_min_isr_partitions", GAUGE, "Partitions with too few in-sync replicas for acks=all."),
            ("under_replicated_partitions", GAUGE, "Partitions without all of their replicas in sync."),
            ("preferred_leader_imbalance", GAUGE, "Partitions that another node leads than should."),
            ("leaders", GAUGE, "Partitions that this node leads."),
            ("replicas", GAUGE, "Replicas that this node should have, those that it leads too."),
            ("standbys", GAUGE, "Ledgers that this node follows, each with a standby that could go on from it."),
            ("standbys_behind", GAUGE, "Those that could not lead at once: still being built, or 10,000 facts behind."),
            ("standby_lag_facts", GAUGE, "Facts that are committed and not applied by the standby that lacks most."),
            ("leader_elections_total", COUNTER, "Changes of leaders that this node has seen."),
            ("unclean_leader_elections_total", COUNTER, "Elections that may have lost records, likewise."),
            ("isr_shrinks_total", COUNTER, "Replicas fallen out of sync, by partition and change, likewise."),
            ("isr_expands_total", COUNTER, "Replicas come into sync, likewise."),
            ("replica_fetches_total", COUNTER, "Requests of this node to leaders, for the replicas that it copies."),
            ("replica_fetch_failures_total", COUNTER, "Those without an answer, or with one that could not be used."),
            ("replicated_bytes_total", COUNTER, "Bytes of batches that this node copied from leaders."),
        )
    ),
    Metric(
        "goqueue_cluster_replica_lag_messages",
        GAUGE,
        ("follower",),
        "Of the partitions that this node leads: messages that the replica of another node lacks, where it lacks most.",
    ),
    # -- listeners
    Metric(
        "goqueue_broker_insecure_listener",
        GAUGE,
        (),
        "1 while others can reach this node without TLS, or without being asked who they are.",
    ),
    Metric(
        "goqueue_broker_tls_certificate_remaining_seconds",
        GAUGE,
        ("listener",),
        "Until the certificate of a listener expires; negative: it has.",
    ),
    Metric(
        "goqueue_broker_quota_throttles_total",
        COUNTER,
        ("quota",),
        "Requests whose client was made to wait, or was refused, because a quota was used up.",
    ),
    Metric(
        "goqueue_broker_quota_throttle_seconds_total",
        COUNTER,
        ("quota",),
        "Seconds that clients were told to wait because a quota was used up.",
    ),
    Metric(
        "goqueue_broker_tls_handshakes_total",
        COUNTER,
        ("outcome",),
        "TLS handshakes that were done, failed or refused.",
    ),
    # -- the process
    Metric("goqueue_runtime_loop_lag_seconds", HISTOGRAM, (), "How late the event loop ran a timer."),
    Metric(
        "goqueue_runtime_facts_skipped_total",
        COUNTER,
        ("coordinator",),
        "Facts of a ledger that could not be read or applied when it was loaded, and were left out.",
    ),
    Metric(
        "goqueue_runtime_coordinators",
        GAUGE,
        ("state",),
        "Coordinators that are active, are being loaded, have failed, or are unloaded.",
    ),
    Metric(
        "goqueue_runtime_coordinators_out_of_service",
        GAUGE,
        (),
        "Ledgers that failed, and coordinators that met faults of the node again and again, with all they keep.",
    ),
    Metric(
        "goqueue_runtime_coordinator_faults_total",
        COUNTER,
        ("coordinator",),
        "Commands that could not be decided or applied because of a fault of the node, which its log has.",
    ),
    Metric(
        "goqueue_runtime_coordinator_loads_total",
        COUNTER,
        ("coordinator",),
        "How often a coordinator has read its ledger: once at the start, and again after a fault.",
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}

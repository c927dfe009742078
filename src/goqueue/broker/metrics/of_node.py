"""The node itself: its disk, its doors, its transactions, its event loop."""

from contextlib import suppress

from goqueue.broker.metrics.page import Page
from goqueue.broker.metrics.sources import Sources
from goqueue.machines.transactions.facts import State
from goqueue.telemetry.meters import Meters


def read_node(page: Page, sources: Sources) -> None:
    health, meters = sources.health, sources.meters
    failed = health.failed_partitions()
    page.add("goqueue_broker_ready", (), int(health.is_ready(failed)))
    page.add("goqueue_broker_partitions_out_of_service", (), len(failed))
    page.add("goqueue_runtime_coordinators_out_of_service", (), len(health.failed_coordinators()))
    for coordinator, skipped in health.skipped_facts_total().items():
        page.add("goqueue_runtime_facts_skipped_total", (coordinator,), skipped)
    for name, faults in health.faults().items():
        page.add("goqueue_runtime_coordinator_faults_total", (name,), faults)
    for name, loads in health.loads().items():
        page.add("goqueue_runtime_coordinator_loads_total", (name,), loads)
    for life, count in health.coordinator_lives().items():
        page.add("goqueue_runtime_coordinators", (life,), count)
    page.add("goqueue_broker_acknowledgements_pending", (), len(sources.publisher.acknowledgements))
    transactions = sources.transactions
    if transactions.is_active:
        page.add("goqueue_broker_transactions_open", (), transactions.peek().count(State.ONGOING))
    page.add("goqueue_broker_transactions_started_total", (), meters.transactions_begun)
    page.observe("goqueue_broker_transaction_latency_seconds", (), meters.transactions_s)
    page.add("goqueue_broker_transactions_committed_total", (), transactions.committed)
    page.add("goqueue_broker_transactions_aborted_total", (), transactions.aborted)
    if sources.schemas.is_active:
        page.add("goqueue_broker_schemas", (), sources.schemas.schema_count())
        page.add("goqueue_broker_schema_subjects", (), len(sources.schemas.subjects()))
    _read_doors(page, sources)
    for status, answers in sorted(meters.http_requests.items()):
        page.add("goqueue_broker_http_responses_total", (str(status),), answers)
    for key, calls in sorted(meters.grpc_calls.items()):
        page.add("goqueue_broker_grpc_calls_total", key, calls)
    if meters.loop_lag_s.count:
        page.observe("goqueue_runtime_loop_lag_seconds", (), meters.loop_lag_s)
    _read_listeners(page, meters)
    _read_disk(page, sources)


def _read_doors(page: Page, sources: Sources) -> None:
    for name, ask in sources.doors.items():
        facts = ask()
        page.add("goqueue_broker_active_connections", (name,), facts.connections)
        page.add("goqueue_broker_requests_total", (name,), facts.requests)
        page.add("goqueue_broker_requests_malformed_total", (name,), facts.malformed)
        if facts.fetch_sessions is not None:
            page.add("goqueue_broker_fetch_sessions", (), facts.fetch_sessions.sessions)
            page.add("goqueue_broker_fetch_session_partitions", (), facts.fetch_sessions.partitions)
            page.add("goqueue_broker_fetch_session_evictions_total", (), facts.fetch_sessions.evictions)
        for method, calls in sorted(facts.open_calls.items()):
            page.add("goqueue_broker_grpc_calls_open", (method,), calls)


def _read_listeners(page: Page, meters: Meters) -> None:
    page.add("goqueue_broker_insecure_listener", (), int(meters.insecure_listeners > 0))
    for listener, left_s in sorted(meters.certificates().items()):
        page.add("goqueue_broker_tls_certificate_remaining_seconds", (listener,), left_s)
    for quota, throttles in sorted(meters.throttles.items()):
        page.add("goqueue_broker_quota_throttles_total", (quota,), throttles)
        page.add("goqueue_broker_quota_throttle_seconds_total", (quota,), meters.throttled_ms[quota] / 1000)
    for outcome, handshakes in sorted(meters.handshakes.items()):
        page.add("goqueue_broker_tls_handshakes_total", (outcome,), handshakes)


def _read_disk(page: Page, sources: Sources) -> None:
    directory = sources.replicas.directory
    page.observe("goqueue_storage_fsync_latency_seconds", (), directory.committer.syncs_s)
    page.add("goqueue_storage_fsync_errors_total", (), directory.failures["sync"])
    for operation, failures in directory.failures.items():
        page.add("goqueue_storage_write_errors_total", (operation,), failures)
    page.add("goqueue_storage_logs_made_anew", (), len(sources.replicas.made_anew))
    page.add("goqueue_storage_appends_refused_total", (), directory.room.refused_appends)
    page.add("goqueue_storage_disk_reserve_bytes", (), sources.replicas.disk_reserve_bytes)
    with suppress(OSError):  # then it is not told, rather than told wrongly
        page.add("goqueue_storage_disk_free_bytes", (), directory.free_bytes())

"""The cluster as this node sees it: all nodes tell the same of partitions, each tells its own part of leaders."""

from goqueue.broker.metrics.page import Page
from goqueue.broker.metrics.sources import Sources


def read_cluster(page: Page, sources: Sources) -> None:
    watch = sources.health.cluster
    counts = watch.counts()
    page.add("goqueue_cluster_nodes", (), counts.nodes)
    page.add("goqueue_cluster_nodes_healthy", (), counts.nodes_alive)
    page.add("goqueue_cluster_session_valid", (), int(watch.session_holds()))
    page.add("goqueue_cluster_access_age_seconds", (), watch.access_age_s())
    page.add("goqueue_cluster_is_controller", (), int(watch.is_controller))
    page.add("goqueue_cluster_partition_count", (), counts.partitions)
    page.add("goqueue_cluster_offline_partitions", (), counts.offline)
    page.add("goqueue_cluster_under_min_isr_partitions", (), counts.under_min_isr)
    page.add("goqueue_cluster_under_replicated_partitions", (), counts.under_replicated)
    page.add("goqueue_cluster_preferred_leader_imbalance", (), counts.not_preferred)
    leaders, replicas = watch.held().get(watch.node_id, (0, 0))
    page.add("goqueue_cluster_leaders", (), leaders)
    page.add("goqueue_cluster_replicas", (), replicas)
    page.add("goqueue_cluster_leader_elections_total", (), watch.elections)
    page.add("goqueue_cluster_unclean_leader_elections_total", (), watch.unclean_elections)
    page.add("goqueue_cluster_isr_shrinks_total", (), watch.isr_shrinks)
    page.add("goqueue_cluster_isr_expands_total", (), watch.isr_expands)
    copying = watch.copying()
    page.add("goqueue_cluster_replica_fetches_total", (), copying.fetches)
    page.add("goqueue_cluster_replica_fetch_failures_total", (), copying.failures)
    page.add("goqueue_cluster_replicated_bytes_total", (), copying.copied_bytes)
    for follower, lag in copying.lags.items():
        page.add("goqueue_cluster_replica_lag_messages", (str(follower),), lag)
    standbys = watch.standbys()
    page.add("goqueue_cluster_standbys", (), standbys.standbys)
    page.add("goqueue_cluster_standbys_behind", (), standbys.behind)
    page.add("goqueue_cluster_standby_lag_facts", (), standbys.lag_max)

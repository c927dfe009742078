"""Operations that tell how the cluster is. A node without etcd is a cluster of one, and answers them all."""

from goqueue.wire.home import EVERYWHERE, HERE
from goqueue.wire.rest import cluster
from goqueue.wire.rest.operation import Resource

CLUSTER = Resource("Cluster")

CLUSTER_STATE = CLUSTER.add(
    "cluster_state",
    "GET /cluster",
    cluster.ClusterState,
    """What this cluster is and how it is, in numbers.

    Any node answers for all of them, from the metadata that it has.
    """,
    home=HERE,
)

CLUSTER_HEALTH = CLUSTER.add(
    "cluster_health",
    "GET /cluster/health",
    cluster.ClusterHealth,
    """Is everything led and copied as it should be?

    `warn`: all is served, but some replicas are missing. `fail`, with status 503: some partitions have no leader, or
    too few replicas to be written to. For people and monitoring; probes of a single node are /livez and /readyz.
    """,
    other_replies=((503, "Some partitions are not served, or not written to"),),
    home=HERE,
)

CLUSTER_NODES = CLUSTER.add(
    "cluster_nodes",
    "GET /cluster/nodes",
    cluster.ClusterNodes,
    "The nodes, and what they hold. Each is asked how far its standbys are.",
    home=EVERYWHERE,
)

CLUSTER_PARTITIONS = CLUSTER.add(
    "cluster_partitions",
    "GET /cluster/partitions",
    cluster.Places,
    "Where partitions are: leader, in-sync replicas, all replicas. Choose by topic and state.",
    query=cluster.PlacesQuery,
    home=HERE,
)

CLUSTER_PARTITION = CLUSTER.add(
    "cluster_partition",
    "GET /cluster/partitions/{topic}/{partition}",
    cluster.PlaceInfo,
    "One partition, with the role and the log of the node that answers.",
    path=cluster.PlacePath,
    errors=(404,),
    home=HERE,
)

ELECT_UNCLEAN = CLUSTER.add(
    "elect_unclean",
    "POST /cluster/partitions/{topic}/{partition}/elect",
    cluster.ElectedUnclean,
    """Let the copy of the node that is asked lead a partition, though it is not in sync.

    Acknowledged records may be lost; what may be gone is kept with the partition. It is done only where no replica in
    sync is alive, and never to the cluster's own ledgers. If a replica in sync can be brought back, do that instead.
    """,
    path=cluster.PlacePath,
    body=cluster.ElectUnclean,
    errors=(400, 404, 409),
    home=HERE,
)

RECOVER_CLUSTER = CLUSTER.add(
    "recover_cluster",
    "POST /cluster/recover",
    cluster.RecoveredCluster,
    """After etcd was restored from a backup: let everything go on with what the copies hold.

    A node that has seen more than the backup knows halts all: nobody leads and nobody copies, since the backup may name
    replicas that lack acknowledged records. This asks all living nodes what they hold and chooses, for each partition,
    the copy with the latest epoch and the highest offset. Without `dry_run: false` it only tells. What was done is kept
    with each partition, as after an unclean election.
    """,
    body=cluster.RecoverCluster,
    errors=(400, 409),
    home=HERE,
)

CLUSTER_EVENTS = CLUSTER.add(
    "cluster_events",
    "GET /cluster/events",
    cluster.Events,
    """What has happened to nodes, leaders and replicas since this node started, the oldest first.

    The last 1000 are kept. Ask for those behind the last `number` that you know.
    """,
    query=cluster.EventsQuery,
    home=HERE,
)

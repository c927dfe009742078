"""Commands that tell how the cluster is: any node answers for all of them."""

from goqueue.cli.table import ASKS, Asks, Command, Shown, flag, place
from goqueue.cli.values import number

STATES = ("online", "under_replicated", "under_min_isr", "offline")

CLUSTER_STATE = (
    Command(
        "cluster status",
        "show how many nodes and partitions there are, and how many are not as they should be",
        ASKS,
        examples=("goqueue cluster status",),
        is_watched=True,
        asks=Asks("cluster.CLUSTER_STATE"),
    ),
    Command(
        "cluster nodes",
        "list the nodes",
        ASKS,
        examples=("goqueue cluster nodes",),
        is_watched=True,
        asks=Asks(
            "cluster.CLUSTER_NODES",
            rows="nodes",
            columns=(
                Shown("NODE ID", "node_id", is_number=True),
                Shown("ALIVE", "is_alive"),
                Shown("CONTROLLER", "is_controller"),
                Shown("LEADERS", "leaders", is_number=True),
                Shown("REPLICAS", "replicas", is_number=True),
                Shown("STANDBYS BEHIND", "standbys_behind", is_number=True),
                Shown("RACK", "rack"),
                Shown("KAFKA", "kafka"),
                Shown("HTTP", "http"),
                Shown("VERSION", "version"),
            ),
        ),
    ),
    Command(
        "cluster partitions",
        "list partitions: who leads them, who is in sync, who should have a copy",
        ASKS,
        (
            flag("--topic", metavar="TOPIC", help="of this topic only", names_of="topics"),
            flag("--state", metavar="STATE", choices=STATES, help="only those of which this is the worst"),
            flag("-n", "--limit", metavar="N", kind=number(1), default=100, help="at most so many (default 100)"),
        ),
        examples=("goqueue cluster partitions", "goqueue cluster partitions --state offline"),
        is_watched=True,
        asks=Asks(
            "cluster.CLUSTER_PARTITIONS",
            rows="partitions",
            columns=(
                Shown("TOPIC", "topic"),
                Shown("PARTITION", "partition", is_number=True),
                Shown("STATE", "state"),
                Shown("LEADER", "leader", is_number=True),
                Shown("EPOCH", "epoch", is_number=True),
                Shown("IN SYNC", "isr"),
                Shown("REPLICAS", "replicas"),
            ),
            nothing="no such partitions",
        ),
    ),
    Command(
        "cluster events",
        "list what has happened to nodes, leaders and replicas since the node that is asked was started",
        ASKS,
        (
            flag("--after", metavar="NUMBER", kind=number(0), default=0, help="only those behind this one"),
            flag("-n", "--limit", metavar="N", kind=number(1), default=100, help="at most so many (default 100)"),
        ),
        examples=("goqueue cluster events",),
        is_watched=True,
        asks=Asks(
            "cluster.CLUSTER_EVENTS",
            rows="events",
            columns=(
                Shown("NUMBER", "number", is_number=True),
                Shown("AT", "at"),
                Shown("KIND", "kind"),
                Shown("NODE", "node_id", is_number=True),
                Shown("TOPIC", "topic"),
                Shown("PARTITION", "partition", is_number=True),
                Shown("MESSAGE", "message"),
            ),
            nothing="nothing has happened",
        ),
    ),
    Command(
        "cluster elect",
        "let the copy of the node that is asked lead a partition, though it is not in sync",
        ASKS,
        (
            place("topic", "name of the topic", names_of="topics"),
            place("partition", "number of the partition", kind=number(0)),
            flag("--unclean", is_required=True, help="yes, acknowledged messages may be lost"),
            flag("--reason", metavar="TEXT", default="", help="kept with the partition"),
        ),
        about="Only where no replica in sync is alive. --server names the node that shall lead. See docs/cluster.md.",
        examples=("goqueue cluster elect orders 0 --unclean --server http://10.0.0.3:8080",),
        asks=Asks(
            "cluster.ELECT_UNCLEAN",
            says="Node {node_id} leads {topic}/{partition}. Messages from {lost_from} on may be gone.",
        ),
    ),
    Command(
        "cluster recover",
        "after etcd was restored from a backup: go on with what the nodes hold",
        "cluster.recover",
        (
            flag("--yes", help="do it; without it, only show what would be done"),
            flag(
                "--without",
                metavar="NODE",
                kind=number(0),
                is_repeated=True,
                help="a node that is given up; may be said again",
            ),
            flag(
                "--choose",
                metavar="TOPIC/PARTITION=NODE",
                is_repeated=True,
                help="go on with the copy of this node instead; may be said again",
            ),
            flag("--reason", metavar="TEXT", default="", help="kept with the partitions"),
        ),
        about="Start all nodes first. What only a copy that is not chosen holds is lost. See docs/cluster.md.",
        examples=("goqueue cluster recover", "goqueue cluster recover --without 3 --yes"),
    ),
    Command(
        "cluster ready",
        "say whether a node may be stopped: all replicas are in sync, and no standby is behind",
        "cluster.ready",
        about="Ends with 1 if not. Between two steps of a rolling restart, wait until it ends with 0.",
        examples=("goqueue cluster ready",),
    ),
)

"""The cluster: its nodes, where partitions are, and what has happened to them."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from goqueue.wire.rest.common import Body, Count, PartitionNumber, Query, Reply, TopicName

EVENTS_MAX = 1000
PLACES_MAX = 1000
NodeId = Annotated[int, Meta(description="Of a node", examples=[1])]
State = Annotated[
    str, Meta(description="online, under_replicated, under_min_isr or offline: the worst that is true of it")
]


class ClusterState(Reply):
    cluster_id: str
    node_id: NodeId
    """Who answers. All nodes see the same, some of them a little later."""
    controller_id: NodeId
    """The node that looks after what is not urgent. Leaders are elected without it."""
    revision: Count
    """Of the metadata that this answer is made of."""
    status: Annotated[str, Meta(description="pass, warn or fail, as /cluster/health says", examples=["pass"])]
    nodes: Count
    """Those that are alive, and those that should hold replicas and are not."""
    nodes_alive: Count
    """Nodes whose sessions hold."""
    topics: Count
    """Topics that clients see."""
    partitions: Count
    """The cluster's own ledgers too."""
    offline_partitions: Count
    """Without a leader: neither read nor written."""
    under_min_isr_partitions: Count
    """With fewer replicas in sync than `min.insync.replicas`: acks=all waits."""
    under_replicated_partitions: Count
    """Without all of their replicas in sync, the two above too."""
    not_preferred_leaders: Count
    """Led by another node than the first of their replicas."""


class ClusterHealth(Reply):
    status: Annotated[str, Meta(description="pass, warn or fail", examples=["pass"])]
    reasons: list[str]
    """Empty if all is well."""


class ClusterNode(Reply):
    node_id: NodeId
    is_alive: bool
    """Whether its session holds."""
    is_controller: bool
    """Whether it looks after what is not urgent."""
    leaders: Count
    """Partitions that it leads."""
    replicas: Count
    """Copies that it has, those that it leads too."""
    rack: str | None
    """Where it stands; copies of a partition are put on many racks."""
    version: str
    """Which GoQueue it runs; empty: not known."""
    kafka: str | None
    """Addresses as other nodes and clients are told them; null: not known, or none."""
    http: str | None
    """Its HTTP door."""
    grpc: str | None
    """Its gRPC door."""
    peer: str | None
    """Where other nodes connect."""
    started_at: str | None
    """When its process was started; null: not known."""
    incarnation: Count
    """Names one life of the node: it rises with every start and every lost session."""
    standbys_behind: Count | None
    """Ledgers that it follows and could not lead at once, as it says itself; null: it did not answer."""
    standby_lag_facts: Count | None
    """Facts that are committed and not applied yet by the standby that lacks most, likewise."""


class ClusterNodes(Reply):
    nodes: list[ClusterNode]
    """All that are known, by number."""


class PlacesQuery(Query):
    topic: TopicName | None = None
    """Absent: all of them."""
    state: Literal["online", "under_replicated", "under_min_isr", "offline"] | None = None
    """Only partitions of which this is the worst that is true."""
    limit: Annotated[int, Meta(ge=1, le=PLACES_MAX)] = 100
    skip: Annotated[int, Meta(ge=0)] = 0


class PlacePath(Query):
    topic: TopicName
    partition: PartitionNumber


class LostRecords(Reply):
    at: str
    """When it was, as RFC 3339."""
    leader: NodeId
    offset: Count
    """Records from here on may be gone."""
    reason: str
    """Who chose it, and why."""


class Place(Reply):
    topic: str
    partition: int
    state: State
    leader: Annotated[int, Meta(description="-1: there is none")]
    epoch: int
    """Counts the reigns of leaders."""
    isr: list[int]
    """The replicas that hold all that was committed: any of them may lead."""
    replicas: list[int]
    """The first one is the preferred leader."""
    adding: list[int]
    """Nodes that are being given a copy."""
    removing: list[int]
    """Nodes whose copy goes when the others have one."""
    lost: list[LostRecords]
    """Unclean elections."""


class Places(Reply):
    partitions: list[Place]
    """Topics first, then the ledgers of the cluster."""


class PlaceInfo(Place):
    role: Annotated[str, Meta(description="Of the node that answers: leader, follower or none")]
    high_watermark: Count | UnsetType = UNSET
    """Where the copy of the node that answers has got to; absent: it has none in service."""
    log_end_offset: Count | UnsetType = UNSET
    """Where the next record goes."""
    log_start_offset: Count | UnsetType = UNSET
    """The oldest record that is there."""


class ElectUnclean(Body):
    unclean: bool
    """Must be true: what was acknowledged and is not in the copy of this node will be lost."""
    reason: Annotated[str, Meta(max_length=200)] = ""
    """Kept with the partition, for those who look later."""


class ElectedUnclean(Reply):
    topic: str
    partition: int
    node_id: NodeId
    """Who leads now."""
    lost_from: Count
    """Records from this offset on may be gone."""


class CopyChosen(Body):
    topic: TopicName
    partition: PartitionNumber
    node_id: NodeId


class RecoverCluster(Body):
    dry_run: bool = True
    """True: only tell what would be done."""
    without: list[int] = field(default_factory=list)
    """Nodes that are given up, though they may hold more than others."""
    choices: list[CopyChosen] = field(default_factory=list)
    """Copies to go on with instead of those that would be chosen."""
    reason: Annotated[str, Meta(max_length=200)] = ""
    """Kept with the partitions, for those who look later."""


class CopyFound(Reply):
    node_id: NodeId
    last_epoch: int
    """Of its last record; -1: it has none."""
    start_offset: Count
    """The oldest record that is there."""
    end_offset: Count
    """Where the next record would go."""
    is_doubtful: bool
    """It is known to lack something."""


class RecoveredPartition(Reply):
    topic: str
    partition: int
    node_id: NodeId
    """With whose copy it goes on: that one leads and is alone in sync; the others copy from it."""
    epoch: int
    """In which it leads."""
    end_offset: Count
    """Of that copy: what was acknowledged behind it is lost."""
    missing_nodes: list[int]
    """Replicas that did not tell what they hold."""
    copies: list[CopyFound]
    """What there is to choose from."""


class RecoveredCluster(Reply):
    is_done: bool
    """False: this is what would be done."""
    halted: str
    """Why all was halted."""
    missing_nodes: list[int]
    """Nodes that did not tell of a copy that they should have: they have to be started, or given up."""
    producer_ids_from: Count
    """From where producer ids are given."""
    left: list[str]
    """Partitions of which nobody has a copy: they stay as they are."""
    partitions: list[RecoveredPartition]
    """All others."""


class EventsQuery(Query):
    after: Annotated[int, Meta(ge=0, description="The number of the last event that is known")] = 0
    limit: Annotated[int, Meta(ge=1, le=EVENTS_MAX)] = 100


class Event(Reply):
    number: Count
    """Counted from the start of the node that answers."""
    at: str
    """When this node learned of it, as RFC 3339."""
    kind: Annotated[
        str,
        Meta(
            description="node_up, node_down, leader_changed, offline, unclean_election, isr_shrunk or isr_expanded",
            examples=["leader_changed"],
        ),
    ]
    node_id: int | None
    """The node that it is about, if it is about one."""
    topic: str | None
    """The topic that it is about, if it is about one."""
    partition: int | None
    """The partition that it is about, if it is about one."""
    message: str


class Events(Reply):
    events: list[Event]
    """The oldest first."""

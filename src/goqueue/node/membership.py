"""This node as one of its cluster: its registration, its session and what it knows of the others."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator

from goqueue.broker.cluster_watch import ClusterWatch
from goqueue.cluster.controller import ClusterController
from goqueue.cluster.deaths import Deaths
from goqueue.cluster.elections import Elections
from goqueue.cluster.etcd.keys import PREFIX
from goqueue.cluster.etcd.store import EtcdStore
from goqueue.cluster.handing_over import HandingOver
from goqueue.cluster.peers import Peers
from goqueue.cluster.recovery import Recovery
from goqueue.cluster.registration import LEDGERS, START_S_MAX, KnownEpoch, Registration, no_answer
from goqueue.cluster.replication import Replication
from goqueue.cluster.session import Session
from goqueue.cluster.steward import Steward
from goqueue.cluster.unclean import UncleanElections, UncleanSteward
from goqueue.model.errors import CannotJoin, DamagedFile
from goqueue.model.listener import Api
from goqueue.model.metadata import ClusterValue
from goqueue.model.own_version import own_version
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.placements import HostPort, NodeInfo
from goqueue.model.topics import Image
from goqueue.node.listeners import plans
from goqueue.node.metadata_check import METADATA
from goqueue.node.ports import NodePorts
from goqueue.node.settings import Settings
from goqueue.ports.dice import Dice, random_id
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.replica.replicas import Replicas, Seat
from goqueue.runtime.clock import Clock
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.directory_id import DirectoryId, load_directory_id, save_directory_id
from goqueue.storage.state import LogState
from goqueue.telemetry.logs import get_logger

SECRET_BYTES = 32
DIRECTORY_BYTES = 16
AGAIN_S = 1.0
NOTE_S = 5.0
LEAVING_S_MAX = 4.0
"""How long a node that stops waits until no leader waits for it any more."""
LOOK_S = 0.05

events = get_logger("cluster")


class OwnDirectory:
    """`cluster.registration.Directory`, on a disk."""

    def __init__(self, directory: DataDirectory, dice: Dice) -> None:
        self._directory = directory
        found = load_directory_id(directory.disk)
        if found is None and directory.has(METADATA):
            raise CannotJoin(
                "this data directory belongs to a node that is its own cluster: it has topics that the cluster does not"
                " know. Start with an empty data directory, or without the setting etcd"
            )
        self._id = found or DirectoryId(dice.randbytes(DIRECTORY_BYTES).hex(), "")

    @property
    def directory(self) -> str:
        return self._id.directory

    @property
    def cluster_id(self) -> str:
        return self._id.cluster_id

    @property
    def revision(self) -> int:
        return self._id.revision

    @property
    def recoveries(self) -> int:
        return self._id.recoveries

    def note_revision(self, revision: int, recoveries: int) -> None:
        """Of the metadata. In any thread."""
        if revision > self._id.revision or recoveries > self._id.recoveries:
            self._id = self._id._replace(revision=revision, recoveries=recoveries)
            save_directory_id(self._directory.disk, self._id)

    def belong_to(self, cluster_id: str) -> None:
        self._id = self._id._replace(cluster_id=cluster_id)
        save_directory_id(self._directory.disk, self._id)

    def epochs(self) -> Iterator[KnownEpoch]:
        for topic, number in self._directory.names():
            try:
                state = LogState.load(self._directory.disk, f"logs/{topic}/{number}")
            except (OSError, DamagedFile):
                continue  # there is none, or recovery tells
            if state.topic_id:
                yield KnownEpoch(state.topic_id, number, state.epochs.latest)


class Membership:
    """`join` before anything is opened; `leave` when nothing is left to lead."""

    def __init__(
        self, settings: Settings, ports: NodePorts, clock: Clock, directory: DataDirectory, limits: PartitionLimits
    ) -> None:
        dice = ports.dice
        self._settings = settings
        self._clock = clock
        self._etcd = etcd = ports.etcd(settings)
        self._store = EtcdStore(etcd.etcd, f"{PREFIX}{settings.cluster_name}/", clock)
        self._directory = OwnDirectory(directory, dice)
        ttl_s = max(2, round(settings.session_ms / 1000))
        self.session = Session(clock, etcd.now_s, ttl_s, etcd.renewer)
        self.controller = ClusterController(
            self._store, settings.node_id, clock, limits, settings.default_replication_factor
        )
        made = _node_info(settings, self._directory.directory, clock.now_ms(), ports)
        self.me = made._replace(boot=ports.boot_id)
        cluster_id = urlsafe_b64encode(random_id(dice)).rstrip(b"=").decode()
        self._new = ClusterValue(cluster_id, dice.randbytes(SECRET_BYTES), LEDGERS, LEDGERS)
        self.replicas: Replicas | None = None
        """Told who this node is: set before `join`."""
        self.on_joined: list[Callable[[], None]] = []
        """Called with every new life of this node, when it is known to it."""
        self.steward = Steward(
            self.controller,
            settings.node_id,
            clock,
            dice,
            LEDGER_OPTIONS,
            settings.default_replication_factor,
            settings.processes,
        )
        self.replication: Replication | None = None
        self.elections: Elections | None = None
        self.handing_over: HandingOver | None = None
        self.unclean: UncleanElections | None = None
        self.recovery: Recovery | None = None
        self.unclean_steward: UncleanSteward | None = None
        self._is_suspected: Callable[[NodeInfo], bool] = lambda node: False
        self._is_refusing: Callable[[NodeInfo], bool] = lambda node: False
        self._joining: asyncio.Task[None] | None = None
        self._has_left = False

    async def join(self) -> None:
        """CannotJoin: this node may not, or etcd does not answer."""
        await asyncio.to_thread(self._etcd.check)
        ready = asyncio.Event()
        self.controller.start(ready.set)
        try:
            async with asyncio.timeout(START_S_MAX):
                await ready.wait()
        except TimeoutError:
            raise no_answer() from None
        await self._register()
        self.session.on_lost = self._lost
        self.controller.on_change.append(self._look_if_halted)
        self.controller.on_change.append(self._look_at_own_key)

    def take_part(self, replicas: Replicas, peers: Peers) -> Replication:
        """Before copies are opened: from then on they are copied and led as the cluster says."""
        controller, clock, session = self.controller, self._clock, self.session
        lag_ms_max = self._settings.replica_lag_ms_max

        def image() -> Image:
            return controller.metadata.image

        self.replication = replication = Replication(
            replicas, peers, image, self._store, clock, session_holds=session.is_valid, lag_ms_max=lag_ms_max
        )
        self.elections = Elections(controller, image, replicas, replication, clock)
        self.handing_over = HandingOver(self._store, image, replicas, replication.isr, clock)
        self.unclean = UncleanElections(controller, image, replicas, replication, clock)
        self.unclean_steward = UncleanSteward(controller, image, replication.states, self._settings.node_id, clock)
        self.recovery = Recovery(controller, replication.states, clock)
        self.deaths = Deaths(self._store.revoke, controller.mirror.nodes.get, session.is_valid, clock)
        peers.on_refused = self.deaths.suspect
        # Who has lost the session is most likely the one that is cut off: its clients need the others' addresses.
        self._is_suspected = lambda node: session.is_valid() and peers.is_suspected(node)
        self._is_refusing = peers.is_refusing
        return replication

    def serve(self, watch: ClusterWatch) -> None:
        """What this node has is open: it takes part in the work of the cluster from now on."""
        self.session.serve()
        watch.session_holds = self.session.is_valid
        watch.access_age_s = lambda: max(self._store.age_s(), self.session.age_s())
        watch.metadata_faults = lambda: self.controller.faults
        watch.metadata_skipped = lambda: self.controller.mirror.skipped_facts
        watch.halted = lambda: self.controller.mirror.cluster.halted
        if self.unclean is not None:
            watch.lead_unclean = self.unclean.lead
        if self.recovery is not None:
            watch.recover = self.recovery.recover
        self.steward.start()
        if self.unclean_steward is not None:
            self.unclean_steward.start()
        if self.replication is not None and self.elections is not None:
            watch.copying = self.replication.copying
            watch.is_suspected, watch.is_refusing = self._is_suspected, self._is_refusing
            self.controller.on_change.append(self.replication.image_changed)
            if self.handing_over is not None:
                self.controller.on_change.append(self.handing_over.image_changed)
            self.replication.start()
            self.elections.start()

    async def keep_balanced(self) -> None:
        """For as long as the node serves."""
        if self.handing_over is not None:
            await self.handing_over.keep_balanced()

    async def keep_noting(self) -> None:
        """How much this node knows of the metadata: an etcd that knows less at its next start was restored."""
        while True:
            await asyncio.sleep(NOTE_S)
            cluster = self.controller.mirror.cluster
            if cluster.halted:
                continue  # what was seen before is what speaks against this etcd
            try:
                await asyncio.to_thread(self._directory.note_revision, self._store.revision, cluster.recoveries)
            except OSError as error:
                events.warning("revision of the metadata not noted", reason=str(error))

    async def drain(self) -> None:
        """The node stops: others lead what they can, and whoever asks here is sent to them for a while."""
        if self.handing_over is None or self.elections is None:
            return
        self.elections.stop()
        self.steward.stop()
        if self.unclean_steward is not None:
            self.unclean_steward.stop()
        if self.replication is not None:
            self.replication.leave()  # first, or heirs take this node into their ISRs again
        drain_s = self._settings.drain_ms / 1000
        within_s = max(1.0, drain_s)
        try:
            async with asyncio.timeout(within_s):
                moved = await self.handing_over.all(within_s)
        except TimeoutError:
            events.warning("not all leaderships were handed over in time")
            return
        for _ in range(round(min(LEAVING_S_MAX, drain_s) / LOOK_S)):
            if not self._is_waited_for():
                break
            await asyncio.sleep(LOOK_S)
        if moved:
            await asyncio.sleep(drain_s)

    def _is_waited_for(self) -> bool:
        """Leaders elsewhere acknowledge nothing before this node has it."""
        me, image = self.me.node_id, self.controller.metadata.image
        return any(
            me in one.isr and one.leader != me and one.leader in image.nodes
            for topics in (image.topics, image.ledgers)
            for topic in topics.values()
            for one in topic.placements
        )

    async def _register(self) -> None:
        registration = Registration(self._store, self.me, self._directory, self._new, self.session.ttl_s)
        sent_s = self.session.now_s()
        self.me = await registration.register()
        self.session.begin(self.me.lease, sent_s)
        self._sit()
        events.info("registered", node=self.me.node_id, incarnation=self.me.incarnation)

    def _sit(self) -> None:
        if self.replicas is not None:
            self.replicas.seat = Seat(self.me.node_id, self.me.incarnation)

    def _look_if_halted(self) -> None:
        if self.controller.mirror.cluster.halted and self.replicas is not None:
            self.replicas.stand_still()

    def _look_at_own_key(self) -> None:
        mirror, incarnation = self.controller.mirror, self.me.incarnation
        if not incarnation or mirror.revision < incarnation:
            return  # on a busy machine it is registered before it has been told of that
        known = mirror.nodes.get(self.me.node_id)
        if known is None or known.incarnation > incarnation:
            self._lost()

    def _lost(self) -> None:
        """Others may lead what this node has led: it leads nothing from now on, and begins another life."""
        if not self.me.incarnation or self._has_left:
            return
        events.warning("session lost: this node leads nothing until it has another", node=self.me.node_id)
        self.session.end()
        self.me = self.me._replace(incarnation=0, lease=0)
        self._sit()
        if self.replicas is not None:
            self.replicas.step_down()
        self._joining = asyncio.get_running_loop().create_task(self._join_again())

    async def _join_again(self) -> None:
        while not self._has_left:
            try:
                await self._register()
            except (CannotJoin, OSError) as error:  # OSError: of its own directory, as while no more files may be open
                events.error("not registered again", reason=str(error))
                await asyncio.sleep(AGAIN_S)
                continue
            for call in self.on_joined:
                call()
            if self.elections is not None:
                self.elections.look_soon()
            return

    async def leave(self) -> None:
        """Others need not wait until the session ends by itself. Leaving twice is fine."""
        if self._has_left:
            return
        self._has_left = True
        self.steward.stop()
        if self.unclean_steward is not None:
            self.unclean_steward.stop()
        if self.elections is not None:
            self.elections.stop()
        if self._joining is not None:
            self._joining.cancel()
        lease = self.session.lease
        self.session.end()
        if lease:
            gone = asyncio.Event()
            self._store.revoke(lease, lambda fault: gone.set())
            try:
                async with asyncio.timeout(AGAIN_S):
                    await gone.wait()
            except TimeoutError:
                events.warning("session not revoked: it ends by itself", lease=lease)
        if self.replication is not None:  # last: until they know that it is gone, others wait for its copies
            self.replication.stop()
        self._store.stop()
        self._etcd.etcd.close()


def _node_info(settings: Settings, directory: str, now_ms: int, ports: NodePorts) -> NodeInfo:
    told: dict[Api, list[tuple[str, HostPort]]] = {}
    for plan in plans(settings):
        told.setdefault(plan.listener.api, []).append((plan.listener.name, (plan.told.host, plan.told.port)))
    peer = settings.peer_advertised or settings.peer
    return NodeInfo(
        settings.node_id,
        0,
        kafka=told[Api.KAFKA][0][1],
        rack=settings.rack,
        peer=(peer.host, peer.port),
        http=told[Api.HTTP][0][1],
        grpc=told[Api.GRPC][0][1] if ports.has_grpc else None,
        directory=directory,
        boot=ports.boot_id,
        started_ms=now_ms,
        version=own_version(),
        listeners=tuple(told[Api.KAFKA]),
    )

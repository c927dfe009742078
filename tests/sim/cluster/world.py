"""Several nodes that share one partition, producers that write to it, readers, and everything that can go wrong; all on
virtual time and drawn from one seed."""

from collections.abc import Callable
from random import Random
from unittest.mock import patch

from goqueue.cluster.etcd.codec import encode_puts
from goqueue.machines.cluster.placement import first_placement
from goqueue.machines.cluster.steward import reassign
from goqueue.model.errors import GoQueueError
from goqueue.model.metadata import ClusterKey, ClusterValue, Key, PartitionKey, Put, TopicKey, TopicValue, Value
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.topics import TopicOptions
from goqueue.records.batch import check_batch
from goqueue.records.build import build_batch
from goqueue.replica import replica as replica_module
from goqueue.testing.virtual_clock import VirtualClock
from goqueue.testing.virtual_etcd import EtcdWeather, VirtualEtcd
from tests.sim.cluster.checker import PREFIX, Checker
from tests.sim.cluster.duties import DutifulLife
from tests.sim.cluster.sim_node import Life, SimNode

HEALED_MS = 30_000
TOPIC_ID = b"rules-simulation"


class Producer:
    """Sends one record after the other, each until it is acknowledged; it knows its sequence numbers."""

    def __init__(self, world: "World", number: int) -> None:
        self._world = world
        self._number = number
        self._sequence = 0
        self._try = 0
        self._send_later()

    def _send_later(self) -> None:
        self._world.clock.call_after(self._world.dice.uniform(5, 150), self._send)

    def _send(self) -> None:
        if self._world.is_over:
            return
        self._try += 1
        self._world.clock.call_after(700, lambda tried=self._try: self._give_up(tried))  # type: ignore[misc]
        life = self._world.believed_leader()
        if life is not None:
            life.guard(lambda: self._publish(life, self._try))()

    def _give_up(self, tried: int) -> None:
        if tried == self._try:
            self._send_later()

    def _publish(self, life: DutifulLife, tried: int) -> None:
        replica = life.replica
        assert replica is not None
        if replica.failure is not None or replica.lacks_copies:
            return
        value = b"%d-%d" % (self._number, self._sequence)
        data = build_batch(
            [(1000, None, value, [])], producer_id=self._number, producer_epoch=0, base_sequence=self._sequence
        )
        try:
            appended = replica.append(check_batch(memoryview(data)), life.clock.now_ms())
        except GoQueueError as error:
            if "SEQUENCE" in str(getattr(error, "code", "")):
                self._world.checker.fail(f"producer {self._number} was refused: {error}")
            return

        def reached() -> None:
            if replica.failure is None and not life.is_over:
                life.node.world.checker.look(life.node)
                self._world.checker.on_acknowledged(appended.base_offset, value)
                if tried == self._try:
                    self._try += 1
                    self._sequence += 1
                    self._send_later()

        replica.when_reached(appended.next_offset, reached)


class World:
    """`nodes`, `minimum`: as given, or by the seed."""

    life_of: type[DutifulLife] = DutifulLife

    def __init__(self, seed: int, *, nodes: int | None = None, minimum: int | None = None, replicas: int = 3) -> None:
        self.seed = seed
        self.dice = Random(f"{seed}/rules")
        self.clock = VirtualClock(0)
        count = nodes if nodes is not None else self.dice.choice((2, 3, 3, 3, 4))
        self.minimum = minimum if minimum is not None else self.dice.choice((1, 2, 2))
        self.options = TopicOptions(min_insync_replicas=self.minimum)
        self.etcd = VirtualEtcd(self.clock, self.dice)
        self.checker = Checker(self)
        self.key = PartitionKey(TOPIC_ID, 0)
        self.nodes = {node_id: SimNode(self, node_id) for node_id in range(1, count + 1)}
        self.placed: dict[bytes | None, int] = {}
        self.is_over = False
        self.is_calm = True
        self.delay_ms = (0.1, 4.0)
        self.loss = 0.0
        self._cuts: dict[tuple[int, int], None] = {}
        self._replicas = tuple(range(1, min(count, replicas) + 1))
        self.etcd.on_change.append(self.checker.on_change)

    @property
    def ms(self) -> float:
        return self.clock.monotonic_s() * 1000

    def make_life(self, node: SimNode) -> DutifulLife:
        return self.life_of(node)

    # -- the network

    def send(self, source: int, target: int, call: Callable[[DutifulLife], None]) -> None:
        if self.dice.random() < self.loss or (source, target) in self._cuts:
            return
        life = self.nodes[source].life
        slow = 20 if self.dice.random() < 0.02 else 1

        def arrive() -> None:
            there = self.nodes[target].life
            if isinstance(there, DutifulLife) and (source, target) not in self._cuts:
                there.guard(lambda: call(there))()

        if life is not None:
            self.clock.call_after(self.dice.uniform(*self.delay_ms) * slow, arrive)

    def cut(self, one: int, other: int, *, both_ways: bool = True) -> None:
        self._cuts[one, other] = None
        if both_ways:
            self._cuts[other, one] = None

    def uncut(self, one: int, other: int) -> None:
        self._cuts.pop((one, other), None)
        self._cuts.pop((other, one), None)

    def declare(self, declarer: Life, dead: NodeInfo) -> None:
        """Revoke its lease: the key alone would leave it a session that it can renew."""
        declarer.etcd.revoke(dead.lease, lambda _: None)

    def heal(self) -> None:
        self._cuts.clear()
        self.etcd.heal()
        self.etcd.go_on()

    # -- the beginning

    def put(self, *puts: tuple[Key, Value]) -> None:
        self.etcd.do_txn((), encode_puts(PREFIX, [Put(key, value) for key, value in puts]))

    def begin(self) -> None:
        self.put(
            (ClusterKey(), ClusterValue("c", b"s" * 32, 1, 1)),
            (TopicKey("t"), TopicValue(TOPIC_ID, 1, {}, replication_factor=len(self._replicas))),
            (self.key, self._first()),
        )
        for node in self.nodes.values():
            node.start()
        self.clock.advance(1500)

    def _first(self) -> Placement:
        """Nobody leads yet, in the lives that are to come."""
        alive = {node_id: NodeInfo(node_id, 0) for node_id in self._replicas}
        return first_placement(self._replicas, alive, self.minimum)

    def leaders(self) -> list[DutifulLife]:
        """Who believes to be one."""
        lives = [node.life for node in self.nodes.values()]
        return [life for life in lives if isinstance(life, DutifulLife) and life.leading is not None]

    def believed_leader(self) -> DutifulLife | None:
        leaders = self.leaders()
        return self.dice.choice(leaders) if leaders else None

    # -- reading

    def read(self) -> None:
        """Of whoever believes that it may answer without a committed write."""
        for life in self.leaders():
            if life.replica is not None and self.is_fresh(life):
                self.checker.on_read(life.replica.high_watermark)

    def is_fresh(self, life: DutifulLife) -> bool:
        assert life.leading is not None
        if life.replica is not None and not life.replica.knows_end:
            return False  # it does not know yet what is committed
        return life.is_session_valid or life.leading.view.is_fresh(life.now_ms())

    # -- the run

    def restart_later(self, node: SimNode) -> None:
        self.clock.call_after(self.dice.choice((5, 50, 500, 3000)), lambda: node.start() if node.life is None else None)

    def run(self, seconds: float = 25) -> None:
        """Through all kinds of trouble, and out of it."""
        with patch.object(replica_module, "SNAPSHOT_BYTES", 700):
            self._run(seconds)

    def _run(self, seconds: float) -> None:
        from tests.sim.cluster.trouble import Trouble

        self.begin()
        producers = [Producer(self, number) for number in range(1, 4)]
        trouble = Trouble(self)
        self._read_on()
        self.clock.advance(seconds * 1000)
        trouble.end()
        self.end_well()
        assert producers

    def _read_on(self) -> None:
        if not self.is_over:
            self.read()
            self.clock.call_after(self.dice.uniform(20, 200), self._read_on)

    def end_well(self) -> None:
        """Within 30 s of healing everything is led, in sync and serves."""
        self.heal()
        self.etcd.weather = EtcdWeather()
        self.etcd.forget_weathers()
        self.loss, self.delay_ms, self.is_calm = 0.0, (0.1, 4.0), True
        for node in self.nodes.values():
            node.sync_ms = (0.2, 5.0)
            node.disk.crash_at(None)
            if node.life is None:
                node.start()
        enough, until_ms = self.checker.acknowledged + 20, self.ms + HEALED_MS
        while not (self._is_in_sync() and self.checker.acknowledged >= enough):
            if self.ms >= until_ms:
                taken = self.checker.acknowledged - enough + 20
                self.checker.fail(f"30 s after all was well {taken} records were taken: {self.checker.placement}")
            self.clock.advance(500)
        self.is_over = True
        self.clock.advance(1000)
        while len(self._ends()) > 1:
            if self.ms >= until_ms:
                self.checker.fail(f"30 s after all was well copies end at {self._ends()}")
            self.clock.advance(500)
        placement = self.checker.placement
        assert placement is not None
        for node_id in placement.isr:
            self.checker.check_has_all(self.nodes[node_id])

    def _ends(self) -> set[int]:
        assert self.checker.placement is not None
        lives = [self.nodes[node_id].life for node_id in self.checker.placement.isr]
        return {life.replica.end_offset if life is not None and life.replica is not None else -1 for life in lives}

    def _is_in_sync(self) -> bool:
        placement = self.checker.placement
        assert placement is not None
        return set(placement.isr) == set(placement.replicas) and not placement.adding and not placement.removing

    def move(self, wanted: tuple[int, ...]) -> None:
        """As an operator would."""
        from goqueue.cluster.etcd.codec import encode_compares
        from goqueue.machines.cluster.election import Partition

        placement = self.checker.placement
        assert placement is not None
        key = f"{PREFIX}topics/t".encode()
        step = reassign(
            Partition(self.key, placement, self.minimum), TopicKey("t"), self.etcd.keys[key].mod_revision, wanted
        )
        self.etcd.do_txn(encode_compares(PREFIX, step.compares), encode_puts(PREFIX, step.puts))

"""All that goes wrong in a run: at times that the dice choose, and for as long."""

from typing import TYPE_CHECKING

from goqueue.model.metadata import LiveKey
from goqueue.model.placements import NodeInfo
from goqueue.testing.virtual_etcd import EtcdWeather
from tests.sim.cluster.sim_node import SimNode

if TYPE_CHECKING:
    from tests.sim.cluster.world import World

SHARES = (0.0, 0.0, 0.02, 0.2, 0.5)


class Trouble:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._is_over = False
        self._has_wiped = False
        dice = world.dice
        self._pause_ms = dice.choice((200, 600, 1500))
        world.etcd.weather = EtcdWeather(
            slow=dice.choice(SHARES) / 2,
            late=dice.choice(SHARES),
            lost=dice.choice(SHARES) / 5,
            unanswered=dice.choice(SHARES),
            broken=dice.choice(SHARES) / 5,
        )
        world.loss = dice.choice((0.0, 0.0, 0.01, 0.1))
        for node in world.nodes.values():
            node.rate = dice.uniform(0.9, 1.1)
        self._kinds = [
            self._crash,
            self._crash_at_any_operation,
            self._kill,
            self._cut,
            self._cut_from_etcd,
            self._stop_etcd,
            self._declare_dead,
            self._depose,
            self._depose,
            self._slow_sync,
            self._slow_watch,
            self._compact,
            self._wipe,
            self._move,
        ]
        self._next()

    def end(self) -> None:
        self._is_over = True

    def _next(self) -> None:
        world = self._world
        world.clock.call_after(world.dice.expovariate(1 / self._pause_ms), self._strike)

    def _strike(self) -> None:
        if not self._is_over:
            self._world.dice.choice(self._kinds)()
            self._next()

    def _any(self) -> SimNode:
        """The leader, more often than chance would have it."""
        world, placement = self._world, self._world.checker.placement
        if placement is not None and world.dice.random() < 0.3:
            return world.nodes[placement.leader]
        return world.dice.choice(list(world.nodes.values()))

    def _for_a_while(self, undo: object) -> None:
        if callable(undo):
            self._world.clock.call_after(self._world.dice.choice((50, 500, 2000, 6000)), undo)

    # -- what can happen

    def _crash(self) -> None:
        node = self._any()
        if node.life is not None:
            node.crash()
            self._world.restart_later(node)

    def _kill(self) -> None:
        node = self._any()
        if node.life is not None:
            node.crash(is_power_lost=False)
            self._world.restart_later(node)

    def _crash_at_any_operation(self) -> None:
        node = self._any()
        if node.life is not None:
            node.disk.crash_at(node.disk.op_count + self._world.dice.randint(0, 12))

    def _cut(self) -> None:
        world = self._world
        one, other = world.dice.sample(sorted(world.nodes), 2)
        world.cut(one, other, both_ways=world.dice.random() < 0.6)
        self._for_a_while(lambda: world.uncut(one, other))

    def _cut_from_etcd(self) -> None:
        world, host = self._world, f"n{self._any().node_id}"
        requests, answers = world.dice.choice(((True, True), (True, False), (False, True)))
        world.etcd.cut(host, requests=requests, answers=answers)
        self._for_a_while(lambda: world.etcd.heal(host))

    def _stop_etcd(self) -> None:
        etcd = self._world.etcd
        self._world.dice.choice((etcd.pause, etcd.kill))()
        self._for_a_while(etcd.go_on)

    def _declare_dead(self) -> None:
        """By a node that has a session, and whatever the truth."""
        declarer, other = self._any().life, self._any()
        if declarer is not None and declarer.is_session_valid:
            event = declarer.known.get(LiveKey(other.node_id))
            if event is not None and isinstance(event.value, NodeInfo):
                self._world.declare(declarer, event.value)

    def _depose(self) -> None:
        """A leader that hears nothing from etcd, or only late, is declared dead: it does not know."""
        world, placement = self._world, self._world.checker.placement
        assert placement is not None
        host = f"n{placement.leader}"
        weather = world.etcd.weather_of(host)
        if world.dice.random() < 0.5:
            weather.watch_ms = (3000.0, 9000.0)
            weather.slow, weather.slow_ms = 0.5, (500.0, 1800.0)
        else:
            world.etcd.cut(host, requests=world.dice.random() < 0.5)
        others = [node.life for node in world.nodes.values() if node.node_id != placement.leader]
        declarer = next((life for life in others if life is not None and life.is_session_valid), None)
        event = declarer.known.get(LiveKey(placement.leader)) if declarer is not None else None
        if declarer is not None and event is not None and isinstance(event.value, NodeInfo):
            world.declare(declarer, event.value)

        def undo() -> None:
            world.etcd.heal(host)
            weather.watch_ms = (0.0, 0.0)
            weather.slow = world.etcd.weather.slow

        self._for_a_while(undo)

    def _slow_sync(self) -> None:
        node = self._any()
        node.sync_ms = self._world.dice.choice(((50.0, 300.0), (500.0, 2500.0)))

        def undo() -> None:
            node.sync_ms = (0.2, 5.0)

        self._for_a_while(undo)

    def _slow_watch(self) -> None:
        weather = self._world.etcd.weather_of(f"n{self._any().node_id}")
        weather.watch_ms = self._world.dice.choice(((100.0, 500.0), (1000.0, 9000.0)))

        def undo() -> None:
            weather.watch_ms = (0.0, 0.0)

        self._for_a_while(undo)

    def _compact(self) -> None:
        self._world.etcd.compact()

    def _wipe(self) -> None:
        """A disk at a time, and only where the floor keeps another copy of everything."""
        node, placement = self._any(), self._world.checker.placement
        is_safe = placement is not None and self._world.minimum > 1 and len(self._world.nodes) > 2
        if is_safe and not self._has_wiped:
            self._has_wiped = True
            node.wipe()
            self._world.restart_later(node)

    def _move(self) -> None:
        world = self._world
        placement = world.checker.placement
        if len(world.nodes) > 3 and placement is not None:
            wanted = world.dice.sample(sorted(world.nodes), 3)
            world.move(tuple(wanted))

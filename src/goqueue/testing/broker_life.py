"""The life of a broker inside a test: it starts, is asked, lives through the time that a test lets pass, crashes and
starts again.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from goqueue.broker.broker import Broker
from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.door import HttpDoor
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.kafka.limits import KafkaLimits
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.model.errors import GoQueueError
from goqueue.model.moments import parse_duration_ms, parse_moment_ms
from goqueue.node.metrics import watch_doors
from goqueue.runtime.clock import Clock, LoopClock
from goqueue.testing.clocks import OneLife, PumpedClock
from goqueue.testing.drive import PowerLost
from goqueue.testing.faults import Faults
from goqueue.testing.memory_disk import MemoryDisk
from goqueue.testing.memory_node import MemoryNode, PromptCommitter
from goqueue.testing.message import Duration

if TYPE_CHECKING:
    from goqueue.doors.grpc.door import GrpcDoor


START = "2026-01-01T00:00:00Z"
LOCALHOST = "127.0.0.1"
KEEP_UP_MS = 30_000
"""Between two rounds of retention and compaction, as in a node with default settings."""
QUIET_TURNS = 10
"""Of the event loop without anything happening here: then all tasks of a test are taken to be waiting."""
TURNS_MAX = 1000
"""A test with a task that never rests must still be able to let time pass."""


DRAIN_S = 0.2
"""Calls of gRPC clients may wait for a clock that no test moves any more."""


class BrokerDown(GoQueueError):
    """The broker crashed or was closed while somebody waited for its answer, or is not running at all."""


class Running:
    """What exists from one start to the stop or crash behind it."""

    def __init__(self, disk: MemoryDisk, clock: Clock, sync_ms: int, on_fault: Callable[[Exception], None]) -> None:
        self.life = OneLife(clock, on_fault)
        self.committer = PromptCommitter(self.life)
        self.committer.sync_ms = sync_ms
        self.node = MemoryNode(disk, self.life, self.committer)
        try:
            self.node.assemble()
        except BaseException:
            self.life.is_over = True
            with suppress(PowerLost):
                self.node.close()  # or the disk would stay locked
            raise
        self.doors: dict[str, KafkaDoor | HttpDoor | GrpcDoor] = {}
        self.sqs: SqsApp | None = None


class BrokerLife:
    """Starts when it is first asked for something, or when it is opened (which a Kafka door needs)."""

    def __init__(
        self, clock: Literal["virtual", "real"], doors: Sequence[str], now: str | int | None, disk: MemoryDisk | None
    ) -> None:
        if clock not in {"virtual", "real"}:
            raise ValueError(f"clock is {clock!r}, but must be 'virtual' or 'real'")
        if clock == "real" and now is not None:
            raise ValueError("only the virtual clock can be set")
        self._virtual = None if clock == "real" else PumpedClock(parse_moment_ms(START if now is None else now, 0))
        self._ports = dict.fromkeys(doors, 0)
        self._disk = disk or MemoryDisk()
        self._sync_ms = 0
        self._running: Running | None = None
        self._down: BaseException | None = None
        """Why it is not running, once it was."""
        self._waiting: set[asyncio.Future[object]] = set()
        self._answers = 0
        self._advances = False
        self._kept_up_ms = 0

    # -- what it is made of

    @property
    def broker(self) -> Broker:
        """The real one, for all that has no shorter way here; see `ask`."""
        return self._live().node.broker

    @property
    def disk(self) -> MemoryDisk:
        """As it is now: a loss of power leaves another."""
        return self._disk

    @property
    def faults(self) -> Faults:
        """What shall go wrong with the disk."""
        return self._disk.faults

    @property
    def kafka(self) -> str:
        """Where Kafka clients connect; the same after a restart."""
        return self._address("kafka")

    @property
    def http(self) -> str:
        """The URL that HTTP and SQS clients use; the same after a restart."""
        return f"http://{self._address('http')}"

    @property
    def grpc(self) -> str:
        """Where gRPC clients connect; the same after a restart."""
        return self._address("grpc")

    def _address(self, door: str) -> str:
        if door not in self._live().doors:
            raise BrokerDown(f"there is no such door: ask for one with broker({door}=True)")
        return f"{LOCALHOST}:{self._ports[door]}"

    @property
    def now_ms(self) -> int:
        return self._live().life.now_ms()

    def slow_disk(self, sync: Duration) -> None:
        """Let every sync take so long, from now on. What was not synced is lost with the power."""
        self._sync_ms = parse_duration_ms(sync)
        self._live().committer.sync_ms = self._sync_ms

    # -- asking

    async def ask(self, submit: Callable[[Callable[[Any], None]], object]) -> Any:
        """Wait for what a call of the broker gives to its callback, and raise it if it is a GoQueueError. What the call
        returns is cancelled with the wait, if it can be.

        `await b.ask(lambda done: b.broker.queues.set_options("workers", {"lease.ms": "500"}, done))`
        """
        running = self._live()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(reply: Any) -> None:
            self._answers += 1
            if not future.done():
                future.set_result(reply)

        parked: object = None
        self._waiting.add(future)
        running.life.calls += 1
        try:
            parked = submit(answer)
            if future.done():
                await asyncio.sleep(0)  # a task that asks again and again must let others have their turn
            reply = await future
        except PowerLost as lost:
            self._end(running, lost)
            raise
        except asyncio.CancelledError:
            if hasattr(parked, "cancel"):
                parked.cancel()
            raise
        finally:
            self._waiting.discard(future)
        if isinstance(reply, GoQueueError):
            raise reply
        return reply

    def _live(self) -> Running:
        if self._down is not None:
            raise BrokerDown(f"the broker is not running: {self._down}") from self._down
        if self._running is None:
            if self._ports:
                raise BrokerDown("a broker with a door must be opened: async with broker(kafka=True) as b")
            self._start()
        assert self._running is not None
        return self._running

    def _start(self) -> None:
        clock = LoopClock() if self._virtual is None else self._virtual
        running = Running(self._disk, clock, self._sync_ms, lambda fault: self._end(running, fault))
        self._running, self._down = running, None
        self._kept_up_ms = running.life.now_ms()
        if self._virtual is None:
            self._keep_up_later(running)

    def _keep_up_later(self, running: Running) -> None:
        def keep_up() -> None:
            running.node.keep_up()
            self._keep_up_later(running)

        running.life.call_after(KEEP_UP_MS, keep_up)

    def _end(self, running: Running, why: BaseException) -> None:
        """Whoever waits for an answer will not get one."""
        if self._running is not running:
            return
        running.life.is_over = True
        self._running, self._down = None, why
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done() and not future.get_loop().is_closed():
                future.set_exception(why)

    # -- starting and stopping

    async def open(self) -> None:
        """Start. Opening what is open is fine."""
        if self._running is None:
            self._start()
            await self._open_doors()

    async def _open_doors(self) -> None:
        running = self._running
        if running is None:
            return
        for name, port in self._ports.items():
            broker = running.node.broker
            door: KafkaDoor | HttpDoor | GrpcDoor
            if name == "kafka":
                # Requests gather for no time: a virtual clock would let nobody read them any more.
                door = KafkaDoor(Gate(broker), KafkaLimits(gather_ms=0))
            elif name == "grpc":
                door = _grpc_door(broker)
            else:
                running.sqs = SqsApp(Gate(broker))
                door = HttpDoor(HttpApp(Gate(broker), by_header={TARGET: running.sqs}))
            running.doors[name] = door
            watch_doors(broker, door)
            _, self._ports[name] = await door.open(LOCALHOST, port)

    async def close(self) -> None:
        """Stop in good order. Closing twice is fine."""
        running = self._running
        if running is not None and running.doors:
            for door in running.doors.values():
                door.stop_reading()
            if running.sqs is not None:
                running.sqs.stop()
            await self._settle_down()
            for door in running.doors.values():
                await door.close()
        self.close_now()

    def close_now(self) -> None:
        """What `close` does, where no event loop runs any more."""
        running = self._running
        if running is None:
            self._down = self._down or BrokerDown("it was closed")
            return
        try:
            running.node.close()
            if self._virtual is not None:
                self._virtual.run()  # those who wait for an acknowledgement get it: all is synced
        except PowerLost as lost:
            self._end(running, lost)
        else:
            self._end(running, BrokerDown("it was closed"))

    async def crash(self, kind: Literal["kill", "power"] = "kill", *, seed: int | None = None) -> None:
        """`kill`: the process is gone, all that it wrote is still there. `power`: what was not synced is lost; with a
        seed only some of it, and the last write may be torn.
        """
        if kind not in {"kill", "power"}:
            raise ValueError(f"a crash is a 'kill' or a loss of 'power', not {kind!r}")
        running = self._running
        if running is not None:
            running.life.is_over = True
            for door in running.doors.values():
                await door.close()
            self._end(running, BrokerDown("it crashed"))
        if kind == "kill":
            self._disk.survive_as_kill()
        elif seed is None:
            self._disk = self._disk.crashed(lost=self._disk.unsynced())
        else:
            self._disk = self._disk.crash(Random(seed))  # noqa: S311  dice that fall the same way twice

    async def restart(self) -> None:
        """Start again on the same disk, after a stop in good order if it still runs."""
        await self.close()
        self._start()
        await self._open_doors()

    # -- time

    async def set_clock_forward(self, duration: Duration) -> None:
        """Set the wall clock, as a person, NTP or a suspended machine does: what is due by it is due, but no time has
        passed for leases, sessions and time-outs.
        """
        await self._set_clock(parse_duration_ms(duration))

    async def set_clock_back(self, duration: Duration) -> None:
        await self._set_clock(-parse_duration_ms(duration))

    async def _set_clock(self, by_ms: int) -> None:
        if self._virtual is None:
            raise GoQueueError("only the virtual clock can be set: broker(clock='virtual')")
        self._live()
        self._virtual.step(by_ms)
        await self._settle_down()

    async def advance(self, duration: Duration) -> None:
        """Let time pass, and all happen that is due meanwhile, each at its time. Tasks of the test that get an answer
        work on before time goes on, as long as they wait for nothing but this broker.
        """
        clock, running = self._virtual, self._live()
        if clock is None:
            raise GoQueueError("only the virtual clock can be advanced: broker(clock='virtual')")
        if self._advances:
            raise GoQueueError("time is being advanced already")
        left_ms: float = parse_duration_ms(duration)
        self._advances = True
        try:
            await self._settle_down()
            while (step_ms := clock.next_after_ms) is not None and step_ms <= left_ms:
                before = self._news()
                clock.advance(step_ms)
                left_ms -= step_ms
                if self._news() != before:
                    await self._settle_down()
            clock.advance(left_ms)
            if clock.now_ms() - self._kept_up_ms >= KEEP_UP_MS and not running.life.is_over:
                self._kept_up_ms = clock.now_ms()
                running.node.keep_up()
            await self._settle_down()
        finally:
            self._advances = False
        self._live()

    def _news(self) -> tuple[int, int]:
        """Changes when somebody may want to act: a call was answered, or there is something new to fetch. Fetches in
        vain do not count, or a consumer would make two stops in every second of a year.
        """
        return self._answers, self._disk.op_count if self._ports else 0

    async def _settle_down(self) -> None:
        """Turns of the event loop until nothing happens here any more."""
        quiet_turns = 0
        for _ in range(TURNS_MAX):
            seen = self._happened()
            await asyncio.sleep(0)
            quiet_turns = quiet_turns + 1 if self._happened() == seen else 0
            if quiet_turns == QUIET_TURNS:
                return

    def _happened(self) -> tuple[object, int]:
        running = self._running
        return running, 0 if running is None else running.life.calls


def _grpc_door(broker: Broker) -> "GrpcDoor":
    from goqueue.doors.grpc.door import GrpcDoor, GrpcLimits  # most tests do without, and it takes time

    return GrpcDoor(Gate(broker), GrpcLimits(drain_s_max=DRAIN_S))

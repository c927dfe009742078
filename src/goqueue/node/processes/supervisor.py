"""The supervisor of several processes: it keeps the store that they share, starts them, starts one again that has
ended, and stops them together. It serves no client itself.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import uvloop

from goqueue.model.own_version import own_version
from goqueue.node.bootstrap import FirstKey
from goqueue.node.ports import RealPorts
from goqueue.node.process import (
    StartFailed,
    failing_start,
    how_to_come_in,
    keep_warning,
    may_be_opened,
    say_ready,
    serve,
    stop_on_signals,
    stop_s_max,
)
from goqueue.node.processes.addresses import Addresses
from goqueue.node.processes.child import Child
from goqueue.node.processes.member import MemberStart
from goqueue.node.processes.member_names import members_of
from goqueue.node.processes.store_directory import StoreDirectory, StoreGone
from goqueue.node.settings import Settings
from goqueue.node.systemd import Systemd
from goqueue.node.values import Switch
from goqueue.storage.compaction_process import compact_in_process
from goqueue.storage.real_disk import RealDisk
from goqueue.telemetry.logs import LogFormat, configure_logs, get_logger, resolve_format

RESTART_S_MIN, RESTART_S_MAX = 0.1, 30.0
STEADY_S = 60.0
"""One that has run for so long is started again at once."""
LATE_S = 10.0
"""A member that should have ended by itself is ended so much later. A crash is safe at any moment."""

events = get_logger("supervisor")


def processes_of(settings: Settings) -> int:
    """How many; `auto`: a core each, and never fewer than the data directory has members."""
    if settings.processes:
        return settings.processes
    members = members_of(RealDisk(settings.data_dir)) if settings.data_dir.is_dir() else []
    return max(len(os.sched_getaffinity(0)), *members, 1)


def serve_many(settings: Settings) -> None:
    """Run as many processes as it says until SIGINT or SIGTERM; StartFailed if one cannot start."""
    processes = processes_of(settings)
    if processes == 1:  # a machine with one core
        serve(replace(settings, processes=1))
        return
    settings = replace(settings, processes=processes)
    configure_logs(settings.log_level, settings.log_format)
    uvloop.run(_supervise(settings))


async def _supervise(settings: Settings) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    open_to_others = await may_be_opened(settings)
    events.info("opening data directory", data_dir=str(settings.data_dir), processes=settings.processes)
    addresses = Addresses()
    compact = partial(compact_in_process, settings.data_dir)
    directory = StoreDirectory(settings, RealDisk(settings.data_dir), RealPorts(), compact)
    members: list[Child] = []
    try:
        with failing_start(settings.data_dir):
            each_settings = await addresses.members(settings)
            store = await directory.open(settings.processes)
        members += [Child(MemberStart(each, settings.data_dir.resolve()), store) for each in each_settings]
        systemd = Systemd.taken()
        supervisor = Supervisor(settings, members, systemd.ready)
        async with asyncio.TaskGroup() as tasks:
            work = (directory.keep_up(), keep_warning(open_to_others), systemd.run(stop))
            upkeep = [tasks.create_task(each) for each in work]
            try:
                await supervisor.run(stop)
            finally:
                for task in upkeep:
                    task.cancel()
    except* (StartFailed, StoreGone) as group:
        raise _as_start_failed(group.exceptions[0]) from None
    finally:
        if members and settings.ready_file:  # else it may be that of another process
            with suppress(OSError):
                settings.ready_file.unlink()
        await directory.close()
        addresses.close()
    events.info("stopped", data_dir=str(settings.data_dir))


def _as_start_failed(error: Exception) -> StartFailed:
    if isinstance(error, StartFailed):
        return error
    return StartFailed(f"all processes have ended: {error}; start it again")


class Supervisor:
    def __init__(
        self, settings: Settings, members: Sequence[Child], on_ready: Callable[[], object] = lambda: None
    ) -> None:
        self._settings = settings
        self._members = members
        self._on_ready = on_ready
        self._stop = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`, and until all members have ended. StartFailed: one of them could not start."""
        self._stop = stop
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._look_at_certificates)
        try:
            if await self._start():
                self._announce()
                self._on_ready()
                async with asyncio.TaskGroup() as tasks:
                    looking = [tasks.create_task(self._look_after(each)) for each in self._members]
                    await stop.wait()
                    for task in looking:
                        task.cancel()
        finally:
            for each in self._members:
                each.stop() if stop.is_set() else each.kill()
            await self._ended()

    async def _ended(self) -> None:
        """One that does not end is ended."""
        running = [asyncio.ensure_future(each.wait()) for each in self._members if each.is_running]
        if not running:
            return
        _, late = await asyncio.wait(running, timeout=stop_s_max(self._settings) + LATE_S)
        if late:
            for each in self._members:
                if each.is_running:
                    events.error("member does not stop; it is ended", member=each.number, pid=each.pid)
                    each.kill()
            await asyncio.wait(late)

    async def _start(self) -> bool:
        """False: stopped meanwhile."""
        for each in self._members:
            try:
                await each.start()
            except OSError as error:
                raise StartFailed(f"member {each.number} could not be started: {error.strerror}") from error
        stopping = asyncio.ensure_future(self._stop.wait())
        starting = {asyncio.ensure_future(each.wait_ready()): each for each in self._members}
        try:
            while starting and not self._stop.is_set():
                done, _ = await asyncio.wait({*starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
                for task in [each for each in starting if each in done]:
                    member = starting.pop(task)
                    if why := task.result():
                        if self._stop.is_set():
                            return False
                        raise StartFailed(f"member {member.number} did not start: {why}")
        finally:
            stopping.cancel()
            for task in starting:
                task.cancel()
        return not self._stop.is_set()

    async def _look_after(self, member: Child) -> None:
        """Start it again whenever it has ended: at once, and later each time if it does not stay."""
        loop, pause_s = asyncio.get_running_loop(), RESTART_S_MIN
        while True:
            since_s = loop.time()
            why = await self._until_ended(member)
            pause_s = RESTART_S_MIN if loop.time() - since_s >= STEADY_S else min(pause_s * 2, RESTART_S_MAX)
            events.error("member has ended; it is started again", member=member.number, reason=why)
            await asyncio.sleep(pause_s)
            try:
                await member.start()
            except OSError as error:  # no memory or no place for a process: the others go on
                events.error("member could not be started", member=member.number, reason=str(error))
                continue
            if why := await member.wait_ready():
                events.error("member did not start", member=member.number, reason=why)
                continue
            events.info("member is back", member=member.number, pid=member.pid)
            self._tell_ready()

    async def _until_ended(self, member: Child) -> str:
        """How it ended. One that is stuck is ended: it serves nobody, and with one copy nobody else has what it has."""
        async with asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(self._end_if_stuck(member))
            why = await member.wait()
            looking.cancel()
        return why

    async def _end_if_stuck(self, member: Child) -> None:
        await member.wait_stuck()
        events.error("member is stuck; it is ended", member=member.number, pid=member.pid)
        await member.end_stuck()

    def _look_at_certificates(self) -> None:
        for each in self._members:
            each.look_at_certificates()

    # -- words at the start

    def _facts(self) -> dict[str, Any]:
        first = self._members[0].facts
        shared: dict[str, Any] = {name: first[name] for name in ("kafka", "http", "grpc", "metrics") if name in first}
        members = [
            {
                "id": each.number,
                "pid": each.pid,
                "kafka": each.facts.get("kafka"),
                "data_dir": str(each.start_with.settings.data_dir.resolve()),
            }
            for each in self._members
        ]
        return {**shared, "members": members}

    def _tell_ready(self) -> None:
        try:
            say_ready(self._settings, self._facts())
        except StartFailed as error:  # of a file that could be written before
            events.error("ready file not written", reason=str(error))

    def _announce(self) -> None:
        say_ready(self._settings, self._facts())
        facts, data_dir = self._facts(), str(self._settings.data_dir.resolve())
        events.info("ready", **{"data_dir": data_dir, **facts})
        if resolve_format(self._settings.log_format, sys.stderr) is LogFormat.CONSOLE:
            sys.stderr.write(self._welcome(facts, data_dir))

    def _welcome(self, facts: dict[str, Any], data_dir: str) -> str:
        first_key = next(
            (FirstKey(*each.facts["first_key"]) for each in self._members if each.facts["first_key"]), None
        )
        dev = "  --dev: everybody on this machine may do everything; nobody else can connect.\n"
        kafka = "".join(
            f"  kafka {each['kafka']}  member {each['id']}, pid {each['pid']}\n" for each in facts["members"]
        )
        return (
            f"GoQueue {own_version()} is running in {len(self._members)} processes.\n"
            f"  data  {data_dir}: {self._members[0].facts['topics']} topics\n"
            f"{dev if self._settings.dev is Switch.ON else ''}{kafka}"
            f"  http  http://{facts['http']}\n  grpc  {facts.get('grpc')}\n"
            f"{how_to_come_in(self._settings, facts['http'], first_key)}"
            f"  stop  Ctrl+C, or kill {os.getpid()}\n"
        )

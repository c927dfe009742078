"""The processes of a cluster on one machine: started, waited for, looked after and ended together."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from goqueue.cli.dev.plan import NodePlan, Plan, etcd_command, node_command
from goqueue.cli.exits import CommandFailed
from goqueue.client import Admin, ClientError
from goqueue.wire.rest.operations.cluster import CLUSTER_STATE

START_S_MAX = 120.0
STOP_S_MAX = 30.0
LED_S_MAX = 30.0
"""How long partitions of an earlier run may stay without a leader before the cluster is called ready all the same."""
LOOK_S = 0.05
RESTART_S = 1.0
SAID_LINES = 15


class Child:
    """One process, in as many lives as it gets."""

    def __init__(self, name: str, command: list[str], log_file: Path) -> None:
        self.name = name
        self.log_file = log_file
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        with self.log_file.open("ab") as log:
            # In a session of its own: Ctrl+C is for whoever started it, who then ends all in order.
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    async def wait(self) -> str:
        """How it ended."""
        assert self._process is not None
        code = await self._process.wait()
        return f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"

    async def stop(self) -> None:
        if not self.is_running:
            return
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def last_words(self) -> str:
        lines = self.log_file.read_text("utf-8", "replace").splitlines()[-SAID_LINES:]
        return "\n".join(f"    {line}" for line in lines)


class Supervisor:
    def __init__(self, plan: Plan, etcd_program: Path, say: Callable[[str], None], *, restarts: bool) -> None:
        self._plan = plan
        self._say = say
        self._restarts = restarts
        self._etcd = Child("etcd", etcd_command(plan, etcd_program), plan.etcd_log_file)
        self._nodes = {node.node_id: Child(node.name, node_command(plan, node), node.log_file) for node in plan.nodes}

    async def start(self) -> None:
        """CommandFailed: one of them did not come up."""
        try:
            for node in self._plan.nodes:
                node.directory.mkdir(parents=True, exist_ok=True)
                node.ready_file.unlink(missing_ok=True)
        except OSError as error:
            raise CommandFailed(f"cannot use {error.filename}: {error.strerror}") from None
        await self._etcd.start()
        # Nodes wait for etcd by themselves, and for each other.
        for child in self._nodes.values():
            await child.start()
        async with asyncio.TaskGroup() as tasks:
            for node in self._plan.nodes:
                tasks.create_task(self._wait_ready(node))
        try:
            async with asyncio.timeout(LED_S_MAX), asyncio.TaskGroup() as tasks:
                for node in self._plan.nodes:
                    tasks.create_task(_wait_led(node))
        except TimeoutError:
            self._say("some partitions have no leader: see goqueue cluster partitions --state offline")

    async def run(self, stop: asyncio.Event, on_change: Callable[[], None]) -> None:
        """Until `stop`. `on_change`: a process was started again."""
        async with asyncio.TaskGroup() as tasks:
            watching = [
                tasks.create_task(self._look_after(child, on_change)) for child in (self._etcd, *self._nodes.values())
            ]
            await stop.wait()
            for task in watching:
                task.cancel()

    async def stop(self) -> None:
        """Nodes first: they hand on what they lead, for which they need etcd."""
        async with asyncio.TaskGroup() as tasks:
            for child in self._nodes.values():
                tasks.create_task(child.stop())
        await self._etcd.stop()

    def facts(self) -> dict[str, Any]:
        """For a program that waits for the cluster."""
        return {
            "nodes": [
                {
                    "id": node.node_id,
                    "pid": self._nodes[node.node_id].pid,
                    "kafka": node.kafka,
                    "http": node.http,
                    "grpc": node.grpc,
                    "peer": node.peer,
                    "data_dir": str(node.directory.resolve()),
                }
                for node in self._plan.nodes
            ],
            "etcd": [self._plan.etcd],
            "etcd_pids": [self._etcd.pid],
            "pid": os.getpid(),
        }

    async def _wait_ready(self, node: NodePlan) -> None:
        child = self._nodes[node.node_id]
        try:
            async with asyncio.timeout(START_S_MAX):
                while not node.ready_file.exists():
                    for each in (self._etcd, child):
                        if not each.is_running:
                            why = await each.wait()
                            raise CommandFailed(
                                f"{each.name} did not start ({why}). The end of {each.log_file}:\n{each.last_words()}"
                            )
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise CommandFailed(
                f"{node.name} is not ready after {START_S_MAX:g} s. The end of {node.log_file}:\n{child.last_words()}"
            ) from None

    async def _look_after(self, child: Child, on_change: Callable[[], None]) -> None:
        while True:
            why = await child.wait()
            if not self._restarts:
                self._say(f"{child.name} has ended: {why}; see {child.log_file}")
                return
            self._say(f"{child.name} has ended: {why}; it is started again")
            await asyncio.sleep(RESTART_S)
            await child.start()
            on_change()


async def _wait_led(node: NodePlan) -> None:
    """Partitions of an earlier run have leaders when the nodes that held them are back: a moment after the nodes are
    ready. Whoever waits for the cluster expects to use its topics."""
    try:
        async with Admin(f"http://{node.http}") as admin:
            while (await admin.call(CLUSTER_STATE)).offline_partitions:  # noqa: ASYNC110  of another process
                await asyncio.sleep(LOOK_S)
    except ClientError as error:
        raise CommandFailed(f"{node.name} does not answer: {error}") from None


def write_facts(path: Path, facts: dict[str, Any]) -> None:
    """Whoever waits for the file sees all of it or nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(facts) + "\n", "utf-8")
    draft.replace(path)

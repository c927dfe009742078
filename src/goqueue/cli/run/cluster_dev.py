"""`goqueue cluster dev`: three nodes and an etcd on this machine, until Ctrl+C."""

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

from goqueue.cli.call import Call
from goqueue.cli.dev.plan import Plan, make_plan
from goqueue.cli.dev.supervisor import Supervisor, write_facts
from goqueue.cli.exits import EXIT_USAGE, CommandFailed


async def dev(call: Call) -> int:
    from goqueue.node.local_etcd import NoEtcd, find_etcd

    given = call.given
    plan = make_plan(Path(given.data_dir), given.nodes, given.host)
    try:
        program = find_etcd(None if given.etcd_binary is None else Path(given.etcd_binary))
    except NoEtcd as error:
        raise CommandFailed(str(error), EXIT_USAGE) from None
    ready_file = None if given.ready_file is None else Path(given.ready_file)
    supervisor = Supervisor(plan, program, _say, restarts=given.restart)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def tell() -> None:
        if ready_file is not None:
            write_facts(ready_file, supervisor.facts())

    try:
        _say(f"starting etcd ({program}) and {given.nodes} nodes; their data and logs are in {plan.data_dir.resolve()}")
        if await _started(supervisor, stop):
            tell()
            _say(_welcome(plan, supervisor, restarts=given.restart))
            await supervisor.run(stop, tell)
        _say("stopping all; this takes a few seconds")
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
        await supervisor.stop()
    return 0


async def _started(supervisor: Supervisor, stop: asyncio.Event) -> bool:
    """False: stopped meanwhile."""
    starting = asyncio.ensure_future(supervisor.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        return False
    try:
        starting.result()
    except ExceptionGroup as group:
        failed, others = group.split(CommandFailed)
        if failed is None or others is not None:
            raise
        raise failed.exceptions[0] from None
    return True


def _welcome(plan: Plan, supervisor: Supervisor, *, restarts: bool) -> str:
    facts = supervisor.facts()
    nodes = "\n".join(
        f"  node {node['id']}  kafka {node['kafka']}  http http://{node['http']}  grpc {node['grpc']}"
        f"  pid {node['pid']}"
        for node in facts["nodes"]
    )
    after = "it is started again" if restarts else "the others go on without it"
    first = facts["nodes"][0]
    return (
        f"A GoQueue cluster of {len(plan.nodes)} nodes is running.\n{nodes}\n"
        f"  etcd    {plan.etcd}  pid {facts['etcd_pids'][0]}\n"
        f"  data    {plan.data_dir.resolve()}\n"
        f"  try     goqueue --server http://{first['http']} topic create orders\n"
        f"  break   kill -9 {first['pid']}: {after}\n"
        f"  stop    Ctrl+C"
    )


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)

"""A node as a process of its own: signals, limits, the ready file and the words at the start."""

import asyncio
import faulthandler
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import uvloop

from goqueue.model.errors import CannotJoin, GoQueueError, InvalidSettings
from goqueue.model.listener import Api
from goqueue.model.own_version import own_version
from goqueue.node.bootstrap import FirstAdmin, FirstKey
from goqueue.node.doors import DoorStaysShut
from goqueue.node.environment import take_bootstrap_key
from goqueue.node.freed_memory import keep_freed_memory
from goqueue.node.listeners import Exposed, exposed, plans, refusal
from goqueue.node.node import Node, Opened
from goqueue.node.open_files import raise_open_files_limit
from goqueue.node.processes.store_directory import become_one, refuse_members
from goqueue.node.settings import Settings
from goqueue.node.systemd import Systemd
from goqueue.node.values import Switch
from goqueue.ports.dice import system_dice
from goqueue.ports.tls import BadCertificate
from goqueue.records.native import load_codec
from goqueue.storage.compaction_process import compact_in_process
from goqueue.storage.data_directory import OpeningStopped
from goqueue.storage.real_disk import RealDisk
from goqueue.telemetry.logs import LogFormat, configure_logs, get_logger, resolve_format

SWITCH_INTERVAL_S = 0.0005
"""A thread that wants the interpreter back after a sync waits for this long at most; the default is 5 ms."""
GC_THRESHOLDS = (50_000, 20, 1000)
"""Reference counts free nearly everything; a full collection among millions of objects would be a pause."""

WARN_AGAIN_S = 3600.0
STOP_S_MAX = 90.0
"""How long a stop may take, beside handing on work: with many logs it waits for the disk."""
EXIT_LATE = 4

events = get_logger("node")


class StartFailed(Exception):
    """The node could not start; the message is for the person who started it."""


def serve(settings: Settings) -> None:
    """Run a node in this process until SIGINT or SIGTERM; StartFailed if it cannot start."""
    configure_logs(settings.log_level, settings.log_format)
    prepare_process()
    uvloop.run(_serve(settings))


def prepare_process() -> None:
    """For a node that has it to itself."""
    raise_open_files_limit()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    keep_freed_memory()
    load_codec()


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    is_stopping = stop_on_signals(stop)
    open_to_others = await may_be_opened(settings)
    disk = RealDisk(settings.data_dir)
    with failing_start(settings.data_dir):
        if settings.is_clustered:
            refuse_members(disk)
        else:
            await become_one(disk, settings.cluster_name, system_dice(), round(time.time() * 1000))
    compact = partial(compact_in_process, settings.data_dir)
    node = Node(settings, disk, compact=compact, first=FirstAdmin(take_bootstrap_key()))
    systemd = Systemd.taken()
    tasks = [asyncio.create_task(keep_warning(open_to_others)), asyncio.create_task(systemd.run(stop))]
    is_announced = False

    def announce(opened: Opened) -> None:
        nonlocal is_announced
        is_announced = True
        _announce(settings, opened, node.first_key)
        systemd.ready()

    try:
        await run_node(node, settings, stop, is_stopping, announce)
    finally:
        for task in tasks:
            task.cancel()
        if is_announced and settings.ready_file:  # else it may be that of another process
            with suppress(OSError):
                settings.ready_file.unlink()


async def run_node(
    node: Node,
    settings: Settings,
    stop: asyncio.Event,
    is_stopping: Callable[[], bool],
    announce: Callable[[Opened], None],
) -> None:
    """Until `stop`. `announce`: it serves. StartFailed."""
    in_time = asyncio.create_task(_end_in_time(stop, stop_s_max(settings)))
    try:
        await _run_node(node, settings, stop, is_stopping, announce)
    finally:
        in_time.cancel()
        with suppress(asyncio.CancelledError):
            await in_time


async def _run_node(
    node: Node,
    settings: Settings,
    stop: asyncio.Event,
    is_stopping: Callable[[], bool],
    announce: Callable[[Opened], None],
) -> None:
    events.info("opening data directory", data_dir=str(settings.data_dir))
    with failing_start(settings.data_dir):
        try:
            opened = await node.open(stop, is_stopping)
        except OpeningStopped:
            events.info("stopped before all logs were open", data_dir=str(settings.data_dir))
            return
    freeze_start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, node.look_at_certificates)
    node.broker.metrics.meters.insecure_listeners = sum(1 for each in await exposed(settings) if each.lacks)
    try:
        if not stop.is_set():
            announce(opened)
        await node.run(stop)
    finally:
        await node.close()
    events.info("stopped", data_dir=str(settings.data_dir))


def stop_s_max(settings: Settings) -> float:
    """After so long a stop that has not ended is ended."""
    return 2 * settings.drain_ms / 1000 + STOP_S_MAX


async def _end_in_time(stop: asyncio.Event, within_s: float) -> None:
    """Until it is cancelled. A stop that hangs must not need a person, and has to say where it hangs."""
    await stop.wait()
    late = threading.Timer(within_s, _end_late, (within_s,))
    late.daemon = True
    late.start()
    try:
        await asyncio.Event().wait()
    finally:
        late.cancel()


def _end_late(within_s: float) -> None:
    """In a thread of its own. A crash is safe at any moment."""
    events.error("the stop did not end in time: this process ends now, see where it was", seconds=within_s)
    faulthandler.dump_traceback(sys.__stderr__ or 2)
    os._exit(EXIT_LATE)


@contextmanager
def failing_start(data_dir: Path) -> Iterator[None]:
    """What keeps a node from starting becomes StartFailed."""
    try:
        yield
    except (DoorStaysShut, CannotJoin, BadCertificate, InvalidSettings) as error:
        raise StartFailed(str(error)) from error
    except (GoQueueError, OSError) as error:
        raise StartFailed(f"cannot open data directory {data_dir}: {_reason(error)}") from error


async def may_be_opened(settings: Settings) -> list[Exposed]:
    """What is open to others and lacks something. StartFailed: that was not asked for."""
    try:
        found = await exposed(settings)
    except OSError as error:
        raise StartFailed(f"an address to listen on is not known: {error.strerror}") from error
    why = refusal(settings, found)
    if why:
        raise StartFailed(why)
    return [each for each in found if each.lacks]


async def keep_warning(open_to_others: list[Exposed]) -> None:
    while open_to_others:
        for each in open_to_others:
            events.warning("insecure: others can reach this node", listener=each.where, lacks=each.lacks)
        await asyncio.sleep(WARN_AGAIN_S)


def freeze_start() -> None:
    """What was imported, recovered and opened lives as long as the process: no collection need look at it again. Nor
    now: a node of a cluster takes part already, and a look at millions of facts would hold up its loop, by which a busy
    one loses its session."""
    gc.freeze()


def _reason(error: Exception) -> str:
    return f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)


def stop_on_signals(stop: asyncio.Event) -> Callable[[], bool]:
    """Returns what tells whether one came, also while the loop does not get its turn, as when logs are opened."""
    came: list[int] = []

    def note(number: int, frame: object) -> None:  # noqa: ARG001  the shape of a handler
        if came:
            os._exit(128 + number)  # a crash is safe at any moment, so a person who insists need not wait
        came.append(number)

    def on_signal(number: signal.Signals) -> None:
        if not stop.is_set():
            events.info("stopping; a second signal stops at once", signal=number.name)
            stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
        signal.signal(number, note)  # beside the loop's, which is told by a file descriptor
    return lambda: bool(came)


def _announce(settings: Settings, opened: Opened, first_key: FirstKey | None) -> None:
    data_dir = settings.data_dir.resolve()
    say_ready(settings, {**opened.doors, **({"listeners": listened(settings, opened)} if settings.listeners else {})})
    found = {name: value for name, value in opened._asdict().items() if name != "addresses"} | opened.doors
    events.info("ready", data_dir=str(data_dir), **found, listeners=listened(settings, opened))
    if settings.dev is Switch.ON:
        events.warning("--dev: open to everybody on this machine, and to nobody else")
    if resolve_format(settings.log_format, sys.stderr) is LogFormat.CONSOLE:
        sys.stderr.write(_welcome(settings, data_dir, opened, first_key))


def say_ready(settings: Settings, facts: Mapping[str, object]) -> None:
    """To whoever waits for the ready file, if it was asked for."""
    if settings.ready_file is None:
        return
    about = {"pid": os.getpid(), "version": own_version(), "data_dir": str(settings.data_dir.resolve())}
    try:
        write_ready_file(settings.ready_file, {**about, **facts})
    except OSError as error:
        raise StartFailed(f"cannot write ready file {settings.ready_file}: {error.strerror}") from error


def listened(settings: Settings, opened: Opened) -> list[str]:
    """Every listener as the setting `listeners` would say it, at its real address."""
    rest = {api: iter(found) for api, found in opened.addresses.items()}
    each = [plan.listener for plan in plans(settings) if plan.listener.api in rest]
    return [f"{one.api}://{next(rest[one.api])}?name={one.name}&protocol={one.protocol}" for one in each]


def _welcome(settings: Settings, data_dir: Path, opened: Opened, first_key: FirstKey | None) -> str:
    failed = f"; {opened.failed} partitions could not be opened, see above" if opened.failed else ""
    if settings.listeners:
        doors = "".join(f"  {each}\n" for each in listened(settings, opened))
    else:
        doors = f"  kafka {opened.kafka}\n  http  http://{opened.http}\n  grpc  {opened.grpc}\n"
    dev = "  --dev: everybody on this machine may do everything; nobody else can connect.\n"
    return (
        f"GoQueue {own_version()} is running.\n"
        f"  data  {data_dir}: {opened.topics} topics, {opened.messages} messages, "
        f"opened in {opened.seconds} s{failed}\n"
        f"{dev if settings.dev is Switch.ON else ''}{doors}{how_to_come_in(settings, opened.http, first_key)}"
        f"  stop  Ctrl+C, or kill {os.getpid()}\n"
    )


def how_to_come_in(settings: Settings, http: object, first_key: FirstKey | None) -> str:
    """What a person needs to do anything at a closed node."""
    if not settings.is_closed:
        return ""
    if first_key is None:
        return "  closed: clients show an API key or a password (docs/access.md).\n"
    first = {plan.listener.api: plan.listener.protocol.has_tls for plan in reversed(plans(settings))}
    url = f"http{'s' if first[Api.HTTP] else ''}://{http}"
    return (
        "  closed: clients show an API key or a password (docs/access.md).\n"
        f"  first key, an admin's: {first_key.where}\n"
        "    CLI    export GOQUEUE_API_KEY=gqk_...\n"
        "           goqueue user create NAME --role admin   (ends the first key)\n"
        f'    curl   curl -H "X-API-Key: $GOQUEUE_API_KEY" {url}/topics\n'
        f"    Kafka  security.protocol={'SASL_SSL' if first[Api.KAFKA] else 'SASL_PLAINTEXT'} sasl.mechanism=PLAIN"
        f" sasl.username={first_key.key_id} sasl.password=gqk_...\n"
        "    lost   goqueue admin reset, with the node stopped. Or, open to everybody on this machine: --dev\n"
    )


def write_ready_file(path: Path, facts: dict[str, object]) -> None:
    """Whoever waits for the file sees all of it or nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(facts) + "\n", "utf-8")
    draft.replace(path)

"""A member: a node in a process of its own, with the store of its supervisor. It gets its settings on standard input,
and ends at once when that is closed: its supervisor is gone, and with it the store. A crash is safe at any moment.

Its arguments are the numbers of two sockets: to the store, and to the store for renewals of its session.
"""

import asyncio
import faulthandler
import json
import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import uvloop

from goqueue.cluster.etcd.renewing import DEADLINE_S, ThreadRenewer, boot_time_s
from goqueue.cluster.local.client import LocalStoreClient
from goqueue.cluster.local.renewing import LocalRenewals
from goqueue.node.bootstrap import FirstAdmin
from goqueue.node.environment import take_bootstrap_key
from goqueue.node.node import Node, Opened
from goqueue.node.ports import EtcdPorts, RealPorts
from goqueue.node.process import StartFailed, prepare_process, run_node, stop_on_signals
from goqueue.node.settings import Settings
from goqueue.storage.compaction_process import compact_in_process
from goqueue.storage.real_disk import RealDisk
from goqueue.telemetry.logs import configure_logs, get_logger

STOP, CERTIFICATES, STUCK = b"s", b"h", b"t"
LENGTH_BYTES = 4
EXIT_ORPHANED, EXIT_STUCK = 3, 4
INPUT, OUTPUT, ERRORS = 0, 1, 2
FIRST = 1

events = get_logger("member")


class MemberStart(NamedTuple):
    """All that a member is told."""

    settings: Settings
    home: Path
    """The data directory of all of them, where a person looks for the first key."""

    def encode(self) -> bytes:
        body = pickle.dumps(self)
        return len(body).to_bytes(LENGTH_BYTES, "big") + body


class MemberPorts(RealPorts):
    shares_ports = True

    def __init__(self, client: LocalStoreClient, renewals: LocalRenewals) -> None:
        super().__init__()
        self._client = client
        self._renewals = renewals

    def etcd(self, settings: Settings) -> EtcdPorts:  # noqa: ARG002  there is one
        return EtcdPorts(self._client, ThreadRenewer(lambda: self._renewals), boot_time_s, lambda: None)


def main() -> int:
    store, session = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    start: MemberStart = pickle.loads(_read(int.from_bytes(_read(LENGTH_BYTES), "big")))  # noqa: S301  the supervisor's own
    settings = start.settings
    configure_logs(settings.log_level, settings.log_format, always={"member": settings.node_id})
    prepare_process()
    tell = _teller()
    try:
        uvloop.run(_serve(start, store, session, tell))
    except StartFailed as error:
        tell({"failed": str(error)})
        return 1
    return 0


async def _serve(
    start: MemberStart, store: socket.socket, session: socket.socket, tell: Callable[[dict[str, object]], None]
) -> None:
    stop = asyncio.Event()
    is_stopping = stop_on_signals(stop)
    settings = start.settings
    client = await LocalStoreClient.connect(store)
    client.on_lost = _store_lost
    ports = MemberPorts(client, LocalRenewals(session, DEADLINE_S))
    compact = partial(compact_in_process, settings.data_dir)
    first = FirstAdmin(take_bootstrap_key(), start.home, is_made_here=settings.node_id == FIRST)
    node = Node(settings, RealDisk(settings.data_dir), compact=compact, ports=ports, first=first)
    loop = asyncio.get_running_loop()
    orders: dict[bytes, Callable[[], None]] = {STOP: stop.set, CERTIFICATES: node.look_at_certificates}
    threading.Thread(target=_listen, args=(loop, orders), name="supervisor", daemon=True).start()

    def announce(opened: Opened) -> None:
        known = None if node.first_key is None else list(node.first_key)
        tell({"topics": opened.topics, "failed_logs": opened.failed, "first_key": known, **opened.doors})

    await run_node(node, settings, stop, is_stopping, announce)


def _store_lost() -> None:
    """It would lead by metadata that it hears nothing of any more, since its session is renewed on another socket. Its
    supervisor starts it again."""
    events.error("this member ends: its connection to the store was cut")
    os._exit(EXIT_ORPHANED)


def _teller() -> Callable[[dict[str, object]], None]:
    """Standard output is the supervisor's: what anybody else prints goes where the log goes."""
    line = os.fdopen(os.dup(OUTPUT), "w", encoding="utf-8")
    os.dup2(ERRORS, OUTPUT)

    def tell(facts: dict[str, object]) -> None:
        line.write(json.dumps(facts) + "\n")
        line.flush()

    return tell


def _listen(loop: asyncio.AbstractEventLoop, orders: dict[bytes, Callable[[], None]]) -> None:
    """In a thread of its own: however busy the loop is, a member does not outlive its supervisor."""
    while said := os.read(INPUT, 1):
        if said == STUCK:
            _end_stuck()
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(orders[said])
    os._exit(EXIT_ORPHANED)


def _end_stuck() -> None:
    events.error("this member ends: its loop does not run. See where it was")
    faulthandler.dump_traceback(ERRORS)
    os._exit(EXIT_STUCK)


def _read(length: int) -> bytes:
    data = b""
    while len(data) < length:
        some = os.read(INPUT, length - len(data))
        if not some:
            os._exit(EXIT_ORPHANED)
        data += some
    return data

"""Runs one measurement for a person or a program: progress to stderr, figures to stdout, an exit code."""

import signal
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException

from goqueue.cli.bench.broker import Broker, own_broker
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.filesystem import IN_MEMORY
from goqueue.cli.bench.latency import bench_latency
from goqueue.cli.bench.load import Load
from goqueue.cli.bench.queue import bench_queue
from goqueue.cli.bench.throughput import bench_consume, bench_produce
from goqueue.cli.contexts import Target
from goqueue.cli.exits import EXIT_FAILED, EXIT_TERMINATED, complain
from goqueue.cli.logins import security_of
from goqueue.cli.progress import Progress
from goqueue.client import Security
from goqueue.client.errors import InvalidArgument

KINDS = {"produce": bench_produce, "consume": bench_consume, "latency": bench_latency, "queue": bench_queue}


def run_bench(given: Namespace, target: Target) -> int:
    load = Load(given.messages, given.bytes, given.batch, given.partitions, given.durability)
    progress = Progress(sys.stderr)
    try:
        with _stopping_cleanly(), _broker(given, target, progress) as broker:
            report = KINDS[given.kind](broker, load, progress)
    except BenchFailed as error:
        return _fail(progress, str(error))
    except KafkaException as error:
        return _fail(progress, error.args[0].str())
    except OSError as error:  # no room for the raw file, say
        return _fail(progress, str(error))
    finally:
        progress.clear()
    print(report.as_json() if given.output == "json" else report.as_table())
    return 0


@contextmanager
def _broker(given: Namespace, target: Target, progress: Progress) -> Iterator[Broker]:
    if target.kafka is not None:
        yield Broker(target.kafka, security=_security(target))
        return
    with own_broker(given.directory and Path(given.directory)) as broker:
        if broker.filesystem in IN_MEMORY:
            progress.note(f"{broker.directory.parent} is memory: syncs cost nothing there; see --directory")
        yield broker


def _security(target: Target) -> Security | None:
    """BenchFailed: what was said does not go together."""
    try:
        found = security_of(target)
    except InvalidArgument as error:
        raise BenchFailed(str(error)) from None
    return found if found.has_credentials or found.tls else None


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """SIGTERM unwinds as Ctrl+C does, so that our own broker and its directory go too.

    A signal that comes while confluent-kafka polls is lost there: it returns without a result and without the exception
    of our handler, and Python complains of that with a SystemError.
    """
    asked: list[BaseException] = []

    def stop(number: int, _frame: object) -> None:
        asked.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(EXIT_TERMINATED))
        raise asked[-1]

    heard = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    before = [(each, signal.signal(each, stop)) for each in heard]
    try:
        yield
    except SystemError:
        if asked:
            raise asked[-1] from None
        raise
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def _fail(progress: Progress, reason: str) -> int:
    progress.clear()
    return complain(f"goqueue: {reason}", EXIT_FAILED)

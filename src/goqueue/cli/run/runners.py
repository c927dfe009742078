"""Where the functions are that commands name. What is not asked for is not imported."""

from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

from goqueue.cli.call import Call

Runner = Callable[[Call], int | Coroutine[Any, Any, int | None] | None]


def runner(name: str) -> Runner:
    module, _, function = name.partition(".")
    found: Runner = getattr(_LOADERS[module](), function)
    return found


def _bench() -> ModuleType:
    from goqueue.cli.run import bench

    return bench


def _cluster() -> ModuleType:
    from goqueue.cli.run import cluster

    return cluster


def _config() -> ModuleType:
    from goqueue.cli.run import config

    return config


def _consume() -> ModuleType:
    from goqueue.cli.run import consume

    return consume


def _delays() -> ModuleType:
    from goqueue.cli.run import delays

    return delays


def _dlq() -> ModuleType:
    from goqueue.cli.run import dlq

    return dlq


def _doctor() -> ModuleType:
    from goqueue.cli.run import doctor

    return doctor


def _groups() -> ModuleType:
    from goqueue.cli.run import groups

    return groups


def _pages() -> ModuleType:
    from goqueue.cli.run import pages

    return pages


def _pipeline() -> ModuleType:
    from goqueue.cli.run import pipeline

    return pipeline


def _produce() -> ModuleType:
    from goqueue.cli.run import produce

    return produce


def _repair() -> ModuleType:
    from goqueue.cli.run import repair

    return repair


def _replay() -> ModuleType:
    from goqueue.cli.run import replay

    return replay


def _schedules() -> ModuleType:
    from goqueue.cli.run import schedules

    return schedules


def _schemas() -> ModuleType:
    from goqueue.cli.run import schemas

    return schemas


def _serve() -> ModuleType:
    from goqueue.cli.run import serve

    return serve


def _top() -> ModuleType:
    from goqueue.cli.run import top

    return top


def _topics() -> ModuleType:
    from goqueue.cli.run import topics

    return topics


def _traces() -> ModuleType:
    from goqueue.cli.run import traces

    return traces


def _version() -> ModuleType:
    from goqueue.cli.run import version

    return version


_LOADERS: dict[str, Callable[[], ModuleType]] = {
    "bench": _bench,
    "cluster": _cluster,
    "config": _config,
    "consume": _consume,
    "delays": _delays,
    "dlq": _dlq,
    "doctor": _doctor,
    "groups": _groups,
    "pages": _pages,
    "pipeline": _pipeline,
    "produce": _produce,
    "repair": _repair,
    "replay": _replay,
    "schedules": _schedules,
    "schemas": _schemas,
    "serve": _serve,
    "top": _top,
    "topics": _topics,
    "traces": _traces,
    "version": _version,
}

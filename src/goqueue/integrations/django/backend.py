"""Tasks of Django as messages: `run_after` is a delay of the broker, the priority a lane, the queue a topic.

What became of a task is kept in a cache of Django, if OPTIONS name one: {"results": "default"}. A log cannot be asked
by key.
"""

import atexit
import json
from datetime import timedelta
from traceback import format_exception
from typing import Any

from django.core.cache import caches
from django.tasks.backends.base import BaseTaskBackend
from django.tasks.base import (
    TASK_MAX_PRIORITY,
    TASK_MIN_PRIORITY,
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
)
from django.tasks.exceptions import TaskResultDoesNotExist
from django.tasks.signals import task_enqueued, task_finished, task_started
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.dateparse import parse_datetime
from django.utils.json import normalize_json
from django.utils.module_loading import import_string

from goqueue.client import Security, sync
from goqueue.client.faces import ProcessLock

LANES = ("background", "low", "normal", "high", "critical")
ID_CHARS = 32
KEPT = timedelta(days=7)
MOMENTS = ("enqueued_at", "started_at", "last_attempted_at", "finished_at")


class GoQueueBackend(BaseTaskBackend):
    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        options = self.options
        self.servers: str = options.get("servers", "127.0.0.1:9092")
        self.prefix: str = options.get("prefix", "django.")
        self.group: str = options.get("group", "django")
        self.security: Security | None = options.get("security")
        self._cache: str | None = options.get("results")
        self._kept_s = options.get("results_kept", KEPT).total_seconds()
        self.supports_get_result = self._cache is not None
        self._producer: sync.Producer | None = None
        self._lock = ProcessLock()

    def topic(self, queue: str) -> str:
        return self.prefix + queue

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """It is stored when this returns. Inside a transaction of the database, call it with `on_commit`."""
        self.validate_task(task)
        nothing: dict[str, Any] = dict.fromkeys(MOMENTS)
        result = TaskResult(
            task=task,
            id=get_random_string(ID_CHARS),
            status=TaskResultStatus.READY,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
            **nothing,
        )
        _set(result, enqueued_at=timezone.now())
        self.keep(result)
        self._started().send(
            self.topic(task.queue_name),
            json.dumps(written(result)).encode(),
            priority=lane(task.priority),
            at=None if task.run_after is None else round(task.run_after.timestamp() * 1000),
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def _started(self) -> sync.Producer:
        """One for each process: a server that loads its application and then forks has another one in each child."""
        with self._lock.own:
            if self._producer is None or not self._producer.is_of_this_process:
                self._producer = sync.Producer(self.servers, linger_ms=0, security=self.security).start()
                atexit.register(self._producer.close)
            return self._producer

    def keep(self, result: TaskResult) -> None:
        if self._cache is not None:
            caches[self._cache].set(f"goqueue-task-{result.id}", written(result), self._kept_s)

    def get_result(self, result_id: str) -> TaskResult:
        found = None if self._cache is None else caches[self._cache].get(f"goqueue-task-{result_id}")
        if found is None:
            raise TaskResultDoesNotExist(result_id)
        return read(found)

    def run(self, result: TaskResult, worker: str) -> bool:
        """Whether the task succeeded. What it raised is in its result."""
        now = timezone.now()
        _set(result, status=TaskResultStatus.RUNNING, started_at=result.started_at or now, last_attempted_at=now)
        result.worker_ids.append(worker)
        self.keep(result)
        task_started.send(type(self), task_result=result)
        context = (TaskContext(task_result=result),) if result.task.takes_context else ()
        try:
            value = normalize_json(result.task.call(*context, *result.args, **result.kwargs))
            _set(result, status=TaskResultStatus.SUCCESSFUL, _return_value=value)
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a task raises is about that task
            kind = type(error)
            path = f"{kind.__module__}.{kind.__qualname__}"
            result.errors.append(TaskError(exception_class_path=path, traceback="".join(format_exception(error))))
            _set(result, status=TaskResultStatus.FAILED)
        _set(result, finished_at=timezone.now())
        self.keep(result)
        task_finished.send(type(self), task_result=result)
        return bool(result.status == TaskResultStatus.SUCCESSFUL)


def lane(priority: int) -> str:
    """From -100 to 100, five lanes; 0 is normal."""
    place = (priority - TASK_MIN_PRIORITY) * len(LANES) // (TASK_MAX_PRIORITY - TASK_MIN_PRIORITY + 1)
    return LANES[place]


def written(result: TaskResult) -> dict[str, Any]:
    task = result.task
    return {
        "task": task.module_path,
        "queue": task.queue_name,
        "priority": task.priority,
        "id": result.id,
        "backend": result.backend,
        "args": result.args,
        "kwargs": result.kwargs,
        "status": str(result.status),
        "value": result._return_value,  # noqa: SLF001  its property refuses to tell before the end
        "errors": [[error.exception_class_path, error.traceback] for error in result.errors],
        "workers": result.worker_ids,
        **{name: None if getattr(result, name) is None else getattr(result, name).isoformat() for name in MOMENTS},
    }


def read(given: dict[str, Any]) -> TaskResult:
    task: Task = import_string(given["task"])
    result = TaskResult(
        task=task.using(queue_name=given["queue"], priority=given["priority"], backend=given["backend"]),
        id=given["id"],
        status=TaskResultStatus(given["status"]),
        args=given["args"],
        kwargs=given["kwargs"],
        backend=given["backend"],
        errors=[TaskError(exception_class_path=path, traceback=text) for path, text in given["errors"]],
        worker_ids=list(given["workers"]),
        **{name: given[name] and parse_datetime(given[name]) for name in MOMENTS},
    )
    _set(result, _return_value=given["value"])
    return result


def _set(result: TaskResult, **values: Any) -> None:
    """Results are frozen; Django's own backends do it so."""
    for name, value in values.items():
        object.__setattr__(result, name, value)

"""`manage.py goqueue_worker`: does the tasks of a backend until SIGINT or SIGTERM; those in hand are finished."""

import json
import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections
from django.tasks import DEFAULT_TASK_BACKEND_ALIAS, task_backends
from django.utils.crypto import get_random_string

from goqueue.client import Reject
from goqueue.client.sync import Job, Worker
from goqueue.integrations.django.backend import ID_CHARS, GoQueueBackend, read

HOLD = "7d"


class Command(BaseCommand):
    help = "Do the tasks that were enqueued with GoQueue."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--backend", default=DEFAULT_TASK_BACKEND_ALIAS, help="of settings.TASKS")
        parser.add_argument("--queues", nargs="*", help="by default all of the backend")
        parser.add_argument("--concurrency", type=int, default=4, help="threads that do tasks")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  the shape of a command
        backend = task_backends[options["backend"]]
        if not isinstance(backend, GoQueueBackend):
            raise CommandError(f"{options['backend']} is no backend of GoQueue")
        queues = sorted(options["queues"] or backend.queues)
        worker = Worker(
            backend.servers,
            [backend.topic(queue) for queue in queues],
            group=backend.group,
            concurrency=options["concurrency"],
            prefetch=0,
            hold=HOLD,
            security=backend.security,
        )
        name = get_random_string(ID_CHARS)

        @worker.handle
        def do(job: Job) -> None:
            """A task that failed is over, as with Django's own backends; one that is none is a dead letter."""
            close_old_connections()
            try:
                result = read(json.loads(job.value or b""))
            except (ImportError, AttributeError, KeyError, TypeError, ValueError) as error:
                raise Reject(f"not a task of this project: {error}") from error
            try:
                backend.run(result, name)
            finally:
                close_old_connections()

        def stop(*_: object) -> None:
            """In a thread: what the signal interrupts may hold what `stop` waits for."""
            threading.Thread(target=worker.stop, name="stop", daemon=True).start()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        self.stdout.write(f"doing tasks of {', '.join(queues)}")
        worker.run()

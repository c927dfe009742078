"""A project of Django in one file, as its settings, its tasks and `manage.py`; for a Python that has Django."""

import os
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import execute_from_command_line

PLACE = Path(os.environ["TASKS_PLACE"])
settings.configure(
    INSTALLED_APPS=["goqueue.integrations.django"],
    USE_TZ=True,
    DATABASES={},
    CACHES={"default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": PLACE / "cache"}},
    TASKS={
        "default": {
            "BACKEND": "goqueue.integrations.django.backend.GoQueueBackend",
            "QUEUES": ["default", "mails"],
            "OPTIONS": {"servers": os.environ["TASKS_SERVERS"], "results": "default"},
        }
    },
)
django.setup()

from django.tasks import task  # noqa: E402  after the settings


@task
def add(left: int, right: int) -> int:
    return left + right


@task(queue_name="mails", priority=50, takes_context=True)
def fail(context: object, text: str) -> None:
    raise ValueError(f"{text} {context.attempt}")  # type: ignore[attr-defined]


@task
def leave() -> None:
    sys.exit(3)


def manage() -> None:
    execute_from_command_line(sys.argv)

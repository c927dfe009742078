"""An application of Celery with a task that does nothing, for `bench_celery`."""

import os

from celery import Celery

import goqueue.integrations.celery  # noqa: F401  makes goqueue:// known

app = Celery("load", broker=os.environ.get("LOAD_BROKER", "memory://"))
app.conf.task_ignore_result = True
app.conf.broker_connection_retry_on_startup = True


@app.task(acks_late=True)
def nothing(number: int) -> int:
    return number

"""GoQueue as the broker of Celery: importing this makes `goqueue://` known to kombu, which has no entry points.

import goqueue.integrations.celery

app = Celery("tasks", broker="goqueue://127.0.0.1:9092")
"""

from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["goqueue"] = "goqueue.integrations.celery.transport:Transport"

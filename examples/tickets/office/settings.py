"""What is particular to GoQueue is in TASKS and in INSTALLED_APPS; everything else is any Django project's."""

import os
from datetime import timedelta
from pathlib import Path

SECRET_KEY = os.environ.get("TICKETS_SECRET_KEY", "only for this machine")
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "office.urls"
USE_TZ = True
INSTALLED_APPS = ["office", "goqueue.integrations.django"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("TICKETS_DATABASE", Path(__file__).parents[1] / "tickets.sqlite3"),
        # Pages and workers write to one file: a transaction takes its turn when it begins, and waits for it.
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
}
TASKS = {
    "default": {
        "BACKEND": "goqueue.integrations.django.backend.GoQueueBackend",
        "QUEUES": ["default", "mails"],
        "OPTIONS": {"servers": os.environ.get("TICKETS_SERVERS", "127.0.0.1:9092")},
    }
}
REMIND_AFTER = timedelta(seconds=float(os.environ.get("TICKETS_REMIND_AFTER_S", "3600")))

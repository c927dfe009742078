"""GoQueue as the backend of Django's tasks (`django.tasks`, Django 6), with a command that works them off.

INSTALLED_APPS = [..., "goqueue.integrations.django"]
TASKS = {"default": {"BACKEND": "goqueue.integrations.django.backend.GoQueueBackend",
                     "OPTIONS": {"servers": "127.0.0.1:9092"}}}

python manage.py goqueue_worker
"""

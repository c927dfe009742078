"""A ticket office as a Django app: it stores an order in its database, and its workers confirm it and send a reminder.

    make run
    pip install 'django>=6'    # needs Python 3.12; and GoQueue: pip install /path/to/checkout
    python examples/tickets/manage.py migrate --run-syncdb
    python examples/tickets/manage.py runserver 8000
    python examples/tickets/manage.py goqueue_worker       # as many as you like, each in a terminal of its own
    curl -s http://127.0.0.1:8000/orders --json '{"customer": "ada", "seats": 2}'
    curl -s http://127.0.0.1:8000/orders/1

A worker may be killed at any time: what it had begun is done again by another one.
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "office.settings")
    execute_from_command_line(sys.argv)

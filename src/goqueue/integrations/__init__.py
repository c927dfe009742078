"""GoQueue behind the interfaces of other frameworks. Each is an extra: `pip install 'goqueue[celery]'`."""

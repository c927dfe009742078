"""What a plain `pip install goqueue` leaves out, and which extra brings it."""

import sys

from goqueue.cli.exits import EXIT_USAGE, complain

MODULES = {
    "server": {
        "cronsim",
        "cryptography",
        "fastavro",
        "google",
        "grpc",
        "grpc_health",
        "grpc_reflection",
        "grpc_tools",
        "jsonschema_rs",
        "jwt",
        "opentelemetry",
        "prometheus_client",
        "starlette",
        "structlog",
        "tzdata",
        "uvicorn",
        "uvloop",
    },
    "bench": {"confluent_kafka"},
    "lake": {"pyiceberg", "pyiceberg_core", "sqlalchemy"},
    "spark": {"py4j", "pyarrow", "pyspark"},
}


def extra_of(module: str) -> str | None:
    """None: no extra brings it, so that its absence is a bug."""
    package = module.partition(".")[0]
    return next((extra for extra, modules in MODULES.items() if package in modules), None)


def complain_of_extra(words: str, extra: str) -> int:
    install = f"{sys.executable} -m pip install 'goqueue[{extra}]'"
    return complain(f"goqueue: {words} needs the extra {extra}; install it with: {install}", EXIT_USAGE)

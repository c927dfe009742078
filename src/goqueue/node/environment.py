"""What the environment says to commands. Apart from the settings of a node, which take long to import."""

import os
from pathlib import Path

from goqueue.model.secret import Secret

PREFIX = "GOQUEUE_"
CLIENT_VARIABLES = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "SERVER",
        "CONTEXT",
        "API_KEY",
        "API_KEY_FILE",
        "USER",
        "PASSWORD",
        "PASSWORD_FILE",
        "SASL",
        "TOKEN_FILE",
        "CA",
        "CERT",
        "CERT_KEY",
        "CERT_KEY_PASSWORD_FILE",
        "TENANT",
    )
)
"""Client commands may share their environment with a node."""
BOOTSTRAP_KEY_VARIABLE = f"{PREFIX}BOOTSTRAP_KEY"
"""No setting: secrets have no flag and no place in a file with settings."""
COLOUR_VARIABLE = "NO_COLOR"
NOTIFY_VARIABLE, WATCHDOG_VARIABLE, WATCHDOG_PID_VARIABLE = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
"""By which systemd says where it listens, and how often it wants to hear of a service."""


def client_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in (*CLIENT_VARIABLES, COLOUR_VARIABLE) if name in os.environ}


def take_bootstrap_key() -> Secret[str] | None:
    """Once: what this process starts does not get it."""
    found = os.environ.pop(BOOTSTRAP_KEY_VARIABLE, None)
    return None if found is None else Secret(found)


def take_notify_socket() -> tuple[str | None, float | None]:
    """Where systemd listens, and after how many seconds of silence it gives this process up. Once, likewise."""
    address = os.environ.pop(NOTIFY_VARIABLE, None)
    silence_us = os.environ.pop(WATCHDOG_VARIABLE, "")
    is_meant = os.environ.pop(WATCHDOG_PID_VARIABLE, str(os.getpid())) == str(os.getpid())
    return address or None, int(silence_us) / 1e6 if silence_us.isdigit() and is_meant else None


def cache_directory() -> Path:
    """What can be made again is kept there."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "goqueue"

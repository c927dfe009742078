"""What the environment says to commands. Apart from the settings of a node, which take long to import."""

import os
from pathlib import Path

PREFIX = "GOQUEUE_"
CLIENT_VARIABLES = frozenset({f"{PREFIX}SERVER", f"{PREFIX}CONTEXT", f"{PREFIX}API_KEY"})
"""Client commands may share their environment with a node."""
COLOUR_VARIABLE = "NO_COLOR"


def client_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in (*CLIENT_VARIABLES, COLOUR_VARIABLE) if name in os.environ}


def cache_directory() -> Path:
    """What can be made again is kept there."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "goqueue"

"""The version of this package, as it was installed. To look for it reads and parses a file, so it is done once."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def own_version() -> str:
    try:
        return version("goqueue")
    except PackageNotFoundError:  # run from its source
        return "0"

"""Regular expressions that come from strangers: matched by RE2, in time linear in the text whatever the expression; it
is also the dialect that Kafka's brokers speak.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

COMPILED_BYTES_MAX = 1 << 20


@lru_cache(maxsize=1024)
def _compiled(regex: str) -> Any:
    options = re2.Options()
    options.max_mem = COMPILED_BYTES_MAX
    options.log_errors = False
    return re2.compile(regex, options)


def regex_problem(regex: str) -> str | None:
    """Why this is not a regular expression that we match."""
    try:
        _compiled(regex)
    except re2.error as error:
        return str(error)
    except UnicodeEncodeError:
        return "not text"
    return None


def matcher(regex: str) -> Callable[[str], object]:
    """Tells whether a text matches as a whole. Only for an expression without a problem."""
    match: Callable[[str], object] = _compiled(regex).fullmatch
    return match

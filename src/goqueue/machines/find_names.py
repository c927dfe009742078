"""Names that begin alike, in whichever ledger they are kept: those of a tenant. They are found, or found and forgotten.
It is asked of each shard by itself, a page at a time, and does no harm when it is asked twice.
"""

from collections.abc import Callable

import msgspec

from goqueue.machines.machine import Command

NAMES_PER_STEP = 20
"""What is forgotten is one batch of the ledger."""


class FindNames(Command["FoundNames"], frozen=True):
    prefix: str
    after: str = ""
    """The last name of the page before."""
    forgets: bool = False


class FoundNames(msgspec.Struct, frozen=True):
    names: tuple[str, ...] = ()
    """Sorted. Those of a page that are forgotten now, or will be once what they take part in is over. None: that was
    the last page."""


def page_of(command: FindNames, page: Callable[[str, int], list[str]]) -> list[str]:
    """`page`: the next so many names behind one, sorted."""
    prefix = command.prefix
    names = page(command.after or _before(prefix), NAMES_PER_STEP)
    return [name for name in names if name.startswith(prefix)]


def _before(prefix: str) -> str:
    """Behind all names that are sorted before those with this prefix; which may themselves be nothing but that."""
    return prefix[:-1] + chr(ord(prefix[-1]) - 1) + chr(0x10FFFF)

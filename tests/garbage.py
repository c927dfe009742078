"""What only the cycle collector would free: while it looks for that, the event loop stands still."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage() -> Iterator[Counter[str]]:
    """`with garbage() as found:` fills `found`, at its end, with the types of what was left in reference cycles."""
    found: Counter[str] = Counter()
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    gc.freeze()  # what was there before does not count, and is not looked at any more
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()

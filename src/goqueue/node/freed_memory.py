"""Memory that is freed stays with the process for a while. The C library gives the end of its heap back to the system
when a large request was handled, and takes it again, page by page, for the next one: with requests of 1 MB that made
each message twice as dear, or not, as the heap happened to lie.
"""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""As glibc's malloc.h has them."""
KEPT_BYTES_MAX = 32 * 1024 * 1024
FROM_HEAP_BYTES_MAX = 4 * 1024 * 1024
"""What is larger is taken from the system and given back each time."""


def keep_freed_memory() -> bool:
    """False: this C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, FROM_HEAP_BYTES_MAX) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX))

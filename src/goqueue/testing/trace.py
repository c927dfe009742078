"""All that happened in a simulation, as one hash: two runs with the same are the same. The last events are kept to be
looked at.
"""

from collections import deque
from hashlib import sha256

KEPT_EVENTS = 200
SHOWN_BYTES = 60


class Trace:
    def __init__(self) -> None:
        self._hash = sha256()
        self.events = 0
        self.bytes = 0
        self._last: deque[tuple[float, str, tuple[str, ...], bytes]] = deque(maxlen=KEPT_EVENTS)

    def note(self, at_s: float, what: str, *words: str | bytes) -> None:
        """Data comes last, as bytes."""
        self.events += 1
        data = words[-1] if words and isinstance(words[-1], bytes) else b""
        texts = tuple(word for word in words if isinstance(word, str))
        self.bytes += len(data)
        self._hash.update(f"{at_s:.6f} {what} {' '.join(texts)} {len(data)}\n".encode() + data)
        self._last.append((at_s, what, texts, data))

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def lines(self) -> list[str]:
        """The last events, as a person would read them."""
        return [
            f"{at_s:12.6f} {what} {' '.join(texts)} {len(data) or ''} {data[:SHOWN_BYTES].hex()}".rstrip()
            for at_s, what, texts, data in self._last
        ]

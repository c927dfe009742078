"""What can go wrong with a disk without a crash: the nth operation of a kind fails, once or from then on."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "open",
    "create",
    "stat",
    "list",
    "read",
    "view",
    "write",
    "allocate",
    "truncate",
    "sync",
    "rename",
    "remove",
    "make_directory",
    "sync_directory",
]
"""`stat` is File.size and Disk.exists; `create` is also a lock that makes its file."""


@dataclass(slots=True)
class Fault:
    kind: Kind
    error: int
    """An errno."""
    prefix: str
    suffix: str
    nth: int
    forever: bool
    kept_bytes: int
    """How much of a failing write reaches the file all the same."""
    seen: int = 0
    """Operations that this fault was about."""
    hits: int = 0
    """How many of them it made fail. A test should look, lest its fault never fired."""

    def matches(self, kind: Kind, path: str) -> bool:
        return kind == self.kind and path.startswith(self.prefix) and path.endswith(self.suffix)

    def strikes(self) -> bool:
        self.seen += 1
        struck = self.seen == self.nth or (self.forever and self.seen > self.nth)
        self.hits += struck
        return struck


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(
        self,
        kind: Kind,
        error: int,
        *,
        prefix: str = "",
        suffix: str = "",
        nth: int = 1,
        forever: bool = False,
        kept_bytes: int = 0,
    ) -> Fault:
        """Let the nth operation from now of this kind fail, on paths (as they were opened) of this form."""
        fault = Fault(kind, error, prefix, suffix, nth, forever, kept_bytes)
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        self._faults.clear()

    def may_strike(self, kind: Kind) -> bool:
        return any(fault.kind == kind for fault in self._faults)

    def strike(self, kind: Kind, *paths: str) -> Fault | None:
        """Count one operation; the first fault that makes it fail, if any does."""
        if not self._faults:  # nearly always, in millions of calls
            return None
        matching = [fault for fault in self._faults if any(fault.matches(kind, path) for path in paths)]
        striking = [fault for fault in matching if fault.strikes()]
        return striking[0] if striking else None

"""What is sent, and how."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    messages: int
    value_bytes: int
    batch: int | None = None
    """Messages in each batch; None lets the client fill batches as messages come."""
    partitions: int = 1
    durability: str | None = None
    """Of the topic; None takes what the broker gives to a new one."""

    def describe(self) -> str:
        batches = "" if self.batch is None else f" in batches of {self.batch:,}"
        plural = "" if self.partitions == 1 else "s"
        return f"{self.messages:,} messages of {self.value_bytes:,} bytes{batches}, {self.partitions} partition{plural}"

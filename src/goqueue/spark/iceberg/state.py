"""How far a table is: a property of the table itself, set by the same commit as the rows that it speaks of.

Spark's checkpoint says what a query will read next. Whether that is in the table already, the table alone can tell: it
may have been written by a run that was killed before its checkpoint was, or by a query with another checkpoint.
"""

from collections.abc import Mapping

import msgspec

PROPERTY = "goqueue.state"


class State(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    topic_id: str
    mode: str = ""
    """How the rows were put into the table, append or upsert; versions before did not say."""
    query: str = ""
    batch: int = -1
    offsets: dict[str, int] = {}
    """By partition: the first offset that is not in the table."""
    dead: tuple[str, ...] = ()
    """Files of rows that could not be read, which this batch has written for the table of dead letters. They are added
    there after this commit, so a run that was killed in between leaves it to the next one."""

    @property
    def positions(self) -> dict[int, int]:
        return {int(number): offset for number, offset in self.offsets.items()}

    def after(self, query: str, batch: int, ends: Mapping[int, int], dead: tuple[str, ...], mode: str = "") -> "State":
        offsets = self.offsets | {str(number): end for number, end in sorted(ends.items())}
        return msgspec.structs.replace(
            self, query=query, batch=batch, offsets=offsets, dead=dead, mode=mode or self.mode
        )

    def has_letters_of(self, other: "State") -> bool:
        """Of a table of dead letters: whether the files that the other state names are in it."""
        if self.dead:
            return self.dead == other.dead
        return (self.query, self.batch) == (other.query, other.batch)  # versions before did not say which files


def read_state(properties: Mapping[str, str]) -> State | None:
    text = properties.get(PROPERTY)
    return None if text is None else msgspec.json.decode(text, type=State)


def written(state: State) -> dict[str, str]:
    return {PROPERTY: msgspec.json.encode(state).decode()}


def told(state: State) -> dict[str, str]:
    """For people, in the summary of a snapshot; it goes when the snapshot expires."""
    offsets = msgspec.json.encode(state.offsets).decode()
    return {"goqueue.query": state.query, "goqueue.batch": str(state.batch), "goqueue.offsets": offsets}

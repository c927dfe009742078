"""What a consumer hands out, and what its user has done with it: a message counts as processed when its user comes back
for more.
"""

from collections.abc import Iterable, Iterator

from goqueue.client.assigned import Assigned, Place
from goqueue.client.fetcher import Chunk, Fetcher
from goqueue.client.message import Message
from goqueue.client.reading import messages_of

_NOTHING: list[Message] = []


class Inbox:
    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._chunk: Chunk | None = None
        self._messages = _NOTHING
        """Of the batch that is being handed out, one by one: a portion of it. `_rest` gives the others."""
        self._rest: Iterator[list[Message]] = iter(())
        self._at = 0
        self._is_last_out = False
        """The message before `_at` is with its user."""
        self._polled: dict[Assigned, int] = {}
        """Partitions of which messages are with their user, and from which offset on."""

    # -- handing out

    def next(self) -> Message | None:
        """One message. None: there is none now, and all that was handed out is processed."""
        at = self._at
        messages = self._messages
        if at < len(messages):
            self._at = at + 1
            return messages[at]
        return None

    def load(self) -> bool:
        """The next messages, for `next`. False: there are none now."""
        self.user_is_back()
        if not self._go_on():
            self._raise_errors()
            return False
        self._is_last_out = True
        return True

    def take(self, messages_max: int) -> list[Message]:
        """As many as there are, up to `messages_max`."""
        self.user_is_back()
        taken: list[Message] = []
        while len(taken) < messages_max:
            if self._at >= len(self._messages) and not self._go_on():
                break
            start, end = self._at, min(len(self._messages), self._at + messages_max - len(taken))
            if start < end:
                assert self._chunk is not None
                self._polled.setdefault(self._chunk.state, self._messages[start].offset)
                taken += self._messages[start:end] if (start, end) != (0, len(self._messages)) else self._messages
                self._at = end
        if not taken:
            self._raise_errors()
        return taken

    def _go_on(self) -> bool:
        """To the next messages. False: there are none now. CorruptBatch: a batch cannot be read further; its reader
        hears of it once, and goes on behind it.
        """
        while True:
            self.mark()
            self._messages, self._at = _NOTHING, 0
            portion = next(self._rest, None)
            if portion is not None:
                self._messages = portion
                if portion:
                    return True
                continue
            self._finish()
            self._chunk = self._fetcher.take()
            if self._chunk is None:
                return False
            self._rest = messages_of(self._chunk.state, self._chunk.batch)

    def _finish(self) -> None:
        if self._chunk is not None:
            state, version, batch = self._chunk
            if state.version == version:
                state.unread -= 1
                state.position = max(state.position, batch.next_offset)
                state.read_all()
            self._chunk, self._messages, self._at, self._rest = None, _NOTHING, 0, iter(())

    def _raise_errors(self) -> None:
        for state in self._fetcher.states.values():
            if state.error is not None and not state.unread:
                error, state.error = state.error, None
                self._fetcher.changed()
                raise error

    # -- what is processed

    def mark(self) -> None:
        """Bring the position of the partition that is being handed out up to date."""
        if self._chunk is None:
            return
        state, version, batch = self._chunk
        if state.version != version:
            return
        if self._at:
            last = self._messages[self._at - 1].offset
            state.position = max(state.position, batch.next_offset if last == batch.last_offset else last + 1)

    def user_is_back(self) -> None:
        self._polled.clear()
        self._is_last_out = False

    @property
    def _last(self) -> Message | None:
        if not self._is_last_out or not self._at or self._chunk is None:
            return None
        return self._messages[self._at - 1]

    def is_out(self, places: Iterable[Place]) -> bool:
        """Whether the user still works on a message of one of them."""
        wanted = set(places)
        last = self._last
        if last is not None and (last.topic, last.partition) in wanted:
            return True
        return any(state.place in wanted for state in self._polled)

    def processed(self, states: Iterable[Assigned]) -> dict[Place, int]:
        """The offset behind the last processed message of each."""
        self.mark()
        last = self._last
        found: dict[Place, int] = {}
        for state in states:
            offset = self._polled.get(state, state.position)
            if last is not None and (last.topic, last.partition) == state.place:
                offset = min(offset, last.offset)
            found[state.place] = offset
        return found

    def delivered(self, states: Iterable[Assigned]) -> dict[Place, int]:
        """The offset behind the last message that was handed out of each."""
        self.mark()
        return {state.place: state.position for state in states}

    def forget(self, places: Iterable[Place]) -> None:
        """Hand out no more of what is here of them."""
        wanted = set(places)
        if self._chunk is not None and self._chunk.state.place in wanted:
            self.mark()
            self._chunk, self._messages, self._at, self._is_last_out = None, _NOTHING, 0, False
            self._rest = iter(())
        self._polled = {state: offset for state, offset in self._polled.items() if state.place not in wanted}

"""A log against a list, with crashes at any moment: the list is what a reader must see."""

from dataclasses import dataclass, replace
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from goqueue.records.batch import Codec
from goqueue.records.decode import decode
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.pending_sync import PendingSync
from goqueue.storage.time_reads import first_at_or_after, records_between
from goqueue.testing.memory_disk import MemoryDisk
from tests.layers import more_often
from tests.logs import DIRECTORY, SMALL, append, batch, open_log, stored_batches


@dataclass(frozen=True)
class Row:
    """One record as the model knows it."""

    offset: int
    value: bytes
    timestamp: int
    epoch: int


class LogMachine(RuleBasedStateMachine):
    options: LogOptions = SMALL

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()
        self.log: Log = open_log(self.disk, self.options)
        self.rows: list[Row] = []
        self.batch_starts: list[int] = []
        self.start = 0
        self.synced = 0
        self.epoch = 1
        self.count = 0
        self.pending: tuple[PendingSync, int, Log] | None = None

    # -- what a user does

    @rule(
        sizes=st.lists(st.sampled_from([0, 3, 40, 300, 700, 1500]), min_size=1, max_size=4),
        together=st.booleans(),
        timestamp=st.integers(0, 60),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
    )
    def append(self, sizes: list[int], together: bool, timestamp: int, codec: Codec) -> None:
        values = []
        for size in sizes:
            self.count += 1
            values.append(f"{self.count}".encode().ljust(size, b"\0" if self.count % 4 == 0 else b"v"))
        groups = [values] if together else [[one] for one in values]
        batches = [batch(*group, timestamp=timestamp + n, codec=codec) for n, group in enumerate(groups)]
        first = append(self.log, *batches, epoch=self.epoch)
        assert first == self.end
        for number, group in enumerate(groups):
            self.batch_starts.append(self.end)
            self.rows += [Row(self.end + n, v, timestamp + number, self.epoch) for n, v in enumerate(group)]

    @property
    def end(self) -> int:
        return max(self.start, self.rows[-1].offset + 1 if self.rows else 0)

    @rule()
    def sync(self) -> None:
        self.log.sync()
        self.synced = self.end

    @rule()
    def begin_sync(self) -> None:
        """As the commit thread does it: the appends behind this point are not covered."""
        self.pending = (PendingSync(self.log), self.end, self.log)

    @precondition(lambda self: self.pending is not None)
    @rule()
    def end_sync(self) -> None:
        assert self.pending is not None
        pending, end, log = self.pending
        self.pending = None
        if log is not self.log:
            return  # of a life that is over
        truncations = log.truncations
        pending.run()
        log.finish_sync(pending)
        if pending.truncations == truncations:
            self.synced = max(self.synced, min(end, self.end))

    @rule()
    def kill(self) -> None:
        """The process dies, the machine lives: all that was written is still there, and none of it counts as synced."""
        self.log = open_log(self.disk, self.options)
        self.synced = self.end
        assert not self.log.report.damage
        assert not self.log.report.truncated_bytes

    @rule()
    def new_epoch(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(now_ms=0)

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.synced = self.end
        self.log = open_log(self.disk, self.options)
        assert self.log.report.scanned_bytes == 0, "a clean stop leaves nothing to scan"
        assert not self.log.report.needed_work, self.log.report

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        self.disk = self.disk.crash(Random(seed))
        self.log = open_log(self.disk, self.options)
        assert not self.log.report.damage
        end = self.log.end_offset
        assert self.synced <= end <= self.end, f"synced up to {self.synced}, found up to {end}"
        self.rows = [row for row in self.rows if row.offset < end]
        self.batch_starts = [at for at in self.batch_starts if at < end]
        self.synced = end

    @rule(data=st.data())
    def crash_inside_an_operation(self, data: st.DataObject) -> None:
        """The log is left in the middle of whatever its next disk operations would have been."""
        copy, before = self.disk, self.disk.op_count
        values = [b"cut off %d" % self.count, b"z" * 900]
        append(self.log, *(batch(value) for value in values), epoch=self.epoch)
        self.log.sync()
        upto = data.draw(st.integers(before, copy.op_count))
        lost = data.draw(st.sampled_from([[], copy.unsynced(upto)]))
        self.disk = copy.crashed(upto, lost=lost)
        self.log = open_log(self.disk, self.options)
        end = self.log.end_offset
        assert self.synced <= end <= self.end + 2
        for value in values:
            self.batch_starts.append(self.end)
            self.rows.append(Row(self.end, value, 1000, self.epoch))
        self.rows = [row for row in self.rows if row.offset < end]
        self.batch_starts = [at for at in self.batch_starts if at < end]
        self.synced = end

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.truncate(offset)
        if offset < self.end:
            kept = max(at for at in [*self.batch_starts, self.start] if at <= offset)
            self.rows = [row for row in self.rows if row.offset < kept]
            self.batch_starts = [at for at in self.batch_starts if at < kept]
            self.synced = self.end
        assert self.log.end_offset == self.end

    @rule(data=st.data())
    def advance_start(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_start(self.start)
        self.synced = max(self.synced, self.start)

    @rule(data=st.data())
    def lose_an_index(self, data: st.DataObject) -> None:
        """An index that is missing, short or damaged changes no answer."""
        self.log.close()
        self.synced = self.end
        paths = [f"{DIRECTORY}/{name}" for name in self.disk.list(DIRECTORY) if name.endswith("index")]
        paths = [path for path in paths if self.disk.open(path).size()]
        if paths:
            path = data.draw(st.sampled_from(paths))
            size = self.disk.open(path).size()
            how = data.draw(st.sampled_from(["missing", "short", "flipped"]))
            if how == "missing":
                self.disk.remove(path)
            elif how == "short":
                self.disk.open(path).truncate(data.draw(st.integers(0, size - 1)))
            else:
                self.disk.flip_bit(path, data.draw(st.integers(0, size * 8 - 1)))
        self.log = open_log(self.disk, self.options)
        assert not self.log.report.damage

    # -- what a reader sees

    @invariant()
    def everything_is_there(self) -> None:
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        found = [
            Row(record.offset, record.value or b"", record.timestamp, one.leader_epoch)
            for one in stored_batches(self.log)
            for record in decode(one)
            if record.offset >= self.start
        ]
        assert found == [row for row in self.rows if row.offset >= self.start]

    @rule(data=st.data(), max_bytes=st.sampled_from([1, 100, 1000, 5000]))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        limit = data.draw(st.integers(self.start, self.end))
        piece = self.log.read(offset, max_bytes, limit)
        at = max((start for start in self.batch_starts if start <= offset), default=None)
        after = min((start for start in self.batch_starts if start > offset), default=self.end)
        if piece is None:
            assert offset >= limit or after > limit
        else:
            assert piece.first_offset == at
            assert piece.next_offset <= limit
            assert piece.length <= max_bytes or piece.next_offset == after

    @rule(timestamp=st.integers(-1, 70))
    def look_up_a_time(self, timestamp: int) -> None:
        expected = next((row for row in self.rows if row.timestamp >= timestamp and row.offset >= self.start), None)
        assert first_at_or_after(self.log, timestamp) == (expected and (expected.offset, expected.timestamp))

    @rule(from_ms=st.integers(0, 70), length=st.integers(0, 30))
    def read_a_time_range(self, from_ms: int, length: int) -> None:
        rows = [row for row in self.rows if row.offset >= self.start]
        stop = next((row.offset for row in rows if row.timestamp >= from_ms + length), self.end)
        expected = [row.offset for row in rows if from_ms <= row.timestamp and row.offset < stop]
        assert [record.offset for record in records_between(self.log, from_ms, from_ms + length)] == expected


class RareCheckpointMachine(LogMachine):
    """Most of the log stands behind the last saved index, and blocks are as large as they are for users."""

    options = replace(SMALL, checkpoint_bytes=5000, index_interval_bytes=4096, segment_bytes=9000)


def settings_for(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings_for(60)
TestRareCheckpointMachine = RareCheckpointMachine.TestCase
TestRareCheckpointMachine.settings = settings_for(60)
TestLongLogMachine = more_often(LogMachine, settings_for(600))
TestLongRareCheckpointMachine = more_often(RareCheckpointMachine, settings_for(600))

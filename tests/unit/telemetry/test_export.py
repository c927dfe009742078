"""Spans leave in a thread of their own, to a file, the standard output or a collector."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from structlog.testing import capture_logs

from goqueue.telemetry.export import FLUSHES_MAX, Exporting
from goqueue.telemetry.export_file import FileSink
from goqueue.telemetry.export_stdout import StdoutSink
from goqueue.telemetry.journeys import Note, Step
from goqueue.telemetry.spans import Span
from tests.unit.telemetry.test_spans import Maker

FAR_S = 30


def spans(*offsets: int) -> list[Span]:
    maker = Maker()
    notes = [(1, Step.RECEIVED, "orders", 0, offset, offset) for offset in offsets]
    return maker.of(*notes, (2, Step.PERSISTED, "orders", 0, offsets[0], offsets[-1]))


def read(path: Path) -> list[int]:
    return [json.loads(line)["offset"] for line in path.read_text("utf-8").splitlines()]


def test_a_span_is_a_line_of_json_without_what_says_nothing() -> None:
    out = io.BytesIO()
    StdoutSink(out).write(spans(7))
    (line,) = out.getvalue().decode().splitlines()
    fields = json.loads(line)
    assert (fields["name"], fields["offset"], fields["start_ms"], fields["end_ms"]) == ("publish orders", 7, 1, 2)
    assert not {"consumer_group", "error", "links", "parent_span_id"} & fields.keys()


def test_a_full_file_is_turned_over_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "traces" / "spans.jsonl"
    size = len(json.dumps(spans(0)[0]._asdict()))
    sink = FileSink(path, bytes_max=2 * size, files_max=3)
    for offset in range(8):
        sink.write(spans(offset))
    sink.close()
    files = sorted(each.name for each in path.parent.iterdir())
    assert files == ["spans.jsonl", "spans.jsonl.1", "spans.jsonl.2"]
    kept = [offset for name in reversed(files) for offset in read(path.parent / name)]
    assert kept == list(range(8))[-len(kept) :]
    assert all((path.parent / name).stat().st_size <= 2 * size for name in files)


def test_an_old_file_is_written_on_to(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    for offset in (1, 2):
        sink = FileSink(path, bytes_max=1 << 20, files_max=2)
        sink.write(spans(offset))
        sink.close()
    assert read(path) == [1, 2]


class Slow:
    """Takes nothing before it may, and fails when it is told to."""

    name = "slow"

    def __init__(self) -> None:
        self.may = Event()
        self.begun = Event()
        self.fails = False
        self.taken: list[int] = []
        self.is_closed = False

    def write(self, spans: Sequence[Span]) -> None:
        self.begun.set()
        assert self.may.wait(FAR_S)
        if self.fails:
            raise ConnectionError("nobody there")
        self.taken += [span.offset for span in spans]

    def close(self) -> None:
        self.is_closed = True


def flush(offset: int) -> list[Note]:
    return [Note(1, Step.RECEIVED, "orders", 0, offset, offset), Note(2, Step.PERSISTED, "orders", 0, offset, offset)]


def test_a_slow_receiver_costs_what_it_does_not_take_and_nobody_waits() -> None:
    sink = Slow()
    exporting = Exporting(Maker(), sink)
    exporting.offer(flush(0))
    assert sink.begun.wait(FAR_S)
    for offset in range(1, FLUSHES_MAX + 6):
        exporting.offer(flush(offset))
    assert exporting.notes_dropped == 2 * 5
    sink.may.set()
    exporting.stop()
    assert sink.taken == list(range(FLUSHES_MAX + 1))
    assert sink.is_closed
    assert (exporting.exported, exporting.failed) == (FLUSHES_MAX + 1, 0)


def test_a_receiver_that_fails_is_told_of_once_and_tried_again() -> None:
    sink = Slow()
    sink.may.set()
    sink.fails = True
    with capture_logs() as told:
        exporting = Exporting(Maker(), sink)
        for offset in range(3):
            exporting.offer(flush(offset))
        exporting.stop()
    assert [each["event"] for each in told] == ["spans not exported"]
    assert (exporting.exported, exporting.failed) == (0, 3)

"""A node that says it is ready has made ready what its first clients would else wait for."""

from pathlib import Path

from goqueue.cli.bench.broker import own_broker


def test_a_node_that_is_ready_has_its_record_codec(tmp_path: Path) -> None:
    with own_broker(tmp_path) as broker:
        maps = Path(f"/proc/{broker.process.pid}/maps").read_text("utf-8")
    assert "_crecords" in maps, "150 ms of the event loop, a second after the first message"

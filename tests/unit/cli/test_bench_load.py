"""A load that did not go through gives no figures: each way in which it can fail is noticed."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message

from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.librdkafka import STALL_S_MAX, Client, Topic
from goqueue.cli.bench.raw import ECHO_BUFFER_BYTES, SYNC_FILE_BYTES, SyncedFile, echo
from goqueue.cli.bench.throughput import check_order


def message(offset: int, value: bytes = b"12345", partition: int = 0, error: KafkaError | None = None) -> Message:
    return Message("t", partition, offset, None, value, error=error)


def test_messages_in_order_move_the_expected_offsets() -> None:
    expected = [3, 0]
    check_order([message(3), message(0, partition=1), message(4)], expected, 5)
    assert expected == [5, 1]


@pytest.mark.parametrize(
    "wrong",
    [message(4), message(2), message(3, b"1234"), message(3, partition=1), message(3, error=KafkaError(-195))],
    ids=["missing", "twice", "short", "of another partition", "failed"],
)
def test_a_wrong_message_is_noticed(wrong: Message) -> None:
    with pytest.raises(BenchFailed):
        check_order([wrong], [3, 0], 5)


def test_a_message_that_was_not_acknowledged_is_noticed() -> None:
    client = Client(Broker("127.0.0.1:9092"))
    client.on_delivery(None, message(0))
    client.check(has_progress=True)
    client.on_delivery(KafkaError(KafkaError._MSG_TIMED_OUT), message(1))
    with pytest.raises(BenchFailed, match=r"a message was not taken: .*timed out"):
        client.check(has_progress=True)


def test_a_lost_broker_is_noticed_and_a_hiccup_is_not() -> None:
    client = Client(Broker("127.0.0.1:9092"))
    client.settings["error_cb"](KafkaError(KafkaError._TRANSPORT))
    client.check(has_progress=False)
    client.settings["error_cb"](KafkaError(KafkaError._ALL_BROKERS_DOWN))
    with pytest.raises(BenchFailed, match="the broker was lost"):
        client.check(has_progress=True)


def test_a_broker_that_stalls_is_given_up() -> None:
    now_s = [1000.0]
    client = Client(Broker("127.0.0.1:9092"), lambda: now_s[0])
    now_s[0] += STALL_S_MAX
    client.check(has_progress=False)
    client.check(has_progress=True)
    now_s[0] += STALL_S_MAX
    client.check(has_progress=False)
    now_s[0] += 1
    with pytest.raises(BenchFailed, match="answered nothing"):
        client.check(has_progress=False)


@pytest.mark.parametrize(("ends", "is_right"), [([2, 3], True), ([2, 2], False), ([2, 4], False)])
def test_stored_messages_are_as_many_as_were_acknowledged(
    ends: list[int], is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Topic, "ends", lambda self: ends)
    topic = Topic("t", 2, "os", None)  # type: ignore[arg-type]  # nobody is asked
    if is_right:
        assert topic.check_stored(5) == 5
    else:
        with pytest.raises(BenchFailed, match=f"5 messages were acknowledged, but {sum(ends)} are stored"):
            topic.check_stored(5)


@pytest.mark.parametrize(("request_bytes", "reply_bytes"), [(1, 1), (1000, 70), (90, 3 * ECHO_BUFFER_BYTES + 1)])
@pytest.mark.parametrize("in_flight", [1, 5])
def test_the_echo_answers_every_request(request_bytes: int, reply_bytes: int, in_flight: int) -> None:
    with echo(request_bytes, reply_bytes) as server:
        run = server.run(20, in_flight)
        assert run.requests_per_s > 0
        assert run.cpu_us_per_request > 0
        assert server.round_trip_s() > 0


def test_the_raw_file_is_written_over_and_leaves_nothing(tmp_path: Path) -> None:
    file = SyncedFile(tmp_path, SYNC_FILE_BYTES // 2)
    assert all(file.write_s() > 0 for _ in range(3))
    file.close()
    assert list(tmp_path.iterdir()) == []

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.machines.partitions.producer_state import ACCEPT, EXPIRY_MS, Duplicate, ProducerStates, ProducerView
from goqueue.model.codes import Code
from goqueue.model.errors import DamagedFile
from goqueue.records.batch import CONTROL_BIT, NO_PRODUCER, TRANSACTIONAL_BIT, Batch
from tests.unit.machines.transaction_samples import NOW_MS, data_batch, marker

SEQUENCE_MAX = 2**31 - 1


def holding(*batches: Batch) -> ProducerStates:
    """After these batches, one behind the other from offset 100 on."""
    states = ProducerStates()
    offset = 100
    for batch in batches:
        assert batch.is_control or states.check(batch) is ACCEPT
        states.record(batch, offset)
        offset += batch.last_offset_delta + 1
    return states


def test_a_batch_without_producer_is_accepted_and_leaves_nothing_behind() -> None:
    states = holding(data_batch(NO_PRODUCER, -1), data_batch(NO_PRODUCER, -1))
    assert states.describe() == []


def test_a_duplicate_is_answered_with_the_offset_of_the_first_time() -> None:
    states = holding(data_batch(7, 0, count=3, timestamp=5), data_batch(7, 3, count=2, timestamp=6))
    assert states.check(data_batch(7, 0, count=3, timestamp=5)) == Duplicate(100, 102, 5)
    assert states.check(data_batch(7, 3, count=2, timestamp=6)) == Duplicate(103, 104, 6)


def test_the_last_five_batches_are_known_and_no_more() -> None:
    states = holding(*(data_batch(7, number) for number in range(6)))
    answers = [states.check(data_batch(7, number)) for number in range(6)]
    known = [Duplicate(100 + number, 100 + number, NOW_MS) for number in range(1, 6)]
    assert answers == [Code.OUT_OF_ORDER_SEQUENCE_NUMBER, *known]


@pytest.mark.parametrize(
    ("sequence", "count"),
    [(4, 1), (6, 1), (0, 2), (3, 3), (1, 3), (SEQUENCE_MAX, 1)],
    ids=["again from within", "gap", "part of one", "from within over the end", "over two", "far behind"],
)
def test_a_sequence_that_is_not_the_next_is_out_of_order(sequence: int, count: int) -> None:
    states = holding(data_batch(7, 0, count=3), data_batch(7, 3, count=2))
    assert states.check(data_batch(7, sequence, count=count)) is Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(data_batch(7, 5)) is ACCEPT


def test_sequences_wrap_to_zero() -> None:
    states = holding(data_batch(7, SEQUENCE_MAX - 1, count=2))
    assert states.check(data_batch(7, 0)) is ACCEPT
    assert states.check(data_batch(7, 1)) is Code.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_inside_a_batch() -> None:
    states = holding(data_batch(7, SEQUENCE_MAX - 1, count=4))
    assert states.describe()[0].last_sequence == 1
    assert states.check(data_batch(7, SEQUENCE_MAX - 1, count=4)) == Duplicate(100, 103, NOW_MS)
    assert states.check(data_batch(7, 2)) is ACCEPT


def test_a_compacted_batch_still_spans_the_sequences_it_had() -> None:
    states = holding(data_batch(7, 0, count=10)._replace(record_count=2))
    assert states.check(data_batch(7, 10)) is ACCEPT
    assert states.check(data_batch(7, 2)) is Code.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced() -> None:
    states = holding(data_batch(7, 0, epoch=3))
    assert states.check(data_batch(7, 1, epoch=2)) is Code.INVALID_PRODUCER_EPOCH
    assert states.check(data_batch(7, 0, epoch=2)) is Code.INVALID_PRODUCER_EPOCH


def test_the_first_batch_of_a_new_epoch_is_no_duplicate() -> None:
    states = holding(data_batch(7, 0, epoch=0))
    assert states.check(data_batch(7, 0, epoch=1)) is ACCEPT


def test_a_duplicate_is_looked_for_in_its_own_epoch() -> None:
    states = holding(data_batch(7, 0, epoch=0), data_batch(7, 0, epoch=1))
    assert states.check(data_batch(7, 0, epoch=1)) == Duplicate(101, 101, NOW_MS)


def test_a_new_epoch_begins_at_zero() -> None:
    states = holding(data_batch(7, 0, epoch=0))
    assert states.check(data_batch(7, 1, epoch=1)) is Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    states.record(data_batch(7, 0, epoch=1), 101)
    assert states.check(data_batch(7, 1, epoch=1)) is ACCEPT


def test_a_producer_whose_state_expired_goes_on() -> None:
    states = holding(data_batch(7, 0), data_batch(7, 1))
    assert states.expire(EXPIRY_MS) == 0  # heard since the last look, nobody knows when
    assert states.expire(EXPIRY_MS - 1) == 0
    assert states.check(data_batch(7, 0)) == Duplicate(100, 100, NOW_MS)
    assert states.expire(1) == 1
    assert states.describe() == []
    assert states.check(data_batch(7, 2)) is ACCEPT


def test_a_marker_does_not_stop_a_producer_whose_state_expired() -> None:
    states = holding(marker(7, epoch=3))
    assert states.check(data_batch(7, 57, epoch=3)) is ACCEPT


def test_an_old_time_of_records_does_not_make_a_producer_expire() -> None:
    states = ProducerStates()
    states.record(data_batch(7, 0, timestamp=1), 0)
    assert states.expire(1) == 0
    assert states.expire(1) == 0


def test_how_long_a_producer_was_silent_is_in_a_snapshot() -> None:
    states = holding(data_batch(7, 0), data_batch(8, 0))
    states.expire(0)
    states.expire(EXPIRY_MS - 1)
    states.record(data_batch(8, 1), 102)
    again = ProducerStates.decode(states.encode())
    assert again.expire(1) == 1
    assert [view.producer_id for view in again.describe()] == [8]


def test_an_unknown_producer_of_transactions_version_2_begins_at_zero() -> None:
    states = holding(marker(8, epoch=3))
    for producer_id in (7, 8):
        later = data_batch(producer_id, 1, epoch=3, transactional=True)
        assert states.check(later, from_zero=True) is Code.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert states.check(later._replace(base_sequence=0), from_zero=True) is ACCEPT


@pytest.mark.parametrize(
    "batch",
    [
        data_batch(7, -1),
        data_batch(7, 0, epoch=-1),
        data_batch(NO_PRODUCER, -1, transactional=True),
        data_batch(NO_PRODUCER, -1)._replace(attributes=CONTROL_BIT),
        data_batch(7, 0)._replace(attributes=CONTROL_BIT | TRANSACTIONAL_BIT),
    ],
    ids=["no sequence", "no epoch", "transaction without producer", "control batch", "marker"],
)
def test_a_client_cannot_send_what_only_a_broker_writes(batch: Batch) -> None:
    assert ProducerStates().check(batch) is Code.INVALID_RECORD


def test_a_transaction_is_not_mixed_with_other_writes() -> None:
    states = holding(data_batch(7, 0, transactional=True))
    assert states.check(data_batch(7, 1)) is Code.INVALID_TXN_STATE
    assert states.check(data_batch(7, 1, transactional=True)) is ACCEPT
    states.record(marker(7), 101)
    assert states.check(data_batch(7, 1)) is ACCEPT


def test_sequences_go_on_behind_a_marker_of_the_same_epoch() -> None:
    states = holding(data_batch(7, 0, transactional=True), marker(7))
    assert states.check(data_batch(7, 0, transactional=True)) == Duplicate(100, 100, NOW_MS)
    assert states.check(data_batch(7, 1, transactional=True)) is ACCEPT


def test_a_marker_of_a_newer_epoch_fences_its_producer() -> None:
    states = holding(data_batch(7, 0, transactional=True), marker(7, epoch=1, commit=False))
    assert states.check(data_batch(7, 1, transactional=True)) is Code.INVALID_PRODUCER_EPOCH
    assert states.check(data_batch(7, 1, epoch=1, transactional=True)) is Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(data_batch(7, 0, epoch=1, transactional=True)) is ACCEPT


def test_a_marker_that_is_asked_for_again_is_not_written_again() -> None:
    states = holding(data_batch(7, 0, transactional=True))
    assert states.check_marker(7, 0, 0) is ACCEPT
    states.record(marker(7), 101)
    assert states.check_marker(7, 0, 0) is Code.INVALID_TXN_STATE


def test_a_fencing_marker_is_written_once_where_its_producer_wrote_nothing() -> None:
    states = holding(data_batch(8, 0))
    for producer_id in (7, 8):
        assert states.check_marker(producer_id, 1, 0) is ACCEPT
        states.record(marker(producer_id, epoch=1), 101)
        assert states.check_marker(producer_id, 1, 0) is Code.INVALID_TXN_STATE


def test_a_coordinator_of_the_past_and_a_producer_of_the_past_get_no_marker() -> None:
    states = holding(data_batch(7, 0, epoch=2, transactional=True), marker(7, epoch=2, coordinator=5))
    states.record(data_batch(7, 1, epoch=2, transactional=True), 102)
    assert states.check_marker(7, 2, 4) is Code.TRANSACTION_COORDINATOR_FENCED
    assert states.check_marker(7, 1, 5) is Code.INVALID_PRODUCER_EPOCH
    assert states.check_marker(7, 2, 5) is ACCEPT


def test_a_new_coordinator_that_finds_nothing_to_end_fences_the_old_one_all_the_same() -> None:
    """The old one's marker may still be on its way, and would end the next transaction of the same epoch."""
    states = holding(data_batch(7, 0, transactional=True), marker(7, coordinator=4))
    assert states.check_marker(7, 0, 5) is ACCEPT
    states.record(marker(7, coordinator=5), 102)
    states.record(data_batch(7, 1, transactional=True), 103)
    assert states.check_marker(7, 0, 4) is Code.TRANSACTION_COORDINATOR_FENCED
    assert 7 in states.open_transactions


def test_a_producer_with_an_open_transaction_never_expires() -> None:
    states = holding(data_batch(7, 0, transactional=True))
    assert states.expire(0) == 0
    assert states.expire(100 * EXPIRY_MS) == 0
    states.record(marker(7), 101)
    assert states.expire(EXPIRY_MS) == 0
    assert states.expire(EXPIRY_MS) == 1


def test_an_older_epoch_found_at_recovery_changes_no_sequence() -> None:
    states = holding(data_batch(7, 0, epoch=1))
    states.record(data_batch(7, 5, epoch=0), 101)
    assert states.check(data_batch(7, 1, epoch=1)) is ACCEPT


def test_a_marker_emptied_by_compaction_ends_its_transaction_and_hides_nothing() -> None:
    states = holding(data_batch(7, 0, transactional=True), marker(7, commit=False)._replace(record_count=0))
    assert 7 not in states.open_transactions
    assert states.open_transactions.aborted_in(0, 1000) == []


def test_producers_are_described() -> None:
    states = holding(
        data_batch(7, 5, count=2, epoch=1, timestamp=9),
        marker(8, epoch=2, coordinator=4),
        data_batch(9, 0, transactional=True),
    )
    assert states.describe() == [
        ProducerView(7, 1, 6, 9, -1, -1),
        ProducerView(8, 2, -1, -1, 4, -1),
        ProducerView(9, 0, 0, NOW_MS, -1, 103),
    ]


def test_a_damaged_snapshot_is_refused() -> None:
    whole = holding(data_batch(7, 0)).encode()
    for data in (b"", whole[:-1], b"\x93\x09" + whole[2:], b"\x93" + whole):
        with pytest.raises(DamagedFile):
            ProducerStates.decode(data)


class Model:
    """The rules once more, over the whole history and without any state."""

    def __init__(self) -> None:
        self.log: list[Batch] = []

    def verdict(self, batch: Batch) -> Code | Duplicate:
        before = [each for each in self.log if each.producer_id == batch.producer_id]
        if not before:
            return ACCEPT
        epoch = max(each.producer_epoch for each in before)
        if batch.producer_epoch < epoch:
            return Code.INVALID_PRODUCER_EPOCH
        same = [each for each in before if each.producer_epoch == batch.producer_epoch and not each.is_control]
        for each in same[-5:]:
            if (each.base_sequence, each.record_count) == (batch.base_sequence, batch.record_count):
                return Duplicate(each.base_offset, each.last_offset, each.max_timestamp)
        if same:
            is_next = batch.base_sequence == (same[-1].base_sequence + same[-1].record_count) % 2**31
        else:
            # Unknown but for markers of its only epoch: it may have had a state that expired.
            is_unknown = {each.producer_epoch for each in before} == {batch.producer_epoch}
            is_next = is_unknown or batch.base_sequence == 0
        if not is_next:
            return Code.OUT_OF_ORDER_SEQUENCE_NUMBER
        ends = [each.is_control for each in before if each.is_transactional]
        is_open = bool(ends) and not ends[-1]
        return Code.INVALID_TXN_STATE if is_open and not batch.is_transactional else ACCEPT

    def append(self, batch: Batch) -> Batch:
        self.log.append(batch._replace(base_offset=self.log[-1].next_offset if self.log else 0))
        return self.log[-1]


class Step(NamedTuple):
    what: str
    producer_id: int
    epoch: int
    records: int
    transactional: bool
    pick: int


steps = st.builds(
    Step,
    st.sampled_from(["next", "next", "next", "again", "start", "commit", "abort", "snapshot"]),
    producer_id=st.integers(0, 1),
    epoch=st.sampled_from([0, 0, 0, 1, 2]),
    records=st.integers(1, 3),
    transactional=st.booleans(),
    pick=st.integers(0, 9),
)


def sent_in(step: Step, log: list[Batch]) -> Batch:
    """A batch as a client may send it: the next, one that was sent before, or one out of nowhere."""
    sent = [each for each in log if each.producer_id == step.producer_id and not each.is_control]
    if step.what == "again" and sent:
        return sent[-1 - step.pick % len(sent)]
    epoch, sequence = step.epoch, (0, 1, SEQUENCE_MAX - 3, SEQUENCE_MAX)[step.pick % 4]
    if step.what == "next" and sent:
        epoch, sequence = sent[-1].producer_epoch, (sent[-1].base_sequence + sent[-1].record_count) % 2**31
    return data_batch(
        step.producer_id,
        sequence,
        count=step.records,
        epoch=epoch,
        transactional=step.transactional,
        timestamp=NOW_MS + len(log),
    )


@settings(max_examples=200)
@given(st.lists(steps, max_size=30))
def test_states_answer_as_the_whole_history_does(history: list[Step]) -> None:
    model, states = Model(), ProducerStates()
    snapshot, taken_at = states.encode(), 0
    for step in history:
        if step.what == "snapshot":
            snapshot, taken_at = states.encode(), len(model.log)
            continue
        if step.what in ("commit", "abort"):
            batch = marker(step.producer_id, epoch=step.epoch, commit=step.what == "commit")
            is_accepted = states.check_marker(step.producer_id, step.epoch, 0) is ACCEPT
        else:
            batch = sent_in(step, model.log)
            verdict = states.check(batch)
            assert verdict == model.verdict(batch)
            is_accepted = verdict is ACCEPT
        if is_accepted:
            states.record(batch, model.append(batch).base_offset)
    replayed, from_snapshot = ProducerStates(), ProducerStates.decode(snapshot)
    replayed.replay(model.log)
    from_snapshot.replay(model.log[taken_at:])
    assert replayed.encode() == from_snapshot.encode() == states.encode()

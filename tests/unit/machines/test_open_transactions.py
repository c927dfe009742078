import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.machines.partitions.open_transactions import NO_OFFSET, OpenTransactions
from goqueue.machines.partitions.producer_state import ProducerStates
from goqueue.model.errors import DamagedFile
from tests.unit.machines.transaction_samples import data_batch, marker


def test_without_transactions_all_below_the_high_watermark_is_stable() -> None:
    assert OpenTransactions().last_stable_offset(50) == 50


def test_nothing_behind_the_first_undecided_record_is_stable() -> None:
    transactions = OpenTransactions()
    transactions.begin(7, 10)
    transactions.begin(8, 20)
    transactions.begin(7, 30)
    assert transactions.last_stable_offset(50) == 10
    assert transactions.last_stable_offset(50) == 10
    assert (transactions.first_offset(7), transactions.first_offset(9)) == (10, NO_OFFSET)
    transactions.end(7, 40, aborted=False)
    assert transactions.last_stable_offset(50) == 20
    transactions.end(8, 41, aborted=False)
    assert transactions.last_stable_offset(50) == 50


def test_a_transaction_that_began_later_may_end_first() -> None:
    transactions = OpenTransactions()
    transactions.begin(7, 10)
    transactions.begin(8, 20)
    transactions.end(8, 30, aborted=True)
    assert transactions.last_stable_offset(50) == 10
    assert transactions.aborted_in(0, 50) == [(8, 20)]


def test_a_marker_above_the_high_watermark_decides_nothing_yet() -> None:
    transactions = OpenTransactions()
    transactions.begin(7, 10)
    transactions.end(7, 20, aborted=False)
    assert [transactions.last_stable_offset(mark) for mark in (5, 15, 20, 21)] == [5, 10, 10, 21]


def test_a_marker_without_records_decides_nothing() -> None:
    transactions = OpenTransactions()
    transactions.end(7, 20, aborted=True)
    assert transactions.aborted_in(0, 100) == []
    assert transactions.last_stable_offset(20) == 20


def test_an_aborted_transaction_is_found_from_its_first_record_to_its_marker() -> None:
    transactions = OpenTransactions()
    transactions.begin(7, 10)
    transactions.end(7, 20, aborted=True)
    found = [transactions.aborted_in(offset, offset) for offset in (9, 10, 15, 20, 21)]
    assert found == [[], [(7, 10)], [(7, 10)], [(7, 10)], []]


def test_an_aborted_transaction_that_begins_where_the_range_ends_is_found() -> None:
    transactions = OpenTransactions()
    for first in (0, 2):
        transactions.begin(7, first)
        transactions.end(7, first + 1, aborted=True)
    assert transactions.aborted_in(0, 1) == [(7, 0)]
    assert transactions.aborted_in(0, 2) == [(7, 0), (7, 2)]


def test_what_was_aborted_is_known_after_a_restart() -> None:
    log = [data_batch(7, 0, transactional=True), marker(7, commit=False, offset=1)]
    states = ProducerStates()
    states.replay(log)
    again = ProducerStates.decode(states.encode())
    assert states.open_transactions.aborted_in(0, 0) == again.open_transactions.aborted_in(0, 0) == [(7, 0)]


def test_what_was_aborted_below_the_start_of_the_log_is_forgotten() -> None:
    transactions = OpenTransactions()
    for first in (0, 10, 20):
        transactions.begin(7, first)
        transactions.end(7, first + 5, aborted=True)
    transactions.drop_below(15)
    assert transactions.aborted_in(0, 100) == [(7, 10), (7, 20)]
    transactions.drop_below(16)
    assert transactions.aborted_in(0, 100) == [(7, 20)]


def test_stable_never_lies_below_the_start_of_the_log() -> None:
    transactions = OpenTransactions()
    transactions.begin(7, 10)
    transactions.drop_below(30)
    assert transactions.last_stable_offset(50) == 30
    assert OpenTransactions.decode(transactions.encode()).last_stable_offset(50) == 30


def test_a_damaged_snapshot_is_refused() -> None:
    whole = OpenTransactions().encode()
    for data in (b"", whole[:-1], whole[:1] + b"\x09" + whole[2:], whole + b"\x00"):
        with pytest.raises(DamagedFile):
            OpenTransactions.decode(data)


def test_a_search_looks_only_at_what_it_may_find() -> None:
    """100,000 aborted transactions; the search must not walk them: it reads fewer entries than it finds, plus two."""
    transactions = OpenTransactions()
    for number in range(100_000):
        transactions.begin(number % 3, number * 10)
        transactions.end(number % 3, number * 10 + 9, aborted=True)

    class Counted:
        def __init__(self, column: "object") -> None:
            self.column, self.reads = column, 0

        def __getitem__(self, place: int) -> int:
            self.reads += 1
            return self.column[place]  # type: ignore[index, no-any-return]

    counted = transactions._first_offsets = Counted(transactions._first_offsets)  # type: ignore[assignment]
    assert transactions.aborted_in(500_000, 500_049) == [(number % 3, number * 10) for number in range(50_000, 50_005)]
    assert counted.reads <= 6


steps = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["data", "data", "commit", "abort"])), max_size=40)


@settings(max_examples=300)
@given(steps, st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_the_index_says_what_the_history_says(
    history: list[tuple[int, str]], first: int, last: int, watermark: int
) -> None:
    transactions = OpenTransactions()
    begun: dict[int, int] = {}
    ended: list[tuple[int, int, int, bool]] = []
    for offset, (producer_id, what) in enumerate(history):
        if what == "data":
            transactions.begin(producer_id, offset)
            begun.setdefault(producer_id, offset)
        else:
            transactions.end(producer_id, offset, aborted=what == "abort")
            if producer_id in begun:
                ended.append((producer_id, begun.pop(producer_id), offset, what == "abort"))
    undecided = [*begun.values(), *(start for _, start, end, _ in ended if end >= watermark)]
    aborted = [
        (producer_id, start)
        for producer_id, start, end, is_abort in ended
        if is_abort and start <= last and end >= first
    ]
    for each in (transactions, OpenTransactions.decode(transactions.encode())):
        assert each.aborted_in(first, last) == aborted
        assert each.last_stable_offset(watermark) == min([watermark, *undecided])

"""The state of a log on disk: what is stored comes back, and what earlier versions stored is read."""

import pytest

from goqueue.model.errors import DamagedFile
from goqueue.records.epochs import EpochHistory
from goqueue.records.log_files import EPOCH, STATE_FORMAT, STATE_HEAD, Kind, LogFacts, pack
from goqueue.storage.state import LogState
from goqueue.testing import MemoryDisk
from tests.logs import DIRECTORY, append, batch, open_log, stored

ID = bytes(range(16))
GOLDEN = bytes.fromhex(
    "07000000000000000900000000000000020000000100000000000000000000000400000005000000000000000200010203040506070809"
    "0a0b0c0d0e0f0c000000000000000b00000000000000ffffffffffffffff01"
)


def facts() -> LogFacts:
    return LogFacts(7, 9, EpochHistory([(1, 0), (4, 5)]), ID, gaps_to=12, tombstones_to=11, is_doubtful=True)


def test_all_that_a_log_remembers_comes_back() -> None:
    found = LogFacts.decode(facts().encode())
    assert found.epochs.entries() == [(1, 0), (4, 5)]
    found.epochs = expected_epochs = EpochHistory()
    expected = facts()
    expected.epochs = expected_epochs
    assert found == expected


def test_what_is_stored_is_what_earlier_versions_stored() -> None:
    assert facts().encode() == GOLDEN


def test_the_first_format_is_read() -> None:
    body = STATE_HEAD.pack(3, 0, 1) + EPOCH.pack(2, 0)
    found = LogFacts.decode(body)
    assert (found.format, found.start_offset, found.epochs.entries()) == (1, 3, [(2, 0)])
    assert (found.topic_id, found.gaps_to, found.tombstones_to, found.is_doubtful) == (b"", 0, 0, False)


def test_what_a_later_format_adds_is_passed_over() -> None:
    found = LogFacts.decode(facts().encode() + b"more")
    assert (found.topic_id, found.is_doubtful) == (ID, True)


@pytest.mark.parametrize("cut", [1, 10, 25])
def test_a_state_that_is_cut_off_is_damage(cut: int) -> None:
    with pytest.raises(DamagedFile):
        LogFacts.decode(facts().encode()[:-cut])


def test_a_log_of_the_first_format_is_rewritten_when_it_is_opened() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    log.close()
    disk.remove(f"{DIRECTORY}/state")
    file = disk.open(f"{DIRECTORY}/state", create=True)
    file.write(0, [pack(Kind.LOG_STATE, STATE_HEAD.pack(0, 0, 1) + EPOCH.pack(1, 0))])
    file.sync()
    disk.sync_directory(DIRECTORY)
    again = open_log(disk)
    assert stored(again) == [(0, b"a")]
    assert not again.is_new
    assert LogState.load(disk.crashed(), DIRECTORY).format == STATE_FORMAT

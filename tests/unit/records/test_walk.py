"""Walking past damage: one damaged batch costs one batch."""

from goqueue.records.batch import place
from goqueue.records.epochs import EpochHistory
from goqueue.records.walk import Damage, Expected, Found, lost_a_sector, walk
from tests.logs import batch

EXPECTED = Expected(EpochHistory([(1, 0)]))


def log_bytes(*values: bytes) -> bytearray:
    data = bytearray()
    for offset, value in enumerate(values):
        one = batch(value)
        place(one, offset, 1)
        data += one.data
    return data


def offsets(
    data: bytearray, expected: Expected = EXPECTED, next_offset: int | None = None
) -> list[int | tuple[int, int]]:
    """An offset for each batch, (first, next) for each damage."""
    return [
        item.batch.base_offset if isinstance(item, Found) else (item.first_offset, item.next_offset)
        for item in walk(memoryview(data), 0, expected, next_offset)
    ]


def test_a_sound_log_is_walked_to_its_end() -> None:
    assert offsets(log_bytes(b"a", b"b", b"c")) == [0, 1, 2]


def test_every_flipped_bit_costs_exactly_its_batch() -> None:
    """Also in the bytes that the checksum does not cover."""
    data = log_bytes(b"a" * 20, b"b" * 20, b"c" * 20)
    size = len(data) // 3
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        hit = bit // 8 // size
        expected: list[int | tuple[int, int]] = [0, 1, 2]
        expected[hit] = (hit, hit + 1)
        assert offsets(damaged, next_offset=3) == expected, f"bit {bit}"


def test_a_whole_batch_inside_a_message_is_not_taken_for_one_of_ours() -> None:
    inner = batch(b"inner")
    place(inner, 2, 1)
    data = log_bytes(b"a", bytes(inner.data), b"c")
    data[len(log_bytes(b"a")) + 70] ^= 1
    assert offsets(data) == [0, (1, 2), 2]


def test_an_offset_out_of_turn_is_damage_unless_compaction_leaves_gaps() -> None:
    first, second = batch(b"a"), batch(b"b")
    place(first, 0, 1)
    place(second, 7, 1)
    data = bytearray(bytes(first.data) + bytes(second.data))
    assert offsets(data) == [0, (1, 1)]
    assert offsets(data, EXPECTED._replace(has_gaps=True)) == [0, 7]


def test_an_epoch_that_never_wrote_the_offset_is_damage() -> None:
    one = batch(b"a")
    place(one, 0, 2)
    (damage,) = walk(one.data, 0, EXPECTED)
    assert isinstance(damage, Damage)
    assert "epoch 2" in damage.reason


def test_a_lost_sector_is_told_from_rot() -> None:
    data = log_bytes(b"x" * 3000)
    rot, hole, torn = bytearray(data), bytearray(data), bytearray(data)
    rot[700] ^= 4
    hole[1024:1536] = bytes(512)
    torn[2048:] = bytes(len(torn) - 2048)
    assert not lost_a_sector(memoryview(rot), 0, at_end_of_file=False)
    assert lost_a_sector(memoryview(hole), 0, at_end_of_file=False)
    assert lost_a_sector(memoryview(torn), 0, at_end_of_file=True)


def test_zeros_that_a_batch_has_by_nature_are_no_lost_sector() -> None:
    data = log_bytes(b"x" * 600)
    assert data[-1] == 0  # every record ends with its number of headers
    assert data[:7] == bytes(7)  # the high bytes of the offset
    data[100] ^= 1
    for position in range(505, 512):  # the batch begins with its zeros at the end of a sector
        assert not lost_a_sector(memoryview(data), position, at_end_of_file=False)

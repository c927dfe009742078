import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from struct import pack

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import Codec
from goqueue.records.compression import XERIAL_BLOCK_BYTES, XERIAL_MAGIC, ZSTD_WINDOW_BYTES_MAX, compress, decompress
from tests.unit.records.samples import ALL_CODECS, COMPRESSED, MIB, quick, run_python, thorough

TEXT = b"the quick brown fox " * 5000


def gzip(data: bytes, level: int = 6) -> bytes:
    return zlib.compress(data, level, wbits=31)


def snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xerial(*blocks: bytes, version: int = 1) -> bytes:
    return pack(">8sii", XERIAL_MAGIC, version, version) + b"".join(pack(">i", len(block)) + block for block in blocks)


def zstd_zeros(mebibytes: int, window_log: int = 21) -> bytes:
    """A frame of eight 4-byte blocks for each mebibyte, the densest that zstd can be; of unknown size."""
    blocks = [(2 | 131072 << 3).to_bytes(3, "little") + b"\0"] * (8 * mebibytes)
    blocks.append((1).to_bytes(3, "little"))
    return b"\x28\xb5\x2f\xfd\0" + bytes([window_log - 10 << 3]) + b"".join(blocks)


FOREIGN: dict[str, tuple[Codec, Callable[[bytes], bytes]]] = {
    "gzip, best": (Codec.GZIP, lambda data: gzip(data, 9)),
    "gzip, stored": (Codec.GZIP, lambda data: gzip(data, 0)),
    "gzip, two members": (Codec.GZIP, lambda data: gzip(data[:99]) + gzip(data[99:])),
    "snappy, bare": (Codec.SNAPPY, snappy),
    "snappy, large blocks": (Codec.SNAPPY, lambda data: xerial(snappy(data[:70000]), snappy(data[70000:]))),
    "lz4, linked blocks": (Codec.LZ4, lambda data: bytes(lz4.frame.compress(data))),
    "lz4, all options": (
        Codec.LZ4,
        lambda data: bytes(
            lz4.frame.compress(
                data, block_size=lz4.frame.BLOCKSIZE_MAX4MB, content_checksum=True, block_checksum=True, store_size=True
            )
        ),
    ),
    "lz4, cramjam": (Codec.LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd, unknown size": (Codec.ZSTD, zstandard.ZstdCompressor(write_content_size=False).compress),
    "zstd, checksum": (Codec.ZSTD, zstandard.ZstdCompressor(level=19, write_checksum=True).compress),
    "zstd, streamed": (Codec.ZSTD, lambda data: bytes(cramjam.zstd.compress(data, level=22))),
}

BOMBS: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip": (Codec.GZIP, lambda: gzip(bytes(64 * MIB), 1)),
    "gzip, members": (Codec.GZIP, lambda: gzip(bytes(MIB)) * 300),
    "snappy": (Codec.SNAPPY, lambda: snappy(bytes(64 * MIB))),
    "snappy, blocks": (Codec.SNAPPY, lambda: xerial(*[snappy(bytes(MIB))] * 300)),
    "lz4, small blocks": (Codec.LZ4, lambda: compress(Codec.LZ4, bytes(64 * MIB))),
    "lz4, large blocks": (
        Codec.LZ4,
        lambda: bytes(lz4.frame.compress(bytes(64 * MIB), block_size=lz4.frame.BLOCKSIZE_MAX4MB, store_size=False)),
    ),
    "zstd, unknown size": (Codec.ZSTD, lambda: zstd_zeros(300)),
    "zstd, known size": (Codec.ZSTD, lambda: compress(Codec.ZSTD, bytes(64 * MIB))),
}


@pytest.mark.parametrize("codec", ALL_CODECS)
@quick
@given(data=st.binary(max_size=3000), repeat=st.integers(0, 100))
def test_what_is_compressed_comes_back(codec: Codec, data: bytes, repeat: int) -> None:
    whole = data * repeat
    packed = compress(codec, whole)
    assert bytes(decompress(codec, memoryview(packed), len(whole))) == whole


@pytest.mark.parametrize("name", FOREIGN)
def test_other_writers_can_be_read(name: str) -> None:
    codec, write = FOREIGN[name]
    for data in (TEXT, b"x", b""):
        assert decompress(codec, memoryview(write(data)), len(data)) == data


def test_other_readers_can_read_us() -> None:
    assert zlib.decompress(compress(Codec.GZIP, TEXT), wbits=31) == TEXT
    assert bytes(cramjam.lz4.decompress(compress(Codec.LZ4, TEXT))) == TEXT
    assert bytes(cramjam.zstd.decompress(compress(Codec.ZSTD, TEXT))) == TEXT
    blocks = [snappy(TEXT[start : start + XERIAL_BLOCK_BYTES]) for start in range(0, len(TEXT), XERIAL_BLOCK_BYTES)]
    assert compress(Codec.SNAPPY, TEXT) == xerial(*blocks)


def test_lz4_blocks_stand_alone_as_java_demands() -> None:
    frame = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))
    assert not frame["block_linked"]
    assert frame["block_size"] == 64 * 1024


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_exactly_the_limit_passes_and_one_byte_less_does_not(codec: Codec) -> None:
    packed = memoryview(compress(codec, TEXT))
    assert len(decompress(codec, packed, len(TEXT))) == len(TEXT)
    for limit in (len(TEXT) - 1, 100, 0):
        with pytest.raises(BatchTooLarge):
            decompress(codec, packed, limit)


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_is_refused_with_little_memory(name: str) -> None:
    codec, make = BOMBS[name]
    bomb = memoryview(make())
    limit = 16 * MIB
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge):
            decompress(codec, bomb, limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * limit


def test_zstd_bomb_of_10_kb_with_the_largest_window_touches_little_memory() -> None:
    bomb = zstd_zeros(300, window_log=27)
    assert len(bomb) < 10_000
    grown = run_python(f"""
import resource
from goqueue.model.errors import BatchTooLarge
from goqueue.records.batch import Codec
from goqueue.records.compression import compress, decompress
decompress(Codec.ZSTD, memoryview(compress(Codec.ZSTD, bytes(1000))), 1000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(Codec.ZSTD, memoryview(bytes.fromhex({bomb.hex()!r})), {16 * MIB})
except BatchTooLarge:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
""")
    assert int(grown) * 1024 < 3 * 16 * MIB  # the output and, of the window, as much again


def test_zstd_window_beyond_what_kafka_accepts_is_refused() -> None:
    assert len(decompress(Codec.ZSTD, memoryview(zstd_zeros(1, window_log=27)), MIB)) == MIB
    with pytest.raises(BatchTooLarge, match="window"):
        decompress(Codec.ZSTD, memoryview(zstd_zeros(1, window_log=28)), ZSTD_WINDOW_BYTES_MAX * 4)


def test_zstd_size_that_is_declared_too_large_is_refused_before_any_work() -> None:
    bomb = memoryview(compress(Codec.ZSTD, bytes(64 * MIB)))
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge):
            decompress(Codec.ZSTD, bomb, 16 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("lie", [b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x0f"])
def test_snappy_length_that_lies_is_corrupt_and_allocates_nothing(lie: bytes) -> None:
    block = lie + b"\xf0" * 50
    tracemalloc.start()
    try:
        for stream in (block, xerial(block)):
            with pytest.raises(CorruptBatch, match="cannot become"):
                decompress(Codec.SNAPPY, memoryview(stream), 2**33)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MIB


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(xerial(version=2), id="unknown version"),
        pytest.param(xerial()[:12], id="half a header"),
        pytest.param(xerial() + b"\0\0\0", id="half a length"),
        pytest.param(xerial() + pack(">i", -1), id="negative length"),
        pytest.param(xerial() + pack(">i", 4) + snappy(b"x"), id="block shorter than its length"),
    ],
)
def test_snappy_framing_that_is_wrong_is_corrupt(stream: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decompress(Codec.SNAPPY, memoryview(stream), MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_truncation_is_corrupt(codec: Codec) -> None:
    packed = compress(codec, TEXT[:300])
    # The framing of snappy has no end mark: a stream cut between two blocks is a shorter stream.
    whole = {16} if codec is Codec.SNAPPY else set()
    for size in set(range(len(packed))) - whole:
        with pytest.raises(CorruptBatch):
            decompress(codec, memoryview(packed[:size]), MIB)


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("garbage", [b"\0", b"garbage", bytes(100)])
def test_trailing_garbage_is_corrupt(name: str, garbage: bytes) -> None:
    codec, write = FOREIGN[name]
    with pytest.raises(CorruptBatch):
        decompress(codec, memoryview(write(TEXT) + garbage), MIB)


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_a_second_frame_is_garbage_since_kafka_writes_one(codec: Codec) -> None:
    with pytest.raises(CorruptBatch, match="behind the end"):
        decompress(codec, memoryview(compress(codec, TEXT) * 2), MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
@thorough
@given(data=st.binary(max_size=100))
def test_arbitrary_bytes_raise_nothing_but_our_errors(codec: Codec, data: bytes) -> None:
    with suppress(CorruptBatch, BatchTooLarge):
        assert len(decompress(codec, memoryview(data), 1000)) <= 1000


@pytest.mark.parametrize("name", FOREIGN)
@quick
@given(data=st.data())
def test_mutated_streams_raise_nothing_but_our_errors(name: str, data: st.DataObject) -> None:
    codec, write = FOREIGN[name]
    stream = bytearray(write(TEXT[:500]))
    for _ in range(data.draw(st.integers(1, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptBatch, BatchTooLarge):
        assert len(decompress(codec, memoryview(stream), 1000)) <= 1000

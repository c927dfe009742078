"""The codecs of a batch, their output bounded before it is allocated: 10 kB of zstd may claim to be 300 MB.

All give their output in steps, so that who needs the first record need not unpack the rest, and who needs all can let
others have their turn in between. Bare snappy cannot: it states its length first and cannot exceed what its format
allows, so that length is checked.
"""

import zlib
from collections.abc import Callable, Iterator
from struct import Struct

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import zstandard

from goqueue.model.errors import BatchTooLarge, CorruptBatch
from goqueue.records.batch import Codec

Octets = bytes | bytearray | memoryview

ZSTD_LEVEL = 3
ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024
"""What Kafka's own clients accept. Of a window, only what has been decompressed is ever touched."""

XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_VERSION = 1
XERIAL_HEADER = Struct(">8sii")
XERIAL_LENGTH = Struct(">i")
XERIAL_BLOCK_BYTES = 32 * 1024
SNAPPY_RATIO_MAX = 22
"""The densest snappy element turns 3 bytes into 64."""

STEP_BYTES = 256 * 1024
"""About as much is unpacked in one step, but for bare snappy: a fraction of a millisecond."""

_INPUT_BYTES = 16 * 1024
"""gzip and lz4 copy what they have been given and have not used yet, at every step: so they are given little."""
_GZIP_WBITS = zlib.MAX_WBITS | 16
_ZSTD_SIZE_UNKNOWN = 2**64 - 1
_ZSTD_BLOCK_BYTES = 128 * 1024
"""A zstd block never holds more, and its header tells where the next one begins."""
_ZSTD_BLOCK_HEADER_BYTES = 3
_ZSTD_REPEATS = 1
"""The type of a block that is one byte, repeated."""


def compress(codec: Codec, data: Octets) -> bytes:
    """`data` as the Java client would write it, so that every client can read it."""
    if codec is Codec.GZIP:
        return zlib.compress(data, wbits=_GZIP_WBITS)
    if codec is Codec.SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec is Codec.LZ4:
        # Kafka's Java client refuses blocks that refer to each other, lz4's default.
        frame: bytes = lz4.frame.compress(
            data, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB, store_size=False
        )
        return frame
    if codec is Codec.ZSTD:
        return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)
    return bytes(data)


def decompress(codec: Codec, data: memoryview, max_bytes: int) -> bytes | memoryview:
    """What was compressed: at most `max_bytes`, or BatchTooLarge. Anything but one whole stream is CorruptBatch."""
    if codec is Codec.NONE:
        if len(data) > max_bytes:
            raise _too_large(codec, max_bytes)
        return data
    return b"".join(decompress_steps(codec, data, max_bytes))


def decompress_steps(codec: Codec, data: memoryview, max_bytes: int) -> Iterator[bytes | memoryview]:
    """As `decompress`, a step at a time. What is wrong with the end of a stream is told when it is reached."""
    room = max_bytes
    for part in _STEPS[codec](data, max_bytes):
        room -= len(part)
        if room < 0:
            raise _too_large(codec, max_bytes)
        if part:
            yield part


def _plain_steps(data: memoryview, max_bytes: int) -> Iterator[memoryview]:  # noqa: ARG001  whoever asks counts
    for start in range(0, len(data), STEP_BYTES):
        yield data[start : start + STEP_BYTES]


def _gzip_steps(data: memoryview, max_bytes: int) -> Iterator[bytes]:  # noqa: ARG001
    """One stream may follow another, as gzip allows."""
    decoder = zlib.decompressobj(_GZIP_WBITS)
    position = 0
    while position < len(data):
        if decoder.eof:
            decoder = zlib.decompressobj(_GZIP_WBITS)
        given: memoryview | bytes = data[position : position + _INPUT_BYTES]
        position += len(given)
        while True:
            try:
                part = decoder.decompress(given, STEP_BYTES)
            except zlib.error as damage:
                raise _corrupt(Codec.GZIP, damage) from damage
            yield part
            given = decoder.unconsumed_tail
            if decoder.eof or not (given or part):  # it may hold some back without having input left
                break
        position -= len(decoder.unused_data)
    if not decoder.eof:
        raise _cut(Codec.GZIP)


def _lz4_steps(data: memoryview, max_bytes: int) -> Iterator[bytes]:  # noqa: ARG001
    decoder = lz4.frame.LZ4FrameDecompressor()
    for position in range(0, len(data), _INPUT_BYTES):
        if decoder.eof:
            raise _garbage(Codec.LZ4)
        given = data[position : position + _INPUT_BYTES]
        while True:
            try:
                part = decoder.decompress(given, max_length=STEP_BYTES)
            except Exception as damage:
                raise _corrupt(Codec.LZ4, damage) from damage
            yield part
            given = data[:0]  # the decoder keeps what it has not used
            if decoder.eof or decoder.needs_input:
                break
    if not decoder.eof:
        raise _cut(Codec.LZ4)
    if decoder.unused_data:
        raise _garbage(Codec.LZ4)


def _zstd_steps(data: memoryview, max_bytes: int) -> Iterator[bytes]:
    header_bytes = _check_zstd_header(data, max_bytes)
    decoder = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX).decompressobj()
    for given in _zstd_blocks(data, header_bytes):
        if decoder.eof:
            raise _garbage(Codec.ZSTD)
        try:
            part = decoder.decompress(given)
        except zstandard.ZstdError as damage:
            raise _corrupt(Codec.ZSTD, damage) from damage
        yield part
    if not decoder.eof:
        raise _cut(Codec.ZSTD)
    if decoder.unused_data:
        raise _garbage(Codec.ZSTD)


def _zstd_blocks(data: memoryview, position: int) -> Iterator[memoryview]:
    """So many blocks together as make one step: the decoder itself knows no limit to what it gives at once."""
    start, blocks_left = 0, STEP_BYTES // _ZSTD_BLOCK_BYTES
    while position + _ZSTD_BLOCK_HEADER_BYTES <= len(data):
        header = int.from_bytes(data[position : position + _ZSTD_BLOCK_HEADER_BYTES], "little")
        position += _ZSTD_BLOCK_HEADER_BYTES + (1 if header >> 1 & 3 == _ZSTD_REPEATS else header >> 3)
        is_last = header & 1
        if is_last:
            break
        blocks_left -= 1
        if not blocks_left:
            yield data[start:position]
            start, blocks_left = position, STEP_BYTES // _ZSTD_BLOCK_BYTES
    yield data[start:]


def _check_zstd_header(data: memoryview, max_bytes: int) -> int:
    """Where the header of the frame ends. What it declares too large is refused at once; a frame that declares less
    than it holds is corrupt.
    """
    try:
        frame = zstandard.get_frame_parameters(data)
        header_bytes: int = zstandard.frame_header_size(data)
    except zstandard.ZstdError as damage:
        raise _corrupt(Codec.ZSTD, damage) from damage
    if frame.window_size > ZSTD_WINDOW_BYTES_MAX:
        raise BatchTooLarge(f"a ZSTD window of {frame.window_size} bytes, the limit is {ZSTD_WINDOW_BYTES_MAX}")
    if max_bytes < frame.content_size != _ZSTD_SIZE_UNKNOWN:
        raise _too_large(Codec.ZSTD, max_bytes)
    return header_bytes


def _compress_xerial(data: memoryview) -> bytes:
    parts = [XERIAL_HEADER.pack(XERIAL_MAGIC, XERIAL_VERSION, XERIAL_VERSION)]
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        parts += (XERIAL_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _snappy_steps(data: memoryview, max_bytes: int) -> Iterator[bytes]:
    """Bare snappy as librdkafka writes it, or the blocks that Java's snappy library puts behind its magic."""
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield _decompress_block(data, max_bytes, max_bytes)
        return
    if len(data) < XERIAL_HEADER.size:
        raise CorruptBatch("the SNAPPY stream ends in its header")
    _, _, version_readable = XERIAL_HEADER.unpack_from(data)
    if version_readable > XERIAL_VERSION:
        raise CorruptBatch(f"SNAPPY framing version {version_readable}, only {XERIAL_VERSION} is known")
    room, position = max_bytes, XERIAL_HEADER.size
    while position < len(data):
        start = position + XERIAL_LENGTH.size
        size = XERIAL_LENGTH.unpack_from(data, position)[0] if start <= len(data) else -1
        if not 0 <= size <= len(data) - start:
            raise CorruptBatch("a SNAPPY block does not fit its stream")
        part = _decompress_block(data[start : start + size], max_bytes, room)
        room -= len(part)
        yield part
        position = start + size


def _decompress_block(block: memoryview, max_bytes: int, room: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * SNAPPY_RATIO_MAX:
            raise CorruptBatch(f"{len(block)} bytes of SNAPPY cannot become {size}")
        if size > room:
            raise _too_large(Codec.SNAPPY, max_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as damage:
        raise _corrupt(Codec.SNAPPY, damage) from damage


def _corrupt(codec: Codec, damage: Exception) -> CorruptBatch:
    return CorruptBatch(f"{codec.name}: {damage}")


def _cut(codec: Codec) -> CorruptBatch:
    return CorruptBatch(f"the {codec.name} stream has no end")


def _garbage(codec: Codec) -> CorruptBatch:
    return CorruptBatch(f"something stands behind the end of the {codec.name} stream")


def _too_large(codec: Codec, max_bytes: int) -> BatchTooLarge:
    return BatchTooLarge(f"the {codec.name} batch unpacks to more than {max_bytes} bytes")


_STEPS: dict[Codec, Callable[[memoryview, int], Iterator[bytes | memoryview]]] = {
    Codec.NONE: _plain_steps,
    Codec.GZIP: _gzip_steps,
    Codec.SNAPPY: _snappy_steps,
    Codec.LZ4: _lz4_steps,
    Codec.ZSTD: _zstd_steps,
}

"""The codecs of a batch, their output bounded before it is allocated: 10 kB of zstd may claim to be 300 MB.

gzip and zstd are fed in slices too small to outgrow the room that is left, whatever they hold; lz4 gives its output
in steps. Snappy states its length first and cannot exceed what its format allows, so that length is checked.
"""

import zlib
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple, Protocol

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

_LZ4_STEP_BYTES = 1024 * 1024  # without a step, lz4 takes nine times its output in memory
_GZIP_WBITS = zlib.MAX_WBITS | 16
_ZSTD_SIZE_UNKNOWN = 2**64 - 1


class _Decoder(Protocol):
    """What the decompression objects of zlib and zstandard have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: memoryview, /) -> bytes: ...


class _Stream(NamedTuple):
    """How to read one codec: a slice of n bytes gives at most n * `ratio_max` bytes and one block more."""

    new: Callable[[], _Decoder]
    ratio_max: int
    slice_bytes_min: int
    slice_bytes_max: int
    may_repeat: bool
    """True: one stream may follow another, as gzip allows; elsewhere what follows is garbage."""


_STREAMS = {
    Codec.GZIP: _Stream(lambda: zlib.decompressobj(_GZIP_WBITS), 1032, 512, 4096, True),
    Codec.ZSTD: _Stream(
        lambda: zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX).decompressobj(),
        32768,
        64,
        16384,
        False,
    ),
}


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
    if codec is Codec.SNAPPY:
        return _decompress_snappy(data, max_bytes)
    if codec is Codec.LZ4:
        return _decompress_lz4(data, max_bytes)
    if codec is Codec.ZSTD:
        _check_zstd_header(data, max_bytes)
    return _decompress_stream(codec, data, max_bytes)


def _decompress_stream(codec: Codec, data: memoryview, max_bytes: int) -> bytes:
    stream = _STREAMS[codec]
    decoder = stream.new()
    parts = []
    room, position = max_bytes, 0
    while position < len(data):
        if decoder.eof:
            if not stream.may_repeat:
                raise _garbage(codec)
            decoder = stream.new()
        size = max(stream.slice_bytes_min, min(room // stream.ratio_max, stream.slice_bytes_max))
        piece = data[position : position + size]
        try:
            part = decoder.decompress(piece)
        except Exception as damage:
            raise _corrupt(codec, damage) from damage
        room -= len(part)
        if room < 0:
            raise _too_large(codec, max_bytes)
        parts.append(part)
        position += len(piece) - len(decoder.unused_data)
    if not decoder.eof:
        raise _cut(codec)
    return b"".join(parts)


def _decompress_lz4(data: memoryview, max_bytes: int) -> bytes:
    decoder = lz4.frame.LZ4FrameDecompressor()
    parts = []
    room = max_bytes
    while not decoder.eof:
        try:
            part = decoder.decompress(data, max_length=min(room + 1, _LZ4_STEP_BYTES))
        except Exception as damage:
            raise _corrupt(Codec.LZ4, damage) from damage
        room -= len(part)
        if room < 0:
            raise _too_large(Codec.LZ4, max_bytes)
        if decoder.needs_input and not decoder.eof:
            raise _cut(Codec.LZ4)
        parts.append(part)
        data = data[:0]  # the decoder keeps what it has not used
    if decoder.unused_data:
        raise _garbage(Codec.LZ4)
    return b"".join(parts)


def _check_zstd_header(data: memoryview, max_bytes: int) -> None:
    """Refuse at once what the frame itself declares too large; a frame that declares less than it holds is corrupt."""
    try:
        frame = zstandard.get_frame_parameters(data)
    except zstandard.ZstdError as damage:
        raise _corrupt(Codec.ZSTD, damage) from damage
    if frame.window_size > ZSTD_WINDOW_BYTES_MAX:
        raise BatchTooLarge(f"a ZSTD window of {frame.window_size} bytes, the limit is {ZSTD_WINDOW_BYTES_MAX}")
    if max_bytes < frame.content_size != _ZSTD_SIZE_UNKNOWN:
        raise _too_large(Codec.ZSTD, max_bytes)


def _compress_xerial(data: memoryview) -> bytes:
    parts = [XERIAL_HEADER.pack(XERIAL_MAGIC, XERIAL_VERSION, XERIAL_VERSION)]
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        parts += (XERIAL_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    """Bare snappy as librdkafka writes it, or the blocks that Java's snappy library puts behind its magic."""
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return _decompress_block(data, max_bytes)
    if len(data) < XERIAL_HEADER.size:
        raise CorruptBatch("the SNAPPY stream ends in its header")
    _, _, version_readable = XERIAL_HEADER.unpack_from(data)
    if version_readable > XERIAL_VERSION:
        raise CorruptBatch(f"SNAPPY framing version {version_readable}, only {XERIAL_VERSION} is known")
    parts = []
    room, position = max_bytes, XERIAL_HEADER.size
    while position < len(data):
        start = position + XERIAL_LENGTH.size
        size = XERIAL_LENGTH.unpack_from(data, position)[0] if start <= len(data) else -1
        if not 0 <= size <= len(data) - start:
            raise CorruptBatch("a SNAPPY block does not fit its stream")
        part = _decompress_block(data[start : start + size], room)
        room -= len(part)
        parts.append(part)
        position = start + size
    return b"".join(parts)


def _decompress_block(block: memoryview, max_bytes: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * SNAPPY_RATIO_MAX:
            raise CorruptBatch(f"{len(block)} bytes of SNAPPY cannot become {size}")
        if size > max_bytes:
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
    return BatchTooLarge(f"{codec.name} batch holds more than {max_bytes} bytes")

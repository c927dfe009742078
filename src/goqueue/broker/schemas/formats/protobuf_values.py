"""Which field of a Protobuf value is damaged: Google's decoder says only that some field is."""

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from goqueue.broker.schemas.formats.parsed import DEPTH_MAX

VARINT, EIGHT_BYTES, LENGTH, GROUP, END_GROUP, FOUR_BYTES = range(6)
VARINT_BITS_MAX = 63


class _Fault(Exception):
    pass


def wire_fault(descriptor: Descriptor, data: bytes) -> str | None:
    """None: it can be walked over."""
    try:
        _walk(descriptor, data, "", 0)
    except _Fault as fault:
        return str(fault)
    return None


def _walk(descriptor: Descriptor | None, data: bytes, path: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise _Fault(f"{_told(path)}: nested more than {DEPTH_MAX} levels deep")
    at = 0
    while at < len(data):
        tag, at = _varint(data, at, path)
        number, wire = tag >> 3, tag & 7
        field = descriptor.fields_by_number.get(number) if descriptor is not None else None
        place = f"{path}.{field.name if field is not None else number}"
        if not number:
            raise _Fault(f"{_told(path)}: field number 0")
        if wire == VARINT:
            _, at = _varint(data, at, place)
        elif wire in (EIGHT_BYTES, FOUR_BYTES):
            at = _skip(data, at, 8 if wire == EIGHT_BYTES else 4, place)
        elif wire == LENGTH:
            size, at = _varint(data, at, place)
            start, at = at, _skip(data, at, size, place)
            _check_inside(field, data[start:at], place, depth)
        elif wire not in (GROUP, END_GROUP):
            raise _Fault(f"{_told(place)}: wire type {wire}")


def _check_inside(field: FieldDescriptor | None, inside: bytes, place: str, depth: int) -> None:
    if field is None:
        return
    if field.type == FieldDescriptor.TYPE_STRING:
        try:
            inside.decode()
        except UnicodeDecodeError as error:
            raise _Fault(f"{_told(place)}: not UTF-8: {error.reason}") from None
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        _walk(field.message_type, inside, place, depth + 1)


def _skip(data: bytes, at: int, size: int, place: str) -> int:
    if at + size > len(data):
        raise _Fault(f"{_told(place)}: {size} bytes are needed, {len(data) - at} are left")
    return at + size


def _varint(data: bytes, at: int, place: str) -> tuple[int, int]:
    shift = number = 0
    while shift <= VARINT_BITS_MAX:
        if at >= len(data):
            raise _Fault(f"{_told(place)}: the bytes end in the middle of a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise _Fault(f"{_told(place)}: a number of more than 64 bits")


def _told(place: str) -> str:
    return f"field {place.lstrip('.')}" if place else "the value"

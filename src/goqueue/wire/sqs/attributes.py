"""Message attributes and record headers are the same thing under two names.

An attribute travels as a header of its name, with its value as bytes: text as UTF-8. What a reader finds there it takes
for a String if it is UTF-8 and for Binary if not. Where that would be wrong (Number, Binary that is text, a type with a
label of its own) a second header, `sqs-type-` and the name, says the type. So any header of a Kafka client is a message
attribute, and any message attribute a header that a Kafka client can read. Headers that begin with `gq-` are ours: an
attribute of such a name is a delivery wish, and none of them is shown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from goqueue.records.native import Headers
from goqueue.wire.sqs.errors import SqsError, invalid_parameter
from goqueue.wire.sqs.requests import MessageAttribute

TYPE_PREFIX = "sqs-type-"
OURS = "gq-"
TRACE = "x-amzn-trace-id"
TRACE_ATTRIBUTE = "AWSTraceHeader"
ATTRIBUTES_MAX = 10
NAME_CHARS_MAX = 256
TYPE_CHARS_MAX = 256
BODY_ENCODING = "body-encoding"
"""The attribute of a message whose body is no text: it is given as base64."""

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_TYPE = re.compile(r"(String|Number|Binary)(\..+)?", re.DOTALL)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_RESERVED = re.compile(r"(aws|amazon)\.", re.IGNORECASE)
_FOREIGN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CHARACTERS = "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"


def check_text(text: str) -> None:
    if _FOREIGN.search(text):
        raise SqsError(
            "InvalidMessageContents", f"Invalid characters found. Valid unicode characters are {CHARACTERS}."
        )


def check_attributes(attributes: Mapping[str, MessageAttribute]) -> None:
    if len(attributes) > ATTRIBUTES_MAX:
        raise invalid_parameter(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{ATTRIBUTES_MAX}]."
        )
    for name, attribute in attributes.items():
        _check_name(name)
        _check_value(name, attribute)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX:
        raise invalid_parameter(
            f"Invalid attribute name {name[:NAME_CHARS_MAX]!r}: names are 1 to {NAME_CHARS_MAX} letters, digits, "
            "underscores, hyphens and single periods inside."
        )
    if _RESERVED.match(name) or name.startswith(TYPE_PREFIX) or name.lower() in (TRACE, BODY_ENCODING):
        raise invalid_parameter(f"Attribute name {name!r} is reserved.")


def _check_value(name: str, attribute: MessageAttribute) -> None:
    kind = _TYPE.fullmatch(attribute.data_type or "")
    if attribute.data_type is None or not attribute.data_type:
        raise invalid_parameter(f"The message attribute '{name}' must contain non-empty message attribute type.")
    if kind is None or len(attribute.data_type) > TYPE_CHARS_MAX:
        raise invalid_parameter(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes "
            "is Binary, Number, and String."
        )
    check_text(attribute.data_type)
    is_binary = kind[1] == "Binary"
    if (attribute.binary_value if is_binary else attribute.string_value) in (None, "", b""):
        raise invalid_parameter(
            f"The message attribute '{name}' must contain non-empty message attribute value for message attribute "
            f"type '{attribute.data_type}'."
        )
    if (attribute.string_value if is_binary else attribute.binary_value) is not None:
        raise invalid_parameter(f"Message attribute '{name}' has a value that is not of its type.")
    if not is_binary:
        check_text(attribute.string_value or "")
    if kind[1] == "Number" and not _NUMBER.fullmatch(attribute.string_value or ""):
        raise invalid_parameter(f"Can't cast the value of message attribute '{name}' to a number.")


def check_system_attributes(attributes: Mapping[str, MessageAttribute]) -> None:
    for name, attribute in attributes.items():
        if name != TRACE_ATTRIBUTE:
            raise invalid_parameter(f"Message system attribute name '{name}' is invalid.")
        if attribute.data_type != "String" or not attribute.string_value:
            raise invalid_parameter(f"The message system attribute '{name}' must be a non-empty String.")
        check_text(attribute.string_value)


def size_of(body: bytes, attributes: Mapping[str, MessageAttribute]) -> int:
    """What counts towards the limits: the body, and names, types and values of the attributes."""
    return len(body) + sum(
        len(name.encode()) + len((each.data_type or "").encode()) + len(each.value) for name, each in attributes.items()
    )


# -- headers


def headers_of(attributes: Mapping[str, MessageAttribute], system: Mapping[str, MessageAttribute]) -> Headers:
    headers: Headers = []
    for name, attribute in attributes.items():
        value = attribute.value
        headers.append((name, value))
        if attribute.data_type != _guess(value):
            headers.append((TYPE_PREFIX + name, (attribute.data_type or "").encode()))
    headers += [(TRACE, each.value) for each in system.values()]
    return headers


def attributes_of(headers: Iterable[tuple[str, bytes | None]], wanted: Sequence[str]) -> dict[str, MessageAttribute]:
    """Those of `wanted`: names, `prefix.*`, or All. Where a header is repeated the last one counts."""
    if not wanted or not headers:
        return {}
    chosen = _Chosen(wanted)
    values = {name: value for name, value in headers if value is not None}
    found: dict[str, MessageAttribute] = {}
    for name, value in values.items():
        if name.startswith((OURS, TYPE_PREFIX)) or name.lower() == TRACE or name not in chosen:
            continue
        found[name] = _attribute(value, values.get(TYPE_PREFIX + name))
    return found


def _attribute(value: bytes, said: bytes | None) -> MessageAttribute:
    kind = _guess(value)
    if said is not None:
        named = said.decode(errors="replace")
        # Whoever else wrote this header may have said anything.
        if _TYPE.fullmatch(named) and (kind == "String" or named.startswith("Binary")):
            kind = named
    if kind.startswith("Binary"):
        return MessageAttribute(kind, binary_value=value)
    return MessageAttribute(kind, value.decode())


def _guess(value: bytes) -> str:
    try:
        value.decode()
    except UnicodeDecodeError:
        return "Binary"
    return "String"


class _Chosen:
    def __init__(self, wanted: Sequence[str]) -> None:
        self._all = "All" in wanted or ".*" in wanted
        self._names = frozenset(wanted)
        self._prefixes = tuple(name[:-2] for name in wanted if name.endswith(".*") and len(name) > 2)

    def __contains__(self, name: str) -> bool:
        return self._all or name in self._names or (bool(self._prefixes) and name.startswith(self._prefixes))

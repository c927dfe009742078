"""Words of the schema registry: its formats, levels, modes, and the numbers under which Confluent's clients know a
refusal.
"""

from enum import IntEnum, StrEnum

from msgspec import Struct

from goqueue.model.errors import GoQueueError
from goqueue.model.registry_words import invalid_subject

SUBJECT_CHARS_MAX = 255
EVERYWHERE = ""
"""Stands for all subjects where a level or a mode is set."""


class SchemaKind(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Level(StrEnum):
    """Which older versions a new one is checked against, and which way."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        """The new schema reads what the old one wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """The old schema reads what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


class Mode(StrEnum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    """Whoever registers says which id and version a schema has; nothing is checked against older ones."""


class Reference(Struct, frozen=True):
    """What a schema calls `name` is this version of that subject."""

    name: str
    subject: str
    version: int


class RegistryCode(IntEnum):
    NONE = 0
    INCOMPATIBLE_SCHEMA = 409
    FORBIDDEN = 40301
    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    SUBJECT_COMPATIBILITY_NOT_CONFIGURED = 40408
    SUBJECT_MODE_NOT_CONFIGURED = 40409
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_COMPATIBILITY_LEVEL = 42203
    INVALID_MODE = 42204
    OPERATION_NOT_PERMITTED = 42205
    REFERENCE_EXISTS = 42206
    ID_DOES_NOT_MATCH = 42207
    INVALID_SUBJECT = 42208


class RegistryRefused(GoQueueError):
    """The registry says no; the code says how."""

    def __init__(self, code: RegistryCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class InvalidSchema(GoQueueError):
    """A text that is no schema of its format."""


def check_subject(subject: str) -> None:
    if not 0 < len(subject) <= SUBJECT_CHARS_MAX or any(ord(each) < 0x20 or ord(each) == 0x7F for each in subject):
        why = f"it must have 1 to {SUBJECT_CHARS_MAX} characters and no control characters"
        raise RegistryRefused(RegistryCode.INVALID_SUBJECT, invalid_subject(subject, why))

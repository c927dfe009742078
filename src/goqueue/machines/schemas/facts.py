"""What the schema registry stores, and what it is asked to do. Every kind of fact has a letter before its key."""

import msgspec

from goqueue.machines.machine import Command, Fact
from goqueue.model.schemas import EVERYWHERE, Level, Mode, Reference, RegistryCode, SchemaKind

IDS_KEY = b"n"


class NewSchema(msgspec.Struct, frozen=True):
    """A schema that was understood. Two with the same fingerprint are the same schema."""

    kind: SchemaKind
    text: str
    fingerprint: bytes
    references: tuple[Reference, ...] = ()
    extras: bytes = b""
    """Metadata and rules as JSON: kept and given back, never looked at."""


class Register(Command["Result"], frozen=True):
    subject: str
    schema: NewSchema
    schema_id: int = 0
    """Only where schemas are imported; 0: the next."""
    version: int = 0


class DeleteVersion(Command["Result"], frozen=True):
    subject: str
    version: int
    is_permanent: bool = False


class DeleteSubject(Command["Result"], frozen=True):
    subject: str
    is_permanent: bool = False


class SetLevel(Command["Result"], frozen=True):
    subject: str
    level: Level | None
    """None: as for all subjects, or as at the beginning."""


class SetMode(Command["Result"], frozen=True):
    subject: str
    mode: Mode | None
    is_forced: bool = False


class Result(msgspec.Struct, frozen=True):
    code: RegistryCode = RegistryCode.NONE
    message: str = ""
    schema_id: int = 0
    version: int = 0
    versions: tuple[int, ...] = ()


class SchemaStored(Fact, frozen=True, tag="SchemaStored"):
    schema_id: int
    schema: NewSchema

    def key(self) -> bytes:
        return b"s%d" % self.schema_id


class SchemaForgotten(Fact, frozen=True):
    is_tombstone = True
    schema_id: int

    def key(self) -> bytes:
        return b"s%d" % self.schema_id


class IdsUsed(Fact, frozen=True, tag="IdsUsed"):
    """Ids below this one were given away at some time. Ids of forgotten schemas stay used."""

    next_id: int

    def key(self) -> bytes:
        return IDS_KEY


class VersionStored(Fact, frozen=True, tag="VersionStored"):
    subject: str
    version: int
    schema_id: int
    is_deleted: bool = False

    def key(self) -> bytes:
        return b"v%d/%s" % (self.version, self.subject.encode())


class VersionForgotten(Fact, frozen=True):
    is_tombstone = True
    subject: str
    version: int

    def key(self) -> bytes:
        return b"v%d/%s" % (self.version, self.subject.encode())


class LevelStored(Fact, frozen=True, tag="LevelStored"):
    subject: str
    level: Level

    def key(self) -> bytes:
        return b"c" + self.subject.encode()


class LevelForgotten(Fact, frozen=True):
    is_tombstone = True
    subject: str = EVERYWHERE

    def key(self) -> bytes:
        return b"c" + self.subject.encode()


class ModeStored(Fact, frozen=True, tag="ModeStored"):
    subject: str
    mode: Mode

    def key(self) -> bytes:
        return b"m" + self.subject.encode()


class ModeForgotten(Fact, frozen=True):
    is_tombstone = True
    subject: str = EVERYWHERE

    def key(self) -> bytes:
        return b"m" + self.subject.encode()


SCHEMA_FACTS: tuple[type[Fact], ...] = (SchemaStored, IdsUsed, VersionStored, LevelStored, ModeStored)

"""Protobuf: texts are compiled by `protoc` itself, in this process; what comes out of it, or what a client sends in its
place, is a descriptor, and from there on Google's own library does the rest.
"""

import ast
import re
import tempfile
import warnings
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message
from grpc_tools import _protoc_compiler

from goqueue.broker.schemas.formats.parsed import TURN_BYTES_MAX, Allowance, Dependencies, digest
from goqueue.broker.schemas.formats.protobuf_evolution import differences
from goqueue.broker.schemas.formats.protobuf_text import proto_text
from goqueue.broker.schemas.formats.protobuf_values import wire_fault
from goqueue.model.schemas import InvalidSchema
from goqueue.records.protobuf_files import message_at, pool_of
from goqueue.records.schema_framing import message_indexes

SELF = "default.proto"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"
ERRORS_MAX = 5

_SERIALIZED = re.compile(r"AddSerializedFile\((b'.*')\)")
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,255}")
_SAYS_SYNTAX = re.compile(r"^\s*(?:syntax|edition)\s*=", re.MULTILINE)

File = descriptor_pb2.FileDescriptorProto


class ProtobufSchema:
    turn_bytes_max = TURN_BYTES_MAX

    def __init__(self, text: str, dependencies: Dependencies = ()) -> None:
        known: dict[str, Any] = {}
        for each in dependencies:
            _check_name(each.name)
            known[each.name] = _file(each.text, each.name, known)
        file = _file(text, SELF, known)
        self._pool = pool_of([*known.values(), file], _well_known)
        try:
            self.descriptor: FileDescriptor = self._pool.FindFileByName(SELF)
        except (TypeError, KeyError, ValueError) as error:
            raise InvalidSchema(f"not a Protobuf schema: {error}") from None
        written = proto_text(file)
        self.text = text if _from_base64(text) is None else written
        if self.text is written and proto_text(_file(written, SELF, known)) != written:
            raise InvalidSchema("not a Protobuf schema: a descriptor that cannot be written as text")
        self.fingerprint = digest(written)
        self._file = file
        self._classes: dict[tuple[int, ...], type[Message]] = {}

    @cached_property
    def normalized(self) -> str:
        return proto_text(self._file)

    @property
    def serialized(self) -> str:
        return b64encode(self._file.SerializeToString(deterministic=True)).decode()

    def cannot_read(self, older: "ProtobufSchema") -> list[str]:
        return differences(older.descriptor, self.descriptor)

    def fault(
        self,
        payload: bytes,
        is_framed: bool,
        allowance: Allowance | None = None,  # noqa: ARG002  a value takes as many steps as it has bytes
    ) -> str | None:
        try:
            indexes, start = message_indexes(payload) if is_framed else ((0,), 0)
            descriptor, kind = self._kind(indexes)
        except ValueError as error:
            return f"the value: {error}"
        body = payload[start:]
        try:
            message = kind.FromString(body)
        except DecodeError as error:
            return wire_fault(descriptor, body) or f"the value: {error}"
        missing = message.FindInitializationErrors()  # type: ignore[attr-defined]  # its types forgot it
        return f"field {missing[0]}: it is required and not there" if missing else None

    def _kind(self, indexes: tuple[int, ...]) -> tuple[Descriptor, type[Message]]:
        descriptor = message_at(self.descriptor, indexes)
        kind = self._classes.get(indexes)
        if kind is None:
            kind = self._classes[indexes] = message_factory.GetMessageClass(descriptor)
        return descriptor, kind


def _file(text: str, name: str, known: dict[str, Any]) -> Any:
    given = _from_base64(text)
    if given is None:
        given = _compile(text, name, known)
    given.name = name
    given.ClearField("source_code_info")
    return given


def _from_base64(text: str) -> Any:
    """None: it is not a descriptor, so it is to be compiled."""
    try:
        file = File.FromString(b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
    return file if file.message_type or file.enum_type or file.dependency or file.syntax else None


def _compile(text: str, name: str, known: dict[str, Any]) -> Any:
    # protoc warns of a text that does not say so itself, on the standard error of the process.
    added = () if _SAYS_SYNTAX.search(text) else ('syntax = "proto2";',)
    whole = "\n".join((*added, text))
    with tempfile.TemporaryDirectory(prefix="goqueue-protoc-") as made:
        root = Path(made)
        for each, source in [*((each, proto_text(file)) for each, file in known.items()), (name, whole)]:
            place = root / each
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(source, "utf-8")
        try:
            with warnings.catch_warnings():  # it has no log of its own
                warnings.simplefilter("ignore")
                modules = _protoc_compiler.get_protos(name.encode(), [made.encode(), str(WELL_KNOWN).encode()])
        except _protoc_compiler.ProtocErrors as errors:
            raise InvalidSchema(f"not a Protobuf schema: {_told(errors.errors(), len(added))}") from None
        except UnicodeError as error:
            raise InvalidSchema(f"not a Protobuf schema: {error}") from None
    source = modules[-1][1].decode()
    found = _SERIALIZED.search(source)
    if found is None:
        raise InvalidSchema("not a Protobuf schema: it holds nothing")
    return File.FromString(ast.literal_eval(found[1]))


def _told(errors: Sequence[Any], lines_added: int) -> str:
    told = [
        f"line {max(1, each.line + 1 - lines_added)}, column {each.column + 1}: {each.message.decode(errors='replace')}"
        for each in errors
        if each.line >= 0
    ]
    return "; ".join(told[:ERRORS_MAX])


def _well_known(name: str) -> Any:
    if not name.startswith("google/protobuf/") or not _NAME.fullmatch(name) or ".." in name:
        return None
    file = File()
    try:
        descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
    except KeyError:
        place = WELL_KNOWN / name
        return _file(place.read_text("utf-8"), name, {}) if place.is_file() else None
    return file


def _check_name(name: str) -> None:
    """It becomes the name of a file, for a moment."""
    if not _NAME.fullmatch(name) or name.startswith("/") or ".." in name.split("/") or name == SELF:
        raise InvalidSchema(f"{name!r} cannot be the name of a reference in a Protobuf schema")

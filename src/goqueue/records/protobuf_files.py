"""Protobuf files that belong together, in a pool of their own: two schemas may well have a message of the same name."""

from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FileDescriptor

from goqueue.model.again import Again
from goqueue.model.schemas import InvalidSchema

DEPTH_MAX = 32


def encoded_file(name: str, text: str) -> Any:
    """A file descriptor as the registry gives it."""
    file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(text))
    file.name = name
    return file


def installed_file(name: str) -> Any:
    """Of those that come with Protobuf; None: there is none such."""
    file = descriptor_pb2.FileDescriptorProto()
    try:
        descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
    except KeyError:
        return None
    return file


def pool_of(files: Sequence[Any], well_known: Callable[[str], Any]) -> Any:
    """Of file descriptors. `well_known` gives those that anybody may import, or None. InvalidSchema: one is missing."""
    pool = descriptor_pool.DescriptorPool()
    waiting = {file.name: file for file in files}
    added: set[str] = set()

    def add(again: Again, name: str, depth: int) -> None:
        if name in added:
            return
        added.add(name)
        file = waiting.get(name) or well_known(name)
        if file is None or depth > DEPTH_MAX:
            raise InvalidSchema(f"not a Protobuf schema: {name!r} is imported, but is none of its references")
        for dependency in file.dependency:
            again(dependency, depth + 1)
        try:
            pool.Add(file)
        except (TypeError, ValueError) as error:
            raise InvalidSchema(f"not a Protobuf schema: {error}") from None

    for name in waiting:
        Again(add)(name, 0)
    return pool


def message_at(file: FileDescriptor, indexes: tuple[int, ...]) -> Descriptor:
    """The message that a value says it is. ValueError: there is none such."""
    found: Sequence[Descriptor] = list(file.message_types_by_name.values())
    descriptor: Descriptor | None = None
    for index in indexes:
        if not 0 <= index < len(found):
            raise ValueError(f"its schema has no message {'/'.join(map(str, indexes))}")
        descriptor = found[index]
        found = descriptor.nested_types
    assert descriptor is not None
    return descriptor

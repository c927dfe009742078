"""What may become of a Protobuf schema. Fields are known by their numbers, so a name may change; a type may change to
another that is written in the same way; and what was one of several choices must stay among them.
"""

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto

FD = FieldDescriptor
ALIKE = (
    ("a number", (FD.TYPE_INT32, FD.TYPE_INT64, FD.TYPE_UINT32, FD.TYPE_UINT64, FD.TYPE_BOOL, FD.TYPE_ENUM)),
    ("a signed number", (FD.TYPE_SINT32, FD.TYPE_SINT64)),
    ("a string or bytes", (FD.TYPE_STRING, FD.TYPE_BYTES)),
    ("four fixed bytes", (FD.TYPE_FIXED32, FD.TYPE_SFIXED32)),
    ("eight fixed bytes", (FD.TYPE_FIXED64, FD.TYPE_SFIXED64)),
    ("a float", (FD.TYPE_FLOAT,)),
    ("a double", (FD.TYPE_DOUBLE,)),
    ("a message", (FD.TYPE_MESSAGE,)),
    ("a group", (FD.TYPE_GROUP,)),
)
"""Types that are written in the same way."""
WRITTEN_AS = {kind: name for name, kinds in ALIKE for kind in kinds}
LENGTH_DELIMITED = frozenset((FD.TYPE_STRING, FD.TYPE_BYTES, FD.TYPE_MESSAGE))


def differences(older: FileDescriptor, newer: FileDescriptor) -> list[str]:
    """Why values written with `older` may not be read with `newer`."""
    comparison = _Comparison()
    if older.package != newer.package:
        comparison.say("the package", f"was {older.package!r}, is {newer.package!r}")
    comparison.compare_all("", dict(older.message_types_by_name), dict(newer.message_types_by_name))
    return comparison.found


class _Comparison:
    def __init__(self) -> None:
        self.found: list[str] = []
        self._seen: set[tuple[str, str]] = set()

    def say(self, path: str, why: str) -> None:
        self.found.append(f"{path}: {why}")

    def compare_all(self, path: str, older: dict[str, Descriptor], newer: dict[str, Descriptor]) -> None:
        for name, message in older.items():
            place = f"{path}.{name}".lstrip(".")
            if message.GetOptions().map_entry:
                continue  # looked at with its field
            if name not in newer:
                self.say(place, "the message was removed")
            else:
                self.compare(place, message, newer[name])

    def compare(self, path: str, old: Descriptor, new: Descriptor) -> None:
        if (old.full_name, new.full_name) in self._seen:
            return
        self._seen.add((old.full_name, new.full_name))
        self._compare_fields(path, old, new)
        self._compare_oneofs(path, old, new)
        self._compare_reserved(path, old, new)
        self.compare_all(path, dict(old.nested_types_by_name), dict(new.nested_types_by_name))

    def _compare_fields(self, path: str, old: Descriptor, new: Descriptor) -> None:
        for number, field in sorted(old.fields_by_number.items()):
            place = f"{path}.{field.name}"
            other = new.fields_by_number.get(number)
            if other is not None:
                self._compare_field(place, field, other)
            elif field.is_required:
                self.say(place, "the required field was removed")
            elif (oneof := _oneof(field)) is not None:
                self.say(place, f"was removed from the oneof {oneof.name}")
        for number, field in sorted(new.fields_by_number.items()):
            if number not in old.fields_by_number and field.is_required:
                self.say(f"{path}.{field.name}", "a required field was added")

    def _compare_field(self, place: str, old: FieldDescriptor, new: FieldDescriptor) -> None:
        entry, other = old.message_type, new.message_type
        if entry is not None and other is not None and _is_map(old) and _is_map(new):
            for name in ("key", "value"):
                self._compare_field(f"{place}.{name}", entry.fields_by_name[name], other.fields_by_name[name])
            return
        was, now = (_written_as(field) for field in (old, new))
        if was != now:
            self.say(place, f"was {was}, is {now}")
            return
        if old.is_repeated != new.is_repeated and old.type not in LENGTH_DELIMITED:
            self.say(place, f"a number was {_many(old)}, is {_many(new)}")
        if old.message_type is not None and new.message_type is not None:
            if _local_name(old.message_type) != _local_name(new.message_type):
                self.say(place, f"was {_local_name(old.message_type)}, is {_local_name(new.message_type)}")
            else:
                self.compare(place, old.message_type, new.message_type)

    def _compare_oneofs(self, path: str, old: Descriptor, new: Descriptor) -> None:
        for oneof in new.oneofs:
            moved = [
                field
                for field in oneof.fields
                if _oneof(field) is not None
                and (before := old.fields_by_number.get(field.number)) is not None
                and _oneof(before) is None
            ]
            existed = any(each.name == oneof.name and _is_real(each) for each in old.oneofs)
            names = ", ".join(field.name for field in moved)
            if existed and moved:
                self.say(f"{path}.{oneof.name}", f"{names} moved into a oneof that was there already")
            elif len(moved) > 1:
                self.say(f"{path}.{oneof.name}", f"{names} moved into one oneof: only one of them can be kept")

    def _compare_reserved(self, path: str, old: Descriptor, new: Descriptor) -> None:
        said = DescriptorProto()
        old.CopyToProto(said)
        for number, field in sorted(new.fields_by_number.items()):
            if number in old.fields_by_number:
                continue
            if any(each.start <= number < each.end for each in said.reserved_range):
                self.say(f"{path}.{field.name}", f"the number {number} was reserved")
            elif field.name in said.reserved_name:
                self.say(f"{path}.{field.name}", "its name was reserved")


def _written_as(field: FieldDescriptor) -> str:
    return "a map" if _is_map(field) else WRITTEN_AS[field.type]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _many(field: FieldDescriptor) -> str:
    return "repeated" if field.is_repeated else "single"


def _is_real(oneof: OneofDescriptor) -> bool:
    """Not the one that only says that a field of proto3 is `optional`."""
    return not (len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}")


def _oneof(field: FieldDescriptor) -> OneofDescriptor | None:
    oneof = field.containing_oneof
    return oneof if oneof is not None and _is_real(oneof) else None


def _local_name(message: Descriptor | EnumDescriptor) -> str:
    """Without the package, which another file may have changed."""
    return message.full_name.removeprefix(f"{message.file.package}.") if message.file.package else message.full_name

"""From a descriptor back to the text of a .proto file: clients send descriptors, people and other clients read text.

Options of one's own are left out: what they mean is written in a file that the descriptor does not hold.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.message import Message

from goqueue.model.schemas import InvalidSchema

FIELD = descriptor_pb2.FieldDescriptorProto
TYPES = {number: name.removeprefix("TYPE_").lower() for name, number in FIELD.Type.items()}
LABELS = {FIELD.LABEL_REQUIRED: "required ", FIELD.LABEL_REPEATED: "repeated ", FIELD.LABEL_OPTIONAL: "optional "}
TAG_MAX = 1 << 29
ENUM_MAX = (1 << 31) - 1
INDENT = "  "
EDITION_NAMES = descriptor_pb2.Edition


def proto_text(file: Any) -> str:
    lines = [_syntax(file)]
    if file.package:
        lines.append(f"package {file.package};")
    for number, name in enumerate(file.dependency):
        how = "public " if number in file.public_dependency else "weak " if number in file.weak_dependency else ""
        lines.append(f'import {how}"{name}";')
    lines += [f"option {each};" for each in _options(file.options)]
    for enum in file.enum_type:
        lines += ["", *_enum(enum)]
    for message in file.message_type:
        lines += ["", *_message(message, file.syntax)]
    lines += _extensions(file.extension, file.syntax)
    for service in file.service:
        lines += ["", *_service(service)]
    return "\n".join(lines) + "\n"


def _syntax(file: Any) -> str:
    if file.syntax == "editions":
        return f'edition = "{EDITION_NAMES.Name(file.edition).removeprefix("EDITION_")}";'
    return f'syntax = "{file.syntax or "proto2"}";'


def _indented(lines: Sequence[str] | Iterator[str]) -> list[str]:
    return [f"{INDENT}{line}" if line else line for line in lines]


def _message(message: Any, syntax: str) -> list[str]:
    maps = {each.name: each for each in message.nested_type if each.options.map_entry}
    inside = [f"option {each};" for each in _options(message.options)]
    inside += _reserved(message.reserved_range, message.reserved_name, TAG_MAX - 1)
    for span in message.extension_range:
        inside.append(f"extensions {_span(span.start, span.end - 1, TAG_MAX - 1)};")
    for enum in message.enum_type:
        inside += _enum(enum)
    for nested in message.nested_type:
        if nested.name not in maps:
            inside += _message(nested, syntax)
    shown: set[int] = set()
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            inside.append(_field(field, maps, syntax))
        elif field.oneof_index not in shown:
            shown.add(field.oneof_index)
            inside += _oneof(message, field.oneof_index, maps, syntax)
    inside += _extensions(message.extension, syntax)
    return [f"message {message.name} {{", *_indented(inside), "}"]


def _oneof(message: Any, index: int, maps: dict[str, Any], syntax: str) -> list[str]:
    chosen = [each for each in message.field if each.HasField("oneof_index") and each.oneof_index == index]
    fields = [_field(each, maps, syntax, in_oneof=True) for each in chosen]
    return [f"oneof {message.oneof_decl[index].name} {{", *_indented(fields), "}"]


def _field(field: Any, maps: dict[str, Any], syntax: str, *, in_oneof: bool = False) -> str:
    if field.type == FIELD.TYPE_GROUP:
        raise InvalidSchema(f"field {field.name} is a group: Protobuf gave these up, and they are not taken here")
    kind = field.type_name or TYPES[field.type]
    label = LABELS[field.label]
    entry = maps.get(field.type_name.rpartition(".")[2]) if field.type_name else None
    if entry is not None:
        key, value = entry.field
        kind = f"map<{TYPES[key.type]}, {value.type_name or TYPES[value.type]}>"
    is_plain = field.label == FIELD.LABEL_OPTIONAL and syntax != "proto2" and syntax and not field.proto3_optional
    if entry is not None or in_oneof or is_plain:
        label = ""
    said = list(_options(field.options))
    if field.HasField("default_value"):
        is_text = field.type in (FIELD.TYPE_STRING, FIELD.TYPE_BYTES)
        said.insert(0, f"default = {_quoted(field.default_value) if is_text else field.default_value}")
    if field.json_name and field.json_name != _json_name(field.name):
        said.append(f"json_name = {_quoted(field.json_name)}")
    return f"{label}{kind} {field.name} = {field.number}{_in_brackets(said)};"


def _enum(enum: Any) -> list[str]:
    inside = [f"option {each};" for each in _options(enum.options)]
    inside += _reserved(enum.reserved_range, enum.reserved_name, ENUM_MAX, is_inclusive=True)
    for value in enum.value:
        said = list(_options(value.options))
        inside.append(f"{value.name} = {value.number}{_in_brackets(said)};")
    return [f"enum {enum.name} {{", *_indented(inside), "}"]


def _service(service: Any) -> list[str]:
    inside = []
    for method in service.method:
        given = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        made = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        inside.append(f"rpc {method.name} ({given}) returns ({made});")
    return [f"service {service.name} {{", *_indented(inside), "}"]


def _extensions(fields: Any, syntax: str) -> list[str]:
    lines = []
    for field in fields:
        lines += [f"extend {field.extendee} {{", f"{INDENT}{_field(field, {}, syntax)}", "}"]
    return lines


def _reserved(ranges: Any, names: Any, highest: int, *, is_inclusive: bool = False) -> list[str]:
    lines = [f"reserved {_span(each.start, each.end - (not is_inclusive), highest)};" for each in ranges]
    return [*lines, *(f'reserved "{name}";' for name in names)]


def _span(first: int, last: int, highest: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last >= highest else last}"


def _options(options: Message) -> Iterator[str]:
    for field, value in options.ListFields():
        if field.is_extension or field.message_type is not None:
            continue
        for each in value if field.is_repeated else [value]:
            if field.name == "map_entry":
                continue
            if field.enum_type is not None:
                yield f"{field.name} = {field.enum_type.values_by_number[each].name}"
            elif isinstance(each, bool):
                yield f"{field.name} = {str(each).lower()}"
            else:
                yield f"{field.name} = {_quoted(each) if isinstance(each, str) else each}"


def _in_brackets(said: Sequence[str]) -> str:
    return f" [{', '.join(said)}]" if said else ""


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in others)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

"""Compiles a message class into a function that decodes one version of it.

The function is flat: nested messages are loops in it, not calls. A run of fixed fields, with the length prefix or tag
count that follows, is one `unpack_from`. Only element counts are checked against the bytes that are left where they are
read. Strings and the like are cut out unchecked: a slice beyond the end is merely short, every later read then fails,
and one comparison at the end finds a message that ends in one.
"""

from collections.abc import Callable
from struct import calcsize

from goqueue.wire.kafka.bounds import entries_max
from goqueue.wire.kafka.errors import MalformedRequest, TooManyEntries
from goqueue.wire.kafka.notation import Message
from goqueue.wire.kafka.schema import FIXED, FIXED_BYTES, NEVER, Field, element_bytes, fields_of, has_records
from goqueue.wire.kafka.source import Source
from goqueue.wire.kafka.varint import TAGS_MAX, read_varint, skip_tags

Decode = Callable[[memoryview, int], tuple[Message, int]]
"""(frame, position) -> (message, where it ends)."""


def compile_decoder(message: type[Message], version: int, is_flexible: bool) -> Decode:
    title = f"{message.__name__} v{version}"
    source = Source("def decode(frame, pos):", title)
    source.names.update(
        TooManyEntries=TooManyEntries, MalformedRequest=MalformedRequest, read_varint=read_varint, skip_tags=skip_tags
    )
    # Strings are cut out of bytes in half the time that a view takes, so a frame is copied unless it carries records.
    is_view = has_records(message)
    source.line(f"data = {'frame' if is_view else 'bytes(frame)'}")
    source.line("size = len(data)")
    limit = entries_max(message.__name__)
    if limit is not None:
        source.line("entries = 0")
    with source.block("try:"):
        built = Decoder(source, version, is_flexible, is_view, limit).message(message)
        source.line(f"message = {built}")
    with source.block("except (StructError, IndexError, UnicodeDecodeError) as error:"):
        source.line(f'raise MalformedRequest(f"{title}: {{error}}") from error')
    with source.block("if pos > size:"):
        source.line(f'raise MalformedRequest("{title}: cut short")')
    source.line("return message, pos")
    decode: Decode = source.compile("decode")
    return decode


class Decoder:
    """Writes the lines that decode one version, and gives back the expressions that hold what they decoded."""

    def __init__(self, source: Source, version: int, is_flexible: bool, is_view: bool, entries_max: int | None) -> None:
        self.source = source
        self.version = version
        self.is_flexible = is_flexible
        self.is_view = is_view
        """The data is a memoryview, not bytes."""
        self.entries_max = entries_max

    def message(self, message: type[Message]) -> str:
        fields = fields_of(message)
        present = [field for field in fields if self.version in field.versions]
        values = {field.name: self._field(field) for field in present if field.tag is None}
        if self.is_flexible:
            values |= self._tagged([field for field in present if field.tag is not None])
        self._finish_run()
        # Positional arguments are the fastest; what comes behind the last field of this version is left to its default.
        positional = fields[: max((fields.index(field) + 1 for field in present), default=0)]
        arguments = (values.get(field.name) or self.source.literal(field.default) for field in positional)
        return f"{self.source.class_name(message)}({', '.join(arguments)})"

    def _field(self, field: Field) -> str:
        if field.is_array:
            return self._array(field)
        if field.kind in FIXED:
            return self._fixed(FIXED[field.kind], field.name)
        if field.message is None:
            return self._slice(field)
        return self._nested(field, field.message)

    def _fixed(self, code: str, hint: str) -> str:
        variable = self.source.fresh(hint)
        self.source.run.append((code, variable))
        return variable

    def _finish_run(self) -> None:
        run = self.source.run
        if not run:
            return
        codes = "".join(code for code, _ in run)
        variables = ", ".join(variable for _, variable in run)
        if codes == "B":
            self.source.line(f"{variables} = data[pos]")
        else:
            self.source.line(f"{variables}, = {self.source.struct_method(codes, 'unpack_from')}(data, pos)")
        self.source.line(f"pos += {calcsize(f'>{codes}')}")
        run.clear()

    def _length(self, field: Field, legacy_code: str) -> str:
        """Reads a length or count; -1 then stands for null. Refuses what the field must not have."""
        length = self._fixed("B" if self.is_flexible else legacy_code, f"{field.name}_length")
        self._finish_run()
        if self.is_flexible:
            self._rest_of_varint(length)
            self.source.line(f"{length} -= 1")
        if not self._is_nullable(field):
            self._refuse(f"{length} < 0", f"{field.name} must not be null")
        elif not self.is_flexible:
            self._refuse(f"{length} < -1", f"{field.name} has a negative length")
        return length

    def _rest_of_varint(self, length: str) -> None:
        """Two bytes are read here, since the records of most requests have a length of two; more are read by a call."""
        with self.source.block(f"if {length} > 127:"):
            self.source.line("more = data[pos]")
            with self.source.block("if more < 128:"):
                self.source.line(f"{length} += (more << 7) - 128")
                self.source.line("pos += 1")
            with self.source.block("else:"):
                self.source.line(f"{length}, pos = read_varint(data, pos - 1)")

    def _is_nullable(self, field: Field) -> bool:
        return self.version in field.null_versions

    def _refuse(self, condition: str, reason: str) -> None:
        with self.source.block(f"if {condition}:"):
            self.source.line(f'raise MalformedRequest("{self.source.title}: {reason}")')

    def _unless_null(self, field: Field, length: str, decode: Callable[[Field, str, str], None]) -> str:
        value = self.source.fresh(field.name)
        if not self._is_nullable(field):
            decode(field, length, value)
            return value
        with self.source.block(f"if {length} < 0:"):
            self.source.line(f"{value} = None")
        with self.source.block("else:"):
            decode(field, length, value)
        return value

    def _slice(self, field: Field) -> str:
        length = self._length(field, "h" if field.kind == "string" else "i")
        return self._unless_null(field, length, self._cut_out)

    def _cut_out(self, field: Field, length: str, value: str) -> None:
        self.source.line(f"stop = pos + {length}")
        if field.kind == "string":
            decoded = 'str(data[pos:stop], "utf-8")' if self.is_view else "data[pos:stop].decode()"
            self.source.line(f"{value} = {decoded}")
        elif field.kind == "bytes" and self.is_view:
            self.source.line(f"{value} = bytes(data[pos:stop])")
        else:
            self.source.line(f"{value} = data[pos:stop]")
        self.source.line("pos = stop")

    def _array(self, field: Field) -> str:
        length = self._length(field, "i")
        least = element_bytes(field, self.version, self.is_flexible)
        assert least > 0, f"{field.name}: elements without a size would have no bound"
        self._refuse(f"{length} * {least} > size - pos", f"{field.name} has more elements than bytes")
        self._count(length)
        return self._unless_null(field, length, self._elements)

    def _count(self, length: str) -> None:
        if self.entries_max is None:
            return
        self.source.line(f"entries += {length}")
        with self.source.block(f"if entries > {self.entries_max}:"):
            text = f"{self.source.title}: more than {self.entries_max} entries in one request; ask for fewer at a time"
            self.source.line(f'raise TooManyEntries("{text}")')

    def _elements(self, field: Field, length: str, value: str) -> None:
        if field.kind in FIXED:
            code, size = FIXED[field.kind], FIXED_BYTES[field.kind]
            self.source.line(f"{value} = [*{self.source.array_method(code, 'unpack_from', length)}(data, pos)]")
            self.source.line(f"pos += {length} * {size}")
            return
        self.source.line(f"{value} = []")
        with self.source.block(f"for _ in range({length}):"):
            element = self._field(field._replace(is_array=False, null_versions=NEVER))
            self.source.line(f"{value}.append({element})")

    def _nested(self, field: Field, message: type[Message]) -> str:
        value = self.source.fresh(field.name)
        if not self._is_nullable(field):
            self.source.line(f"{value} = {self.message(message)}")
            return value
        marker = self._fixed("b", f"{field.name}_marker")
        self._finish_run()
        with self.source.block(f"if {marker} < 0:"):
            self.source.line(f"{value} = None")
        with self.source.block("else:"):
            self.source.line(f"{value} = {self.message(message)}")
        return value

    def _tagged(self, fields: list[Field]) -> dict[str, str]:
        count = self._fixed("B", "tags")
        self._finish_run()
        values = {field.name: self.source.fresh(field.name) for field in fields}
        for field in fields:
            self.source.line(f"{values[field.name]} = {self.source.literal(field.default)}")
        if not fields:
            with self.source.block(f"if {count}:"):
                self.source.line("pos = skip_tags(data, pos - 1)")
            return values
        tag, end = self.source.fresh("tag"), self.source.fresh("tag_end")
        with self.source.block(f"if {count}:"):
            self.source.line(f"{count}, pos = read_varint(data, pos - 1)")
            self._refuse(f"{count} > {TAGS_MAX}", f"more than {TAGS_MAX} tagged fields")
            with self.source.block(f"for _ in range({count}):"):
                self.source.line(f"{tag}, pos = read_varint(data, pos)")
                self.source.line(f"{end}, pos = read_varint(data, pos)")
                self.source.line(f"{end} += pos")
                self._tag_choices(fields, values, tag, end)
                self._refuse(f"pos != {end}", "a tagged field is not as long as it says")
        return values

    def _tag_choices(self, fields: list[Field], values: dict[str, str], tag: str, end: str) -> None:
        for index, field in enumerate(fields):
            with self.source.block(f"{'el' if index else ''}if {tag} == {field.tag}:"):
                value = self._field(field)
                self._finish_run()
                self.source.line(f"{values[field.name]} = {value}")
        with self.source.block("else:"):
            self.source.line(f"pos = {end}")

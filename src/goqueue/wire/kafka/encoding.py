"""Compiles a message class into a function that encodes one version of it.

The function collects short pieces and joins them once; a run of fixed fields, with the length prefix that follows, is
one `pack`. Records are not joined: the output is split around them, so that they go from where they lie to the network.
"""

from collections.abc import Callable

from goqueue.wire.kafka.notation import Message, Stretch
from goqueue.wire.kafka.schema import FIXED, NEVER, Field, fields_of
from goqueue.wire.kafka.source import Source
from goqueue.wire.kafka.varint import ONE_BYTE, encode_varint

Part = bytes | memoryview | Stretch
Encode = Callable[[Message], tuple[list[Part], int]]
"""message -> (its parts, of which every second is records, and the length of all together)."""
BUFFERS = (bytes, memoryview)


def compile_encoder(message: type[Message], version: int, is_flexible: bool) -> Encode:
    source = Source("def encode(message):", f"{message.__name__} v{version}")
    source.names.update(BUFFERS=BUFFERS, ONE_BYTE=ONE_BYTE, encode_varint=encode_varint)
    source.line("pieces = []")
    source.line("parts = []")
    source.line("size = 0")
    with source.block("try:"):
        source.line("add = pieces.append")
        Encoder(source, version, is_flexible).message(message, "message")
    with source.block("except (StructError, TypeError, AttributeError) as error:"):
        source.line(f'raise ValueError(f"{source.title}: {{error}}") from error')
    source.line('last = b"".join(pieces)')
    source.line("parts.append(last)")
    source.line("return parts, size + len(last)")
    encode: Encode = source.compile("encode")
    return encode


class Encoder:
    """Writes the lines that encode one version."""

    def __init__(self, source: Source, version: int, is_flexible: bool) -> None:
        self.source = source
        self.version = version
        self.is_flexible = is_flexible

    def message(self, message: type[Message], value: str) -> None:
        fields = fields_of(message)
        for field in fields:
            if self.version not in field.versions and not field.is_ignorable:
                self._finish_run()
                with self.source.block(f"if {self._differs_from_default(field, f'{value}.{field.name}')}:"):
                    self.source.line(f'raise ValueError("{self.source.title} has no {field.name}")')
        present = [field for field in fields if self.version in field.versions]
        for field in present:
            if field.tag is None:
                self._field(field, f"{value}.{field.name}")
        if self.is_flexible:
            self._tagged(sorted((field for field in present if field.tag is not None), key=_tag), value)
        self._finish_run()

    def _differs_from_default(self, field: Field, value: str) -> str:
        if field.default is None and field.message is not None and not field.is_array:
            empty = f"EMPTY_{field.message.__name__}"
            self.source.names[empty] = field.message()
            return f"{value} is not None and {value} != {empty}"
        if field.default is None or isinstance(field.default, bool):
            return f"{value} is not {field.default}"
        if field.is_array and field.null_versions == NEVER:
            return value
        return f"{value} != {self.source.literal(field.default)}"

    def _field(self, field: Field, value: str) -> None:
        if field.is_array:
            self._array(field, value)
        elif field.kind in FIXED:
            self.source.run.append((FIXED[field.kind], value))
        elif field.kind == "records":
            self._records(field, value)
        elif field.message is None:
            self._slice(field, value)
        else:
            self._nested(field, field.message, value)

    def _finish_run(self) -> None:
        run = self.source.run
        codes = "".join(code for code, _ in run)
        if codes.strip("x"):
            values = ", ".join(value for code, value in run if code != "x")
            self.source.line(f"add({self.source.struct_method(codes, 'pack')}({values}))")
        elif codes:
            self.source.line(f"add({bytes(len(codes))!r})")
        run.clear()

    def _length(self, length: str, legacy_code: str) -> None:
        """Ends the run with a length or count, of which -1 means null."""
        if not self.is_flexible:
            self.source.run.append((legacy_code, length))
            self._finish_run()
            return
        self.source.line(f"{length} += 1")
        before = self.source.run.copy()
        self.source.run.clear()
        with self.source.block(f"if {length} < 128:"):
            if before:
                self.source.run.extend([*before, ("B", length)])
                self._finish_run()
            else:
                self.source.line(f"add(ONE_BYTE[{length}])")
        with self.source.block("else:"):
            self.source.run.extend(before)
            self._finish_run()
            self.source.line(f"add(encode_varint({length}))")

    def _measure(self, field: Field, value: str, empty: str = 'b""') -> tuple[str, str]:
        """Variables for the value, with `empty` in place of null, and for its length, with -1 for null."""
        held, length = self.source.fresh(field.name), self.source.fresh(f"{field.name}_length")
        before = self.source.run.copy()
        self.source.run.clear()  # it reads fields only, so it may as well be packed behind these lines
        self.source.line(f"{held} = {value}")
        if self.version in field.null_versions:
            with self.source.block(f"if {held} is None:"):
                self.source.line(f"{held} = {empty}")
                self.source.line(f"{length} = -1")
            with self.source.block("else:"):
                self._measure_present(field, held, length)
        else:
            self._measure_present(field, held, length)
        self.source.run.extend(before)
        return held, length

    def _measure_present(self, field: Field, held: str, length: str) -> None:
        if field.kind == "string" and not field.is_array:
            self.source.line(f"{held} = {held}.encode()")
        if field.kind == "records":  # `len` of a Stretch that is a named tuple would be its number of fields
            self.source.line(f"{length} = len({held}) if isinstance({held}, BUFFERS) else {held}.length")
        else:
            self.source.line(f"{length} = len({held})")

    def _slice(self, field: Field, value: str) -> None:
        held, length = self._measure(field, value)
        self._length(length, "h" if field.kind == "string" else "i")
        self.source.line(f"add({held})")

    def _records(self, field: Field, value: str) -> None:
        held, length = self._measure(field, value)
        records_size = self.source.fresh("records_size")
        self.source.line(f"{records_size} = {length}")
        self._length(length, "i")
        with self.source.block(f"if {records_size} > 0:"):
            self.source.line('before = b"".join(pieces)')
            self.source.line("pieces.clear()")
            self.source.line("parts.append(before)")
            self.source.line(f"parts.append({held})")
            self.source.line(f"size += len(before) + {records_size}")

    def _array(self, field: Field, value: str) -> None:
        held, length = self._measure(field, value, "()")
        self._length(length, "i")
        if field.kind in FIXED:
            count = self.source.fresh("count")
            with self.source.block(f"if {held}:"):
                self.source.line(f"{count} = len({held})")
                self.source.line(f"add({self.source.array_method(FIXED[field.kind], 'pack', count)}(*{held}))")
            return
        element = self.source.fresh("element")
        with self.source.block(f"for {element} in {held}:"):
            self._field(field._replace(is_array=False, null_versions=NEVER), element)
            self._finish_run()

    def _nested(self, field: Field, message: type[Message], value: str) -> None:
        self._finish_run()
        held = value
        if not value.isidentifier():
            held = self.source.fresh(field.name)
            self.source.line(f"{held} = {value}")
        if self.version not in field.null_versions:
            self.message(message, held)
            return
        with self.source.block(f"if {held} is None:"):
            self.source.line('add(b"\\xff")')
        with self.source.block("else:"):
            self.source.line('add(b"\\x01")')
            self.message(message, held)

    def _tagged(self, fields: list[Field], value: str) -> None:
        if not fields:
            self.source.run.append(("x", ""))
            return
        self._finish_run()
        conditions = [self._differs_from_default(field, f"{value}.{field.name}") for field in fields]
        at, count = self.source.fresh("tags_at"), self.source.fresh("tags")
        with self.source.block(f"if {' or '.join(conditions)}:"):
            self.source.line(f"{at} = len(pieces)")
            self.source.line(f"{count} = 0")
            for field, condition in zip(fields, conditions):
                with self.source.block(f"if {condition}:"):
                    self.source.line(f"{count} += 1")
                    self._tagged_field(field, f"{value}.{field.name}")
            self.source.line(f"pieces.insert({at}, ONE_BYTE[{count}])")
        with self.source.block("else:"):
            self.source.line('add(b"\\0")')

    def _tagged_field(self, field: Field, value: str) -> None:
        """Its tag and size are put in front of it once the size is known."""
        start = self.source.fresh("tag_at")
        self.source.line(f"{start} = len(pieces)")
        self._field(field, value)
        self._finish_run()
        self.source.line(f"tag_size = encode_varint(sum(map(len, pieces[{start}:])))")
        self.source.line(f"pieces.insert({start}, {encode_varint(field.tag or 0)!r} + tag_size)")


def _tag(field: Field) -> int:
    return field.tag or 0

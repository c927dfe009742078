"""Understanding schemas and comparing them takes from a millisecond to a second, so it is done aside, before anything
is decided. What was found out is kept for a while: whoever decides in the broker's own thread finds it there. If
something came between and it is not there, it is found out then, within the same limits.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from goqueue.broker.schemas.formats.parsed import Dependency, Parsed
from goqueue.model.schemas import InvalidSchema, SchemaKind
from goqueue.runtime.aside import Aside

PARSED_MAX = 100
VERDICTS_MAX = 2000


class Text(NamedTuple):
    """A schema that nobody has looked at."""

    kind: SchemaKind
    text: str
    dependencies: tuple[Dependency, ...]


class Failed(NamedTuple):
    """Kept in place of an error, which would keep all that was going on when it was raised."""

    kind: type[InvalidSchema]
    why: str


Pair: TypeAlias = tuple[Text, Text]
"""Who reads, and what was written."""
_K = TypeVar("_K")
_V = TypeVar("_V")


class Study:
    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._parsed: OrderedDict[Text, Parsed | Failed] = OrderedDict()
        self._verdicts: OrderedDict[Pair, list[str] | Failed] = OrderedDict()

    def parse(self, text: Text) -> Parsed:
        """InvalidSchema: it is none."""
        found = self._parsed.get(text)
        if found is None:
            found = _keep(self._parsed, text, read_schema(text), PARSED_MAX)
        if isinstance(found, Failed):
            raise found.kind(found.why)
        return found

    def has_read(self, text: Text) -> bool:
        return text in self._parsed

    def learn(self, text: Text, found: Parsed | Failed) -> None:
        _keep(self._parsed, text, found, PARSED_MAX)

    def cannot_read(self, reader: Text, writer: Text) -> list[str]:
        """Why the one cannot read what was written with the other. InvalidSchema: one of them is none, or it would take
        too long to say.
        """
        found = self._verdicts.get((reader, writer))
        if found is None:
            verdict = _compare(self.parse(reader), self.parse(writer))
            found = _keep(self._verdicts, (reader, writer), verdict, VERDICTS_MAX)
        if isinstance(found, Failed):
            raise found.kind(found.why)
        return list(found)

    def prepare(self, texts: Iterable[Text], pairs: Sequence[Pair], on_ready: Callable[[None], None]) -> None:
        """Find all this out aside."""
        wanted = dict.fromkeys([*texts, *(text for pair in pairs for text in pair)])
        parsed = {text: self._parsed.get(text) for text in wanted}
        missing = [pair for pair in pairs if pair not in self._verdicts]
        verdicts: dict[Pair, list[str] | Failed] = {}

        def work() -> None:
            for text, known in list(parsed.items()):
                if known is None:
                    parsed[text] = read_schema(text)
            for reader, writer in missing:
                verdicts[reader, writer] = _compare(parsed[reader], parsed[writer])

        def done(error: BaseException | None) -> None:
            if error is None:
                for text, found in parsed.items():
                    if found is not None:
                        _keep(self._parsed, text, found, PARSED_MAX)
                for pair, verdict in verdicts.items():
                    _keep(self._verdicts, pair, verdict, VERDICTS_MAX)
            on_ready(None)

        if missing or None in parsed.values():
            self._aside(work, done)
        else:
            on_ready(None)


def _keep(kept: "OrderedDict[_K, _V]", key: _K, value: _V, most: int) -> _V:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
    return value


def read_schema(text: Text) -> Parsed | Failed:
    """Takes long, and touches nothing: for any thread."""
    try:
        return _FORMATS[text.kind](text.text, text.dependencies)
    except InvalidSchema as error:
        return Failed(type(error), str(error))


def _compare(reader: Parsed | Failed | None, writer: Parsed | Failed | None) -> list[str] | Failed:
    for each in (reader, writer):
        if isinstance(each, Failed):
            return each
    assert reader is not None
    assert writer is not None
    try:
        return reader.cannot_read(writer)  # type: ignore[union-attr, arg-type]  # neither has failed
    except InvalidSchema as error:
        return Failed(type(error), str(error))
    except RecursionError:
        return Failed(InvalidSchema, "it is nested too deep to be compared")


def _avro(text: str, dependencies: Sequence[Dependency]) -> Parsed:
    from goqueue.broker.schemas.formats.avro import AvroSchema

    return AvroSchema(text, dependencies)


def _json(text: str, dependencies: Sequence[Dependency]) -> Parsed:
    from goqueue.broker.schemas.formats.json_schema import JsonSchema

    return JsonSchema(text, dependencies)


def _protobuf(text: str, dependencies: Sequence[Dependency]) -> Parsed:
    from goqueue.broker.schemas.formats.protobuf import ProtobufSchema

    return ProtobufSchema(text, dependencies)


_FORMATS: dict[SchemaKind, Callable[[str, Sequence[Dependency]], Parsed]] = {
    SchemaKind.AVRO: _avro,
    SchemaKind.JSON: _json,
    SchemaKind.PROTOBUF: _protobuf,
}
"""Loaded when first needed: a node without schemas starts as fast as before."""

"""Schema resolution, as Avro's specification has it: can a reader with one schema read what another one wrote?"""

from typing import Any

from goqueue.broker.schemas.formats.avro_names import NAMED, PRIMITIVES, Names, all_names, short_name
from goqueue.broker.schemas.formats.parsed import Budget

PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""What was written as the one may be read as any of the others."""


STEPS_MAX = 20_000


def mismatches(reader: Names, writer: Names) -> list[str]:
    """TooComplex: it would take too long to say."""
    resolution = _Resolution(reader, writer)
    resolution.compare("", reader.root, writer.root)
    return resolution.found


class _Resolution:
    """Types are compared in pairs, each as if those that it stands in were fine. A pair that fails even so fails for
    good; what was found fine under an assumption that failed is compared again.
    """

    def __init__(self, reader: Names, writer: Names) -> None:
        self._reader = reader
        self._writer = writer
        self._budget = Budget(STEPS_MAX, "comparing two Avro schemas")
        self._assumed: dict[tuple[int, int], None] = {}
        """Fine, or under way; in the order in which they were begun."""
        self._failed: set[tuple[int, int]] = set()
        self.found: list[str] = []

    def _say(self, path: str, why: str) -> None:
        self.found.append(f"{path or 'the schema'}: {why}")

    def _reads(self, path: str, reader: Any, writer: Any) -> bool:
        before, self.found = self.found, []
        self.compare(path, reader, writer)
        is_fine, self.found = not self.found, before
        return is_fine

    def compare(self, path: str, reader: Any, writer: Any) -> None:
        self._budget.take()
        kind, read = self._reader.look_up(reader)
        written_kind, written = self._writer.look_up(writer)
        if written_kind == "union":
            for number, branch in enumerate(written):
                if not self._reads(path, reader, branch):
                    self._say(path, f"branch {number} of the union, {self._name(self._writer, branch)}, cannot be read")
            return
        if kind == "union":
            if not any(self._reads(path, branch, writer) for branch in read):
                self._say(path, f"{self._name(self._writer, writer)} is none of the branches of the union")
            return
        if kind != written_kind:
            if kind not in PROMOTIONS.get(written_kind, ()):
                self._say(path, f"was {written_kind}, is {kind}")
            return
        if kind in PRIMITIVES:
            self._compare_same(path, kind, read, written)
        else:
            self._compare_pair(path, kind, read, written)

    def _compare_pair(self, path: str, kind: str, read: Any, written: Any) -> None:
        pair = (id(read), id(written))
        if pair in self._failed:
            self._say(path, f"{self._name(self._writer, written)} cannot be read here either")
        elif pair not in self._assumed:
            self._assumed[pair] = None
            said = len(self.found)
            self._compare_same(path, kind, read, written)
            if len(self.found) > said:
                self._failed.add(pair)
                while self._assumed.popitem()[0] != pair:
                    pass

    def _compare_same(self, path: str, kind: str, read: Any, written: Any) -> None:
        if kind in NAMED and short_name(written) not in all_names(read):
            self._say(path, f"{kind} {short_name(written)} is called {short_name(read)}, without an alias")
        elif kind == "record":
            self._compare_records(path, read, written)
        elif kind == "enum":
            lost = [each for each in written["symbols"] if each not in read["symbols"]]
            if lost and "default" not in read:
                self._say(path, f"symbols {', '.join(lost)} are gone and there is no default symbol")
        elif kind == "fixed" and read["size"] != written["size"]:
            self._say(path, f"had {written['size']} bytes, has {read['size']}")
        elif kind == "array":
            self.compare(f"{path}[]", read["items"], written["items"])
        elif kind == "map":
            self.compare(f"{path}{{}}", read["values"], written["values"])
        if read.get("logicalType") == written.get("logicalType") == "decimal" and _decimal(read) != _decimal(written):
            self._say(path, "precision or scale of the decimal changed")

    def _compare_records(self, path: str, read: Any, written: Any) -> None:
        there = {field["name"]: field for field in written["fields"]}
        for field in read["fields"]:
            place = f"{path}.{field['name']}".lstrip(".")
            names = [field["name"], *field.get("aliases", ())]
            source = next((there[name] for name in names if name in there), None)
            if source is not None:
                self.compare(place, field["type"], source["type"])
            elif "default" not in field:
                self._say(place, "the field was not written and has no default")

    def _name(self, names: Names, schema: Any) -> str:
        kind, said = names.look_up(schema)
        return f"{kind} {short_name(said)}" if kind in NAMED else kind


def _decimal(schema: Any) -> tuple[Any, Any]:
    return schema.get("precision"), schema.get("scale", 0)

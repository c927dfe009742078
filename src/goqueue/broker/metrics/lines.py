"""The beginnings of lines, which are the same at every scrape: made once for a series, as long as it is there.

The text is what prometheus-client would write, and tests compare the two; but it takes 10 us for a line, and a node
with a thousand topics has tens of thousands.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias, TypeVar

from goqueue.telemetry.histogram import Histogram

Values: TypeAlias = tuple[str, ...]
Tell: TypeAlias = Callable[[Sequence[str], Values], Values]
V = TypeVar("V")


class _Kept(dict[Values, str]):
    """By labels: made when it is first asked for."""

    def __init__(self, name: str, labels: Sequence[str], tell: Tell) -> None:
        super().__init__()
        self._name = name
        self._labels = labels
        self._tell = tell

    def __missing__(self, values: Values) -> str:
        made = self[values] = self._make(self._name, quoted(self._labels, self._tell(self._labels, values)))
        return made

    def _make(self, name: str, labels: str) -> str:
        return f"{name}{{{labels}}} "

    def keep(self, rows: Mapping[Values, object]) -> None:
        """All others are of series that are no more."""
        if len(self) > len(rows):
            for values in self.keys() - rows.keys():
                del self[values]


class _KeptHistograms(_Kept):
    """All lines of one at once, with a place for each number."""

    def __init__(self, name: str, labels: Sequence[str], tell: Tell, bounds: Sequence[float]) -> None:
        super().__init__(name, labels, tell)
        self._bounds = bounds

    def _make(self, name: str, labels: str) -> str:
        labels = labels.replace("%", "%%")
        buckets = "".join(f'{name}_bucket{{le="{bound}",{labels}}} %d\n' for bound in (*self._bounds, "+Inf"))
        return f"{buckets}{name}_count{{{labels}}} %d\n{name}_sum{{{labels}}} %r\n"


class Lines:
    """Of one node. `tell`: what of these labels is told for these values."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._numbers: dict[str, _Kept] = {}
        self._histograms: dict[str, _KeptHistograms] = {}

    def of_numbers(self, name: str, labels: Sequence[str], rows: Mapping[Values, float]) -> list[str]:
        kept = self._numbers.get(name)
        if kept is None:
            kept = self._numbers[name] = _Kept(name, labels, self._tell)
        kept.keep(rows)
        return [f"{kept[values]}{number}\n" for values, number in rows.items()]

    def of_histograms(self, name: str, labels: Sequence[str], rows: Mapping[Values, Histogram]) -> Iterator[str]:
        kept = self._histograms.get(name)
        if kept is None:
            bounds = next(iter(rows.values())).bounds
            kept = self._histograms[name] = _KeptHistograms(name, labels, self._tell, bounds)
        kept.keep(rows)
        for values, histogram in rows.items():
            counts = list(accumulate(histogram.counts))
            yield kept[values] % (*counts, counts[-1], histogram.total)


def quoted(names: Sequence[str], values: Iterable[str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    if value.isascii() and value.isprintable() and "\\" not in value and '"' not in value:
        return value
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

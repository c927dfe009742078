"""Values as people write them: 64MiB, 7d, -1. Each kind reads one, shows one and says what it expected."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from goqueue.storage.options import DAY_MS, KIB, MIB, SECOND_MS, UNLIMITED

_HTTP_URL = re.compile(r"https?://[^\s/]+(/\S*)?")
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?|\[?[0-9a-f:.]*:[0-9a-f:.]*\]?")
_ORIGIN = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?|[a-z][a-z0-9+-]*-extension://[a-z0-9-]+")
_DEFAULT_PORT = re.compile(r"^(http://.*(?=:80$)|https://.*(?=:443$)):[0-9]+$")
_ENDPOINT = re.compile(r"(https?://)?([a-z0-9._-]+|\[[0-9a-f:.]+\]):[0-9]{1,5}")
_HTTPS_URL = re.compile(r"https://[^\s/]+(/\S*)?")
_TEXT = re.compile(r"[!-~]{1,500}")
_WORD = re.compile(r"[A-Za-z0-9._-]{1,60}")
_AMOUNT = re.compile(r"([0-9]+) ?([A-Za-z]*)")


class Kind(Protocol):
    """A kind of setting. `parse` gets a string, or what TOML made of it, and raises ValueError."""

    @property
    def metavar(self) -> str:
        """What stands for the value in the help of a flag."""

    @property
    def expected(self) -> str:
        """What a person should have written."""

    def parse(self, raw: object) -> object: ...

    def show(self, value: object) -> str:
        """The shortest text that `parse` reads back as `value`."""


@dataclass(frozen=True)
class Quantity:
    """A whole number with a unit; a bare number counts in the smallest unit."""

    metavar: str
    units: Mapping[str, int]
    example: str
    at_least: int = 1
    at_most: int | None = None
    may_be_unlimited: bool = False

    @property
    def expected(self) -> str:
        limits = [f"at least {self.show(self.at_least)}"]
        if self.at_most is not None:
            limits.append(f"at most {self.show(self.at_most)}")
        text = f"{self.example} ({', '.join(limits)})"
        return f"{text}, or -1 for no limit" if self.may_be_unlimited else text

    def parse(self, raw: object) -> int:
        value = raw if type(raw) is int else self._parse_text(raw)
        if value == UNLIMITED and self.may_be_unlimited:
            return UNLIMITED
        if value < self.at_least or (self.at_most is not None and value > self.at_most):
            raise ValueError(value)
        return value

    def show(self, value: object) -> str:
        assert isinstance(value, int)
        for unit, size in sorted(self.units.items(), key=lambda item: -item[1]):
            if value >= size and value % size == 0:
                return f"{value // size}{unit}"
        return str(value)

    def _parse_text(self, raw: object) -> int:
        if raw == str(UNLIMITED):
            return UNLIMITED
        amount = _AMOUNT.fullmatch(raw.strip()) if isinstance(raw, str) else None
        if amount is None:
            raise ValueError(raw)
        sizes = {unit.lower(): size for unit, size in self.units.items()} | {"": 1}
        if amount[2].lower() not in sizes:
            raise ValueError(raw)
        return int(amount[1]) * sizes[amount[2].lower()]


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    options: type[StrEnum]

    @property
    def metavar(self) -> str:
        return "|".join(self.options)

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.options)}"

    def parse(self, raw: object) -> StrEnum:
        return self.options(str(raw))

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True)
class FilePath:
    """A path, relative to where the node was started."""

    metavar: str = "PATH"
    expected: str = "a path"

    def parse(self, raw: object) -> Path:
        if not isinstance(raw, str) or not raw or "\0" in raw:
            raise ValueError(raw)
        return Path(raw)

    def show(self, value: object) -> str:
        return "" if value is None else str(value)


def byte_size(*, at_least: int = 1, at_most: int | None = None, may_be_unlimited: bool = False) -> Quantity:
    units = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": KIB * MIB, "TiB": MIB * MIB}
    return Quantity("SIZE", units, "bytes such as 64MiB", at_least, at_most, may_be_unlimited)


def duration(*, at_least: int = 1, may_be_unlimited: bool = False) -> Quantity:
    units = {"ms": 1, "s": SECOND_MS, "m": 60 * SECOND_MS, "h": DAY_MS // 24, "d": DAY_MS}
    return Quantity("TIME", units, "a duration such as 1500ms, 30s or 7d", at_least, None, may_be_unlimited)


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


class Authentication(StrEnum):
    AUTO = "auto"
    ON = "on"
    OFF = "off"


class TraceExport(StrEnum):
    NONE = "none"
    STDOUT = "stdout"
    FILE = "file"
    OTLP = "otlp"


class MetricsExporter(StrEnum):
    NONE = "none"
    OTLP = "otlp"


@dataclass(frozen=True)
class Count:
    """A whole number of things."""

    at_least: int = 0
    at_most: int | None = None
    metavar: str = "NUMBER"

    @property
    def expected(self) -> str:
        limits = f"at least {self.at_least}" if self.at_most is None else f"{self.at_least} to {self.at_most}"
        return f"a whole number ({limits})"

    def parse(self, raw: object) -> int:
        value = raw if type(raw) is int else int(str(raw))
        if value < self.at_least or (self.at_most is not None and value > self.at_most):
            raise ValueError(value)
        return value

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True)
class OrAuto:
    """A count, or the word auto, which is 0."""

    count: Count
    metavar: str = "NUMBER|auto"

    @property
    def expected(self) -> str:
        return f"auto, or {self.count.expected}"

    def parse(self, raw: object) -> int:
        return 0 if raw == "auto" else self.count.parse(raw)

    def show(self, value: object) -> str:
        return self.count.show(value) if value else "auto"


@dataclass(frozen=True)
class Fraction:
    """A part of all."""

    metavar: str = "FRACTION"
    expected: str = "a number from 0 to 1 such as 0.01"

    def parse(self, raw: object) -> float:
        value = float(str(raw))
        if not 0 <= value <= 1:
            raise ValueError(value)
        return value

    def show(self, value: object) -> str:
        return f"{value:g}"


@dataclass(frozen=True)
class HttpUrl:
    """Where something is on the web."""

    metavar: str = "URL"
    expected: str = "an address such as http://localhost:4318/v1/traces"

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str) or not _HTTP_URL.fullmatch(raw):
            raise ValueError(raw)
        return raw

    def show(self, value: object) -> str:
        return str(value)


def listed(raw: object) -> list[str]:
    """Parted by commas, or a list of TOML."""
    words = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(raw)
    return [word.strip().lower() for word in words if word.strip()]


@dataclass(frozen=True)
class HostNames:
    """Names of a machine, without ports."""

    metavar: str = "NAME,..."
    expected: str = "names such as queue.example.com, parted by commas; * is any"

    def parse(self, raw: object) -> tuple[str, ...]:
        names = listed(raw)
        if not all(name == "*" or _HOST_NAME.fullmatch(name) for name in names):
            raise ValueError(raw)
        return tuple(names)

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(value)


@dataclass(frozen=True)
class Origins:
    """Whose web pages: scheme, host and port, as browsers write them."""

    metavar: str = "ORIGIN,..."
    expected: str = "origins such as https://console.example.com or http://localhost:3000, parted by commas"

    def parse(self, raw: object) -> tuple[str, ...]:
        origins = [each.removesuffix("/") for each in listed(raw)]
        if not all(_ORIGIN.fullmatch(each) for each in origins):
            raise ValueError(raw)
        return tuple(_DEFAULT_PORT.sub(r"\1", each) for each in origins)

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(value)


@dataclass(frozen=True)
class Endpoints:
    """Where the members of etcd are."""

    metavar: str = "URL,..."
    expected: str = "addresses such as http://10.0.0.1:2379, parted by commas"

    def parse(self, raw: object) -> tuple[str, ...]:
        endpoints = [each.removesuffix("/") for each in listed(raw)]
        if not all(_ENDPOINT.fullmatch(each) for each in endpoints):
            raise ValueError(raw)
        return tuple(endpoints)

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(value)


@dataclass(frozen=True)
class Word:
    """A name that stands in keys and logs."""

    metavar: str = "NAME"
    expected: str = "1 to 60 of the characters A-Z a-z 0-9 . _ -"

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str) or not _WORD.fullmatch(raw):
            raise ValueError(raw)
        return raw

    def show(self, value: object) -> str:
        return "none" if value is None else str(value)


@dataclass(frozen=True)
class Text:
    """Whatever others call something."""

    metavar: str = "TEXT"
    expected: str = "1 to 500 characters, without a space"

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str) or not _TEXT.fullmatch(raw):
            raise ValueError(raw)
        return raw

    def show(self, value: object) -> str:
        return "none" if value is None else str(value)


@dataclass(frozen=True)
class KeysPlace(Text):
    """A file, or a place on the web that nobody can put other keys into on the way."""

    metavar: str = "PATH|URL"
    expected: str = "a path, or an address that begins with https://"

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str) or ("://" in raw and not _HTTPS_URL.fullmatch(raw)):
            raise ValueError(raw)
        return super().parse(raw)


@dataclass(frozen=True)
class HttpsAddress(Text):
    """A place on the web that nobody can stand in for on the way."""

    metavar: str = "URL"
    expected: str = "an address that begins with https://"

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str) or not _HTTPS_URL.fullmatch(raw):
            raise ValueError(raw)
        return super().parse(raw)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class AddressKind:
    """host:port, with an IPv6 host in brackets."""

    metavar: str = "HOST:PORT"

    @property
    def expected(self) -> str:
        return "HOST:PORT such as 127.0.0.1:9092 or [::1]:9092"

    def parse(self, raw: object) -> Address:
        host, colon, port = str(raw).rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(raw)
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(raw)
        return Address(host, int(port))

    def show(self, value: object) -> str:
        return "none" if value is None else str(value)

"""Every class of the package that has a field for a secret: what is in it does not show in its text."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import goqueue
from goqueue.client import Security
from goqueue.model.secret import Secret

MARK = "MARKED-7f3"
SECRET_NAMES = re.compile(
    r"password|secret|auth_bytes|stored_key|server_key|salted|sealed|scram\b|^digest$|^basic$|api_key$"
)
NOT_SECRET = {
    ("RequestHeader", "api_key"),
    ("AdvertisedApi", "api_key"),
    ("PeerHead", "api_key"),
    ("_Pending", "api_key"),
    ("_Waiting", "api_key"),
    ("TlsFiles", "key_password"),  # a path
    ("KeyStored", "api_key"),  # an ApiKey, whose secrets are hidden
    ("ApiKey", "secrets"),
    ("KeyFacts", "secrets"),  # when they end
}
"""What is called so and is none: numbers of Kafka's APIs, paths, and what holds others that are looked at."""


ELSEWHERE = "goqueue.integrations.django."
"""Django needs a newer Python than the one that the tests run on: `tests/ops` runs it."""


def classes() -> Iterator[type[Any]]:
    for module in pkgutil.walk_packages(goqueue.__path__, "goqueue."):
        if "_pb2" in module.name or module.name.startswith(ELSEWHERE):
            continue
        for each in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(each) and each.__module__ == module.name:
                yield each


def fields_of(cls: type[Any]) -> tuple[str, ...]:
    if dataclasses.is_dataclass(cls):
        return tuple(each.name for each in dataclasses.fields(cls))
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    return tuple(getattr(cls, "_fields", ())) if issubclass(cls, tuple) else ()


def with_marks(cls: type[Any], names: tuple[str, ...], marked: set[str]) -> Any:
    """One of it, however it is made, with the mark where a secret would be: as a `Secret` where it is one."""
    hints = {name: str(hint) for name, hint in inspect.get_annotations(cls).items()}
    values = {
        name: (Secret(MARK) if "Secret[" in hints.get(name, "") else MARK) if name in marked else None for name in names
    }
    if issubclass(cls, tuple):
        return tuple.__new__(cls, [values[name] for name in names])
    if issubclass(cls, msgspec.Struct):
        return cls(**values)
    made: Any = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def found() -> list[tuple[type[Any], str]]:
    return [
        (cls, name)
        for cls in classes()
        for name in fields_of(cls)
        if SECRET_NAMES.search(name) and not name.endswith("_file") and (cls.__name__, name) not in NOT_SECRET
    ]


def test_no_class_shows_a_secret() -> None:
    seen = found()
    assert len(seen) > 20
    shown = [
        f"{cls.__module__}.{cls.__name__}.{name}"
        for cls, name in seen
        if MARK in repr(with_marks(cls, fields_of(cls), {name}))
    ]
    assert shown == []


@pytest.mark.parametrize("name", ["api_key", "password", "token", "key_password"])
def test_a_client_keeps_its_secrets_as_such(name: str) -> None:
    key = f"gqk_k{'0' * 16}_{'ab' * 32}"
    said = {"api_key": {"api_key": key}, "password": {"user": "a", "password": MARK}}
    security = Security(**said.get(name, {name: MARK}))  # type: ignore[arg-type]
    assert isinstance(getattr(security, name), Secret)
    for text in (repr(security), str(dataclasses.asdict(security)), f"{security}"):
        assert MARK not in text
        assert "abab" not in text
    assert dataclasses.replace(security, tls=True) == dataclasses.replace(security, tls=True)

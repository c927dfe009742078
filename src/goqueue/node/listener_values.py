"""Listeners as people write them: `kafka://0.0.0.0:9093?name=public&protocol=SSL`, or a table of the settings file with
the same words as keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from goqueue.model.certificate_names import PrincipalRule
from goqueue.model.listener import Api, ClientAuth, Protocol
from goqueue.node.values import Address, AddressKind, Word, listed

REQUIRED = "required"
_ADDRESS, _NAME = AddressKind(), Word()
_FILES = ("cert_file", "key_file", "key_password_file", "ca_file")
_KEYS = frozenset({"name", "protocol", "advertised", "client_auth", "authentication", *_FILES})


class ListenerSetting(NamedTuple):
    api: Api
    address: Address
    name: str
    protocol: Protocol = Protocol.PLAINTEXT
    advertised: Address | None = None
    client_auth: ClientAuth | None = None
    """None: as the setting tls_client_auth says. Likewise of files."""
    cert_file: Path | None = None
    key_file: Path | None = None
    key_password_file: Path | None = None
    ca_file: Path | None = None
    is_closed: bool = False
    """Whoever comes has to show who they are. So it is in any case with SASL and where certificates are required."""

    def __str__(self) -> str:
        said = {"name": self.name, "protocol": self.protocol.value}
        for key in ("advertised", "client_auth", *_FILES):
            if (value := getattr(self, key)) is not None:
                said[key] = str(value)
        if self.is_closed:
            said["authentication"] = REQUIRED
        return f"{self.api}://{self.address}?{urlencode(said, safe=':/[]')}"


def listener_setting(api: str, address: str, said: Mapping[str, str]) -> ListenerSetting:
    """ValueError: some of it cannot be."""
    if set(said) - _KEYS:
        raise ValueError(f"unknown: {', '.join(sorted(set(said) - _KEYS))}")
    protocol = Protocol(said.get("protocol", Protocol.PLAINTEXT).upper())
    kind = Api(api)
    if protocol.has_sasl and kind is not Api.KAFKA:
        raise ValueError(f"{kind} has no {protocol}")
    if said.get("authentication", REQUIRED) != REQUIRED:
        raise ValueError("authentication is required, or not named")
    files = {key: Path(said[key]) for key in _FILES if said.get(key)}
    client_auth = ClientAuth(said["client_auth"]) if "client_auth" in said else None
    if (files or client_auth) and not protocol.has_tls:
        raise ValueError(f"{protocol} has no certificates")
    return ListenerSetting(
        kind,
        _ADDRESS.parse(address),
        _NAME.parse(said.get("name", protocol.value)),
        protocol,
        _ADDRESS.parse(said["advertised"]) if "advertised" in said else None,
        client_auth,
        **files,
        is_closed="authentication" in said,
    )


def _from_url(text: str) -> ListenerSetting:
    parts = urlsplit(text)
    if parts.path or parts.fragment or parts.username is not None:
        raise ValueError(text)
    pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    if len(dict(pairs)) != len(pairs):
        raise ValueError(text)
    return listener_setting(parts.scheme, parts.netloc, dict(pairs))


def _from_table(table: Mapping[str, object]) -> ListenerSetting:
    said = {key: str(value) for key, value in table.items() if key not in ("api", "address")}
    return listener_setting(str(table.get("api")), str(table.get("address")), said)


@dataclass(frozen=True)
class Listeners:
    metavar: str = "URL,..."
    expected: str = (
        "listeners such as kafka://0.0.0.0:9093?name=public&protocol=SSL, parted by commas; or tables with api,"
        " address, name, protocol, advertised, client_auth and files"
    )

    def parse(self, raw: object) -> tuple[ListenerSetting, ...]:
        given = [each for each in raw.split(",") if each.strip()] if isinstance(raw, str) else raw
        if not isinstance(given, list):
            raise ValueError(raw)
        found = [_from_table(each) if isinstance(each, dict) else _from_url(str(each).strip()) for each in given]
        if len({(each.api, each.name) for each in found}) != len(found):
            raise ValueError("two listeners of one API have the same name")
        return tuple(found)

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(map(str, value))


@dataclass(frozen=True)
class PrincipalRules:
    metavar: str = "RULE;..."
    expected: str = r"rules such as uri=spiffe://example.org/(.+)->\1 or CN=(.+)->\1, parted by semicolons"

    def parse(self, raw: object) -> tuple[PrincipalRule, ...]:
        given = raw.split(";") if isinstance(raw, str) else raw
        if not isinstance(given, list):
            raise ValueError(raw)
        rules = tuple(PrincipalRule.parse(str(each)) for each in given if str(each).strip())
        if not rules:
            raise ValueError(raw)
        return rules

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ";".join(map(str, value))


@dataclass(frozen=True)
class Networks:
    """Addresses, or whole networks of them; names say nothing of who is there."""

    metavar: str = "ADDRESS,..."
    expected: str = "addresses or networks such as 10.0.0.7 or 10.1.0.0/16, parted by commas"

    def parse(self, raw: object) -> tuple[str, ...]:
        return tuple(str(ip_network(each)) for each in listed(raw))

    def show(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(value)

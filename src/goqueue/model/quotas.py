"""Quotas: how much a user or a client may send and read in a second. Entities, keys and which of them holds are Kafka's
(KIP-546), and count for every API.
"""

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import quote

import msgspec

from goqueue.model.codes import Code
from goqueue.model.refusal import Refused

DEFAULT = ""
"""As the name of a user or of a client: all that have no quota of their own."""
NAME_MAX = 255
RATE_MAX = 2.0**53


class QuotaKey(StrEnum):
    """What is limited, each by the second."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_RATE = "request_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    """Of the time of this node's event loop, as Kafka has it of one of its threads."""
    CONNECTION_CREATION_RATE = "connection_creation_rate"
    """Of an address, and of nothing else: new connections (KIP-612)."""
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    """Partitions that are made or deleted, with their topics or alone (KIP-599)."""


PRODUCED, CONSUMED, REQUESTS = QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE, QuotaKey.REQUEST_RATE
TIME = QuotaKey.REQUEST_PERCENTAGE
CONNECTIONS = QuotaKey.CONNECTION_CREATION_RATE
MUTATIONS = QuotaKey.CONTROLLER_MUTATION_RATE
BYTES = (PRODUCED, CONSUMED)


class QuotaExceeded(Refused):
    """Nothing was done. Again after `retry_ms`."""

    def __init__(self, key: str, rate: float, retry_ms: int, words: str = "") -> None:
        used_up = f"the quota {key} of {rate:g} a second is used up; try again in {retry_ms} ms"
        super().__init__(Code.THROTTLING_QUOTA_EXCEEDED, words or used_up)
        self.rate = rate
        self.retry_ms = retry_ms


class Quota(msgspec.Struct, frozen=True):
    """Of one entity: a user, a client id, a client id of a user, or an address."""

    user: str | None
    """None: whoever it is. DEFAULT: each user without a quota of its own."""
    client_id: str | None
    limits: dict[str, float]
    """By `QuotaKey`."""
    ip: str | None = None
    """DEFAULT: each address without a quota of its own."""

    @property
    def quota_id(self) -> str:
        return quota_id(self.user, self.client_id, self.ip)


def quota_id(user: str | None, client_id: str | None, ip: str | None = None) -> str:
    """What it is stored under: any two entities have different ones, whatever their names hold."""
    return f"{_part(user)}/{_part(client_id)}" if ip is None else f"ip/{_part(ip)}"


def _part(name: str | None) -> str:
    return "-" if name is None else "*" if name == DEFAULT else f"={quote(name, safe='')}"


def check_entity(user: str | None, client_id: str | None, ip: str | None = None) -> None:
    if ip is not None:
        if user is not None or client_id is not None:
            raise Refused(Code.INVALID_REQUEST, "a quota of an address is of no user and no client id")
        if ip != DEFAULT and plain_address(ip) != ip:
            raise Refused(Code.INVALID_REQUEST, f"{ip[:100]!r} is no address: names of machines are not looked up")
        return
    if user is None and client_id is None:
        raise Refused(Code.INVALID_REQUEST, "a quota is of a user, of a client id, of both, or of an address")
    for name in (user, client_id):
        if name is not None and len(name.encode()) > NAME_MAX:
            raise Refused(Code.INVALID_REQUEST, f"a name has at most {NAME_MAX} bytes")


def plain_address(text: str) -> str:
    """As it is compared: `::ffff:10.0.0.1` is 10.0.0.1, to a node that listens for both. Empty: it is none."""
    try:
        found = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return ""
    return str(getattr(found, "ipv4_mapped", None) or found)


def check_limits(limits: Mapping[str, float | None], ip: str | None) -> None:
    for key, value in limits.items():
        check_limit(key, value)
        if (key == CONNECTIONS) != (ip is not None):
            words = f"{CONNECTIONS} is of an address, and an address has no other quota"
            raise Refused(Code.INVALID_REQUEST, f"{words}: {key}")


def check_limit(key: str, value: float | None) -> None:
    """None: there shall be no limit."""
    if key not in set(QuotaKey):
        raise Refused(Code.INVALID_REQUEST, f"there is no quota {key[:100]!r}; there are {', '.join(QuotaKey)}")
    if value is None:
        return
    if not math.isfinite(value) or not 0 < value <= RATE_MAX:
        raise Refused(Code.INVALID_REQUEST, f"{key} is more than 0, not {value}")
    if key in BYTES and value != int(value):
        raise Refused(Code.INVALID_REQUEST, f"{key} is a whole number of bytes, not {value}")


def entities(user: str, client_id: str) -> Iterator[tuple[str | None, str | None, tuple[str, str]]]:
    """All that this client of this user is part of: the first that has a limit is the one that holds, as in Kafka. With
    each whose bucket it is: a default is one for each user or client, and not one for all together."""
    yield user, client_id, (user, client_id)
    yield user, DEFAULT, (user, client_id)
    yield user, None, (user, DEFAULT)
    yield DEFAULT, client_id, (user, client_id)
    yield DEFAULT, DEFAULT, (user, client_id)
    yield DEFAULT, None, (user, DEFAULT)
    yield None, client_id, (DEFAULT, client_id)
    yield None, DEFAULT, (DEFAULT, client_id)


def address_limit(quotas: Mapping[str, Quota], ip: str) -> float | None:
    """New connections a second of an address."""
    for name in (ip, DEFAULT):
        found = quotas.get(quota_id(None, None, name))
        if found is not None:
            return found.limits.get(CONNECTIONS)
    return None


def limit_of(
    quotas: Mapping[str, Quota], key: QuotaKey, user: str, client_id: str
) -> tuple[float, tuple[str, str]] | None:
    """The limit that holds for a client of a user, and whose bucket that is. None: there is none."""
    for of_user, of_client, owner in entities(user, client_id):
        found = quotas.get(quota_id(of_user, of_client))
        rate = None if found is None else found.limits.get(key)
        if rate is not None:
            return rate, owner
    return None

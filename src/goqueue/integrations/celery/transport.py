"""The transport that kombu opens for `goqueue://`: who may connect where, and messages handed to their callbacks."""

import math
import select
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kombu.transport import virtual

from goqueue.client import BrokerRefused, ClientError, Closed, ConnectionLost, InvalidArgument, Security, TimedOut
from goqueue.integrations.celery.channel import Channel
from goqueue.integrations.celery.link import Arrival, Link, LinkOptions
from goqueue.model.own_version import own_version

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092
AT_ONCE = 100
"""How many messages are handed over before others of the event loop get their turn."""
HOLD = "7d"
"""For how long a task may run: its lease is extended so long. Celery's own time limits end it sooner."""
KEY_PREFIX = "gqk_"
TLS_FILES = {"ca_certs": "ca_file", "certfile": "cert_file", "keyfile": "key_file"}
"""Of `broker_use_ssl`, as kombu has it for AMQP."""
NO_VHOST = ("", "/")


class Transport(virtual.Transport):
    Channel = Channel
    driver_type = driver_name = "goqueue"
    default_port = DEFAULT_PORT
    can_parse_url = False
    connection_errors = (*virtual.Transport.connection_errors, ConnectionLost, TimedOut, Closed, BrokerRefused)
    channel_errors = (*virtual.Transport.channel_errors, ClientError)
    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.link = Link(link_options(client))

    def driver_version(self) -> str:
        return own_version()

    def establish_connection(self) -> Any:
        if not self.verify_connection(None):
            self.link = Link(self.link.options)
            self.link.open()
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        super().close_connection(connection)
        self.link.close()

    def verify_connection(self, connection: Any) -> bool:
        return self.link.is_open and self.link.is_ours

    # -- in an event loop of kombu

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        loop.add_reader(self.link.fileno(), self._on_readable, loop)

    def unregister_from_event_loop(self, connection: Any, loop: Any) -> None:
        loop.remove_reader(self.link.fileno())

    def _on_readable(self, loop: Any) -> None:
        for _ in range(AT_ONCE):
            arrival = self.link.next()
            if arrival is None:
                return
            self._hand_over(arrival)
        loop.call_soon(self._on_readable, loop)

    # -- without one

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """One message, or socket.timeout."""
        give_up_s = None if timeout is None else time.monotonic() + timeout
        while True:
            arrival = self.link.next()
            if arrival is not None and self._hand_over(arrival):
                return
            if arrival is None:
                left_s = None if give_up_s is None else give_up_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    raise TimeoutError
                self._wait(left_s)

    def _wait(self, seconds: float | None) -> None:
        """Not by `select`, which refuses the file descriptors of who has more than 1024."""
        if not self.link.is_open:
            raise Closed("the connection is closed")
        news = select.poll()
        news.register(self.link.fileno(), select.POLLIN)
        news.poll(None if seconds is None else math.ceil(seconds * 1000))

    def _hand_over(self, arrival: Arrival) -> bool:
        if arrival.error is not None:
            raise arrival.error
        return bool(arrival.owner.deliver(arrival))


def link_options(client: Any) -> LinkOptions:
    """Of a connection of kombu: from its URL, `broker_use_ssl` and `broker_transport_options`."""
    given: Mapping[str, Any] = client.transport_options
    if (client.virtual_host or "") not in NO_VHOST:
        raise InvalidArgument(
            f"goqueue:// has no virtual hosts, and was given {client.virtual_host!r}: "
            "use queue_name_prefix of broker_transport_options, and a group"
        )
    hosts = [f"{client.hostname or DEFAULT_HOST}:{client.port or DEFAULT_PORT}"]
    for each in client.alt:
        parts = urlsplit(each if "://" in each else f"goqueue://{each}")
        hosts.append(f"{parts.hostname or DEFAULT_HOST}:{parts.port or DEFAULT_PORT}")
    return LinkOptions(
        servers=tuple(dict.fromkeys(hosts)),
        group=given.get("group", "celery"),
        lease=given.get("lease"),
        hold=given.get("hold", HOLD),
        security=_security(client, given.get("security")),
        client_id=given.get("client_id", "celery"),
    )


def _security(client: Any, given: Security | None) -> Security | None:
    """`goqueue://:gqk_...@host` shows an API key, `goqueue://user:password@host` a user. What is said twice might be
    said differently, and what is dropped might be TLS.
    """
    shown: dict[str, Any] = {}
    password = client.password or ""
    if password.startswith(KEY_PREFIX):
        shown["api_key"] = password
    elif client.userid or password:
        shown |= {"user": client.userid, "password": password}
    if client.ssl:
        shown |= {"tls": True, **_tls(client.ssl if isinstance(client.ssl, Mapping) else {})}
    if given is not None and shown:
        raise InvalidArgument(
            "security of broker_transport_options stands instead of credentials in the URL and of broker_use_ssl: "
            "say all of it there, or nothing"
        )
    return Security(**shown) if shown else given


def _tls(given: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing is dropped silently: who asks for a certificate and is not given one would not know."""
    asked = dict(given)
    if asked.pop("cert_reqs", ssl.CERT_REQUIRED) not in (ssl.CERT_REQUIRED, "required", "CERT_REQUIRED"):
        raise InvalidArgument(
            "cert_reqs of broker_use_ssl: certificates are always checked; ca_certs says whom to believe"
        )
    unknown = sorted(asked.keys() - TLS_FILES.keys())
    if unknown:
        raise InvalidArgument(
            f"broker_use_ssl has {', '.join(unknown)}; known are {', '.join(TLS_FILES)}. "
            "For more give a goqueue.client.Security as security of broker_transport_options"
        )
    return {TLS_FILES[name]: value for name, value in asked.items()}

"""The members of etcd as a node reaches them: one connection at a time, to another member after a failure. Whatever
thread asks, it may ask here.
"""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from goqueue.cluster.etcd.messages import AUTHENTICATE, Method
from goqueue.cluster.etcd.port import EtcdFault
from goqueue.model.secret import Secret

DEADLINE_S = 2.0
PING_MS = 6000
"""etcd ends connections that ping more often than every 5 s."""
MESSAGE_BYTES_MAX = 256 << 20
"""A listing comes in one message."""
CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.enable_retries", 0),  # a write is never repeated by anybody but whoever decided it
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),  # how long one attempt to connect may take
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", PING_MS),
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
)
HAS_LEADER = ("hasleader", "true")
"""A member that is cut off from the others refuses instead of letting us wait."""
REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
    }
)
"""Answers of a member that is well: another one would say the same."""
NO_PASSWORD = Secret("")
STALE_TOKEN = ("invalid auth token", "revision of auth store is old")


@dataclass(frozen=True)
class EtcdOptions:
    endpoints: tuple[str, ...]
    """`http://host:port`, `https://host:port` or `host:port`."""
    user: str = ""
    password: Secret[str] = NO_PASSWORD
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class Endpoints:
    """Invariant: a channel is made once for each member, and closed by `close`."""

    def __init__(self, options: EtcdOptions) -> None:
        assert options.endpoints
        self._options = options
        self._lock = threading.Lock()
        self._channels: dict[str, grpc.Channel] = {}
        self._at = 0
        self._token: str | None = None
        self._is_closed = False

    def current(self) -> str:
        return self._options.endpoints[self._at % len(self._options.endpoints)]

    def channel(self, endpoint: str) -> grpc.Channel:
        with self._lock:
            if self._is_closed:
                raise EtcdFault("the connection to etcd was closed")
            if endpoint not in self._channels:
                self._channels[endpoint] = self._connect(endpoint)
            return self._channels[endpoint]

    def failed(self, endpoint: str) -> None:
        """Ask another one from now on, if nobody has changed it already."""
        with self._lock:
            if endpoint == self.current():
                self._at += 1

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()

    # -- who asks

    @property
    def needs_token(self) -> bool:
        return bool(self._options.user) and self._token is None

    def metadata(self) -> tuple[tuple[str, str], ...]:
        token = self._token
        return (HAS_LEADER,) if token is None else (HAS_LEADER, ("token", token))

    def credentials(self) -> Any:
        return AUTHENTICATE.request(name=self._options.user, password=self._options.password.reveal())

    def set_token(self, token: str | None) -> None:
        self._token = token

    def ask(self, method: Method, request: Any, *, endpoint: str | None = None, deadline_s: float = DEADLINE_S) -> Any:
        """For threads that may wait. EtcdFault: no answer, or a refusal."""
        at = endpoint if endpoint is not None else self.current()
        try:
            if self.needs_token and method is not AUTHENTICATE:
                self.set_token(self._call(at, AUTHENTICATE, self.credentials(), deadline_s).token)
            return self._call(at, method, request, deadline_s)
        except grpc.RpcError as error:
            raise self.fault(at, error) from None

    def _call(self, endpoint: str, method: Method, request: Any, deadline_s: float) -> Any:
        return unary(self.channel(endpoint), method)(request, timeout=deadline_s, metadata=self.metadata())

    def fault(self, endpoint: str, error: grpc.RpcError) -> EtcdFault:
        """What went wrong, for whoever asked; another member is asked next if this one seems not to be well."""
        code, details = code_of(error), details_of(error)
        if is_stale_token(error):
            self.set_token(None)
        if code not in REFUSALS:
            self.failed(endpoint)
        return EtcdFault(f"etcd at {endpoint}: {code.name.lower().replace('_', ' ')}: {details}")

    # -- connecting

    def _connect(self, endpoint: str) -> grpc.Channel:
        scheme, _, address = endpoint.rpartition("://")
        if scheme == "https" or (not scheme and self._options.ca_file is not None):
            return grpc.secure_channel(address, self._tls(), CHANNEL_OPTIONS)
        return grpc.insecure_channel(address, CHANNEL_OPTIONS)

    def _tls(self) -> grpc.ChannelCredentials:
        ca, cert, key = (
            None if path is None else path.read_bytes()
            for path in (self._options.ca_file, self._options.cert_file, self._options.key_file)
        )
        return grpc.ssl_channel_credentials(ca, key, cert)


def unary(channel: grpc.Channel, method: Method) -> Any:
    serialize, parse = method.request.SerializeToString, method.response.FromString
    return channel.unary_unary(method.path, request_serializer=serialize, response_deserializer=parse)


def code_of(error: Any) -> grpc.StatusCode:
    code = error.code() if hasattr(error, "code") else None
    return code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN


def details_of(error: Any) -> str:
    return (error.details() if hasattr(error, "details") else None) or str(error)


def is_stale_token(error: Any) -> bool:
    """Refused before anything was done, so that the same may be asked again with a new one."""
    return any(words in details_of(error) for words in STALE_TOKEN)

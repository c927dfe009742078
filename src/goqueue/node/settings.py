"""The settings of a node: one table, from which flags, environment variables, file keys and documentation follow.

With `environment.py`, this is the only module that reads the environment or a configuration file. Flags win over the
environment, the environment over the file, the file over the defaults. A start with wrong settings reports every
problem at once.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from goqueue.model.certificate_names import DEFAULT_RULES, PrincipalRule
from goqueue.model.console import Console
from goqueue.model.errors import InvalidSettings
from goqueue.model.listener import ClientAuth
from goqueue.model.topics import TopicOptions
from goqueue.node.environment import BOOTSTRAP_KEY_VARIABLE, CLIENT_VARIABLES, PREFIX
from goqueue.node.identity_settings import IdentitySettings
from goqueue.node.listener_values import Listeners, ListenerSetting, Networks, PrincipalRules
from goqueue.node.setting import setting
from goqueue.node.values import (
    Address,
    AddressKind,
    Authentication,
    Choice,
    Count,
    Endpoints,
    FilePath,
    Fraction,
    HostNames,
    HttpUrl,
    Kind,
    MetricsExporter,
    OrAuto,
    Origins,
    Switch,
    TraceExport,
    Word,
    byte_size,
    duration,
)
from goqueue.storage.options import DAY_MS, KIB, MIB, SECOND_MS, Cleanup, Durability, LogOptions
from goqueue.telemetry.logs import LogFormat, LogLevel

CONFIG_VARIABLE = f"{PREFIX}CONFIG"

_SERVICE_LINK = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$")
"""Kubernetes puts such variables into every container beside a service called goqueue."""

_NO_SETTINGS = CLIENT_VARIABLES | {CONFIG_VARIABLE, BOOTSTRAP_KEY_VARIABLE}

_LOG = LogOptions()


@dataclass(frozen=True, kw_only=True)
class Settings(IdentitySettings):
    data_dir: Path = setting(Path("data"), FilePath(), "Directory that holds every log of this node.")
    ready_file: Path | None = setting(
        None, FilePath(), "File to write once the node is ready: one JSON object. Removed when the node stops."
    )
    processes: int = setting(
        1,
        OrAuto(Count(at_least=1, at_most=64)),
        "Processes that share the work on this machine, each on one core; auto: as many as there are cores.",
    )
    dev: Switch = setting(
        Switch.OFF, Choice(Switch), "For development: open to everybody on this machine, and to nobody else."
    )
    insecure: Switch = setting(
        Switch.OFF,
        Choice(Switch),
        "Open addresses that others can reach without TLS or without authentication. It warns for as long as it runs.",
    )
    listeners: tuple[ListenerSetting, ...] = setting(
        (),
        Listeners(),
        "Where clients connect, and how. An API that is not named here has the one listener of its own setting.",
    )
    kafka: Address = setting(
        Address("127.0.0.1", 9092), AddressKind(), "Where Kafka clients connect; port 0 picks a free one."
    )
    kafka_advertised: Address | None = setting(
        None, AddressKind(), "The address that Kafka clients are told to dial, if it is not the one listened on."
    )
    http: Address = setting(
        Address("127.0.0.1", 8080), AddressKind(), "Where HTTP and SQS clients connect; port 0 picks a free one."
    )
    http_requests_per_second_max: int = setting(
        0, Count(at_least=0), "HTTP requests that are answered in a second; 0 is no limit."
    )
    http_allowed_hosts: tuple[str, ...] = setting(
        (),
        HostNames(),
        "Names of this node that may stand in the header Host, beside localhost and its own address. Once some are "
        "named, others are refused on every address, not only on loopback; * allows any.",
    )
    http_allowed_origins: tuple[str, ...] = setting(
        (), Origins(), "Web pages that may use this node from a browser (CORS); those of all other origins are refused."
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        Networks(),
        "Proxies in front of HTTP and SQS that are believed what they say of a client: its address (X-Forwarded-For), "
        "and whether it came over TLS (X-Forwarded-Proto). What others say in these headers is not looked at.",
    )
    console: Console = setting(
        Console.ON,
        Choice(Console),
        "Pages for people at /console/ of the HTTP API; read-only: no page of this node changes anything.",
    )
    grpc: Address = setting(
        Address("127.0.0.1", 9000), AddressKind(), "Where gRPC clients connect; port 0 picks a free one."
    )
    grpc_reflection: Switch = setting(
        Switch.OFF, Choice(Switch), "Whether gRPC clients may ask which services there are, as grpcurl does."
    )
    grpc_message_bytes_max: int = setting(
        4 * MIB, byte_size(at_least=KIB, at_most=64 * MIB), "Largest message that a gRPC client may send."
    )
    grpc_streams_max: int = setting(100, Count(at_least=1), "Calls that one gRPC connection may have open at once.")
    tls_cert_file: Path | None = setting(
        None, FilePath(), "Certificate that listeners show, with those between it and its authority (PEM)."
    )
    tls_key_file: Path | None = setting(None, FilePath(), "Key of tls_cert_file (PEM).")
    tls_key_password_file: Path | None = setting(
        None, FilePath(), "File with the password of tls_key_file, in one line, if it has one."
    )
    tls_ca_file: Path | None = setting(
        None, FilePath(), "Authorities that have signed the certificates of clients (PEM)."
    )
    tls_client_auth: ClientAuth = setting(
        ClientAuth.NONE, Choice(ClientAuth), "Whether listeners with TLS ask clients for a certificate."
    )
    tls_principal_rules: tuple[PrincipalRule, ...] = setting(
        DEFAULT_RULES, PrincipalRules(), "Who the owner of a certificate is: the first rule that matches says."
    )
    node_id: int = setting(1, Count(at_least=0), "Number of this node in its cluster.")
    default_partitions: int = setting(3, Count(at_least=1), "Partitions of a topic that does not say how many.")
    partitions_max: int = setting(
        1000,
        Count(at_least=1, at_most=10_000),
        "Most partitions that a topic may have. A node also keeps all of them within its limit on open files.",
    )
    auto_create_topics: Switch = setting(
        Switch.ON,
        Choice(Switch),
        "Whether a topic that a client publishes to, or a Kafka client asks for, is made if there is none.",
    )
    group_initial_rebalance_delay_ms: int = setting(
        0,
        duration(at_least=0),
        "How long a new group of the classic protocol waits for more members. Kafka waits 3s; 0 assigns at once.",
    )
    log_level: LogLevel = setting(LogLevel.INFO, Choice(LogLevel), "Least severe event that is logged.")
    log_format: LogFormat = setting(
        LogFormat.AUTO, Choice(LogFormat), "Shape of the log lines; auto means console on a terminal, else JSON."
    )
    durability: Durability = setting(
        _LOG.durability,
        Choice(Durability),
        "When an append is acknowledged: disk after it is synced, os from the page cache (lost with the machine).",
    )
    cleanup: Cleanup = setting(
        _LOG.cleanup, Choice(Cleanup), "What happens to old records: delete by retention, compact by key, or both."
    )
    segment_bytes: int = setting(
        _LOG.segment_bytes, byte_size(at_least=MIB, at_most=KIB * MIB), "Size at which a log starts a new segment."
    )
    segment_ms: int = setting(
        _LOG.segment_ms, duration(at_least=SECOND_MS), "Age at which a log starts a new segment, full or not."
    )
    retention_ms: int = setting(
        _LOG.retention_ms, duration(may_be_unlimited=True), "Age at which records may be deleted."
    )
    retention_bytes: int = setting(
        _LOG.retention_bytes, byte_size(may_be_unlimited=True), "Size of a log above which its oldest segments go."
    )
    sync_interval_ms: int = setting(
        _LOG.sync_interval_ms, duration(), "With durability os: how long a write may wait for its sync."
    )
    disk_reserve_bytes: int = setting(
        _LOG.disk_reserve_bytes, byte_size(at_least=0), "Appends are refused while the disk has less free space."
    )
    maintenance_interval_ms: int = setting(
        30 * SECOND_MS, duration(at_least=100), "Pause between two rounds of retention and other upkeep."
    )
    trace_sampling: float = setting(
        1.0, Fraction(), "The part of all messages whose journeys are remembered. What goes wrong always is."
    )
    trace_retention_ms: int = setting(
        3 * DAY_MS, duration(may_be_unlimited=True), "Age at which stored journeys may be deleted."
    )
    trace_retention_bytes: int = setting(
        256 * MIB, byte_size(at_least=MIB), "Size of the stored journeys above which the oldest go."
    )
    trace_export: TraceExport = setting(
        TraceExport.NONE, Choice(TraceExport), "Where the spans of journeys are sent beside what is stored."
    )
    trace_file: Path = setting(
        Path("traces.jsonl"), FilePath(), "With trace_export file: where spans are written, one line of JSON each."
    )
    trace_file_bytes: int = setting(
        64 * MIB, byte_size(at_least=KIB), "Size at which that file is turned over into traces.jsonl.1 and so on."
    )
    trace_files: int = setting(5, Count(at_least=1), "Files of spans that are kept, with the one written to.")
    trace_otlp_endpoint: str = setting(
        "http://localhost:4318/v1/traces", HttpUrl(), "With trace_export otlp: the collector, OTLP over HTTP."
    )

    metrics: Switch = setting(Switch.ON, Choice(Switch), "Whether /metrics tells anything.")
    metrics_partition_label: Switch = setting(
        Switch.OFF, Choice(Switch), "Whether offsets, sizes and lags are told of each partition, not of each topic."
    )
    metrics_series_max: int = setting(
        1000, Count(at_least=1), "Series of one metric; topics and groups beyond are summed up as _other."
    )
    metrics_export: MetricsExporter = setting(
        MetricsExporter.NONE, Choice(MetricsExporter), "Where metrics are sent beside what /metrics tells."
    )
    metrics_export_interval_ms: int = setting(
        60 * SECOND_MS, duration(at_least=SECOND_MS), "Pause between two times that they are sent."
    )
    metrics_otlp_endpoint: str = setting(
        "http://localhost:4318/v1/metrics", HttpUrl(), "With metrics_export otlp: the collector, OTLP over HTTP."
    )

    etcd: tuple[str, ...] = setting(
        (), Endpoints(), "Members of the etcd that keeps the metadata of the cluster. None: this node is on its own."
    )
    etcd_user: str | None = setting(None, Word(), "Who this node is to etcd, if that asks; with etcd_password_file.")
    etcd_password_file: Path | None = setting(None, FilePath(), "File with the password of etcd_user, in one line.")
    etcd_ca_file: Path | None = setting(
        None, FilePath(), "Authority that has signed the certificates of etcd (PEM); for members at https."
    )
    etcd_cert_file: Path | None = setting(None, FilePath(), "Certificate that this node shows to etcd (PEM).")
    etcd_key_file: Path | None = setting(None, FilePath(), "Key of etcd_cert_file (PEM).")
    cluster_name: str = setting("goqueue", Word(), "Name of the cluster in etcd: its keys are below /goqueue/NAME/.")
    rack: str | None = setting(None, Word(), "Where this node stands; copies of a partition are put on many racks.")
    peer: Address = setting(
        Address("127.0.0.1", 9192), AddressKind(), "Where other nodes of the cluster connect; used with etcd only."
    )
    peer_advertised: Address | None = setting(
        None, AddressKind(), "The address that other nodes dial, if it is not the one listened on."
    )
    http_advertised: Address | None = setting(
        None, AddressKind(), "Where other nodes reach the HTTP API, if it is not the address listened on."
    )
    grpc_advertised: Address | None = setting(
        None, AddressKind(), "Where other nodes reach the gRPC API, if it is not the address listened on."
    )
    peer_ca_file: Path | None = setting(
        None, FilePath(), "Authority that has signed the certificates of all nodes (PEM): nodes speak mutual TLS."
    )
    peer_cert_file: Path | None = setting(
        None, FilePath(), "Certificate of this node for other nodes (PEM). It is called goqueue-node-ID there (DNS)."
    )
    peer_key_file: Path | None = setting(None, FilePath(), "Key of peer_cert_file (PEM).")
    default_replication_factor: int = setting(
        0, Count(at_least=0, at_most=100), "Copies of a topic that does not say how many; 0: 3, or one for each node."
    )
    session_ms: int = setting(
        3 * SECOND_MS, duration(at_least=2 * SECOND_MS), "A node that is not heard of for so long is taken for dead."
    )
    replica_lag_ms_max: int = setting(
        10 * SECOND_MS, duration(at_least=100), "A copy that is behind for so long does not count as in sync."
    )
    drain_ms: int = setting(
        5 * SECOND_MS, duration(at_least=0), "How long a node that stops hands on its work and forwards requests."
    )

    @property
    def is_closed(self) -> bool:
        """Whoever comes has to show who they are, on every listener."""
        if self.authentication is Authentication.AUTO:
            return self.dev is not Switch.ON and self.insecure is not Switch.ON
        return self.authentication is Authentication.ON

    @property
    def is_clustered(self) -> bool:
        """Others have part of the work: nodes that the same etcd knows, or members of the same machine."""
        return bool(self.etcd) or self.processes > 1

    def topic_defaults(self) -> TopicOptions:
        """What a topic gets that does not say otherwise."""
        return TopicOptions(
            durability=self.durability.value,
            cleanup_policy=self.cleanup.value,
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
        )


class Spec(NamedTuple):
    """One setting under all its names."""

    name: str
    kind: Kind
    help: str
    default: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.name.upper()}"


def _spec(each: Field[object]) -> Spec:
    kind: Kind = each.metadata["kind"]
    return Spec(each.name, kind, each.metadata["help"], kind.show(each.default))


_INHERITED = len(fields(IdentitySettings))
_FIELDS = (*fields(Settings)[_INHERITED:], *fields(IdentitySettings))
"""What a node is, before who may come in."""
SPECS = tuple(map(_spec, _FIELDS))
_BY_NAME = {spec.name: spec for spec in SPECS}


class _Reader:
    """Collects values from the weakest source to the strongest, and every problem on the way."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.problems: list[str] = []

    def read(self, source: Iterable[tuple[Spec, object]], label: Callable[[Spec], str]) -> None:
        for spec, raw in source:
            try:
                self.values[spec.name] = spec.kind.parse(raw)
            except ValueError:
                shown = f'"{raw}"' if isinstance(raw, str) else str(raw)
                self.problems.append(f"{label(spec)} = {shown}: expected {spec.kind.expected}")

    def read_file(self, path: Path) -> None:
        import tomllib

        try:
            table = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            self.problems.append(f"{path}: cannot be read: {error.strerror}")
            return
        except ValueError as error:
            self.problems.append(f"{path}: is not TOML: {error}")
            return
        for key in sorted(table.keys() - _BY_NAME.keys()):
            self.problems.append(f"{path}: {key}: unknown setting{_did_you_mean(key)}")
        known = [(_BY_NAME[key], raw) for key, raw in table.items() if key in _BY_NAME]
        self.read(known, lambda spec: f"{path}: {spec.name}")

    def read_environment(self, environ: Mapping[str, str]) -> None:
        by_variable = {spec.variable: spec for spec in SPECS}
        for name in sorted(environ.keys() - by_variable.keys() - _NO_SETTINGS):
            if name.startswith(PREFIX) and not _SERVICE_LINK.search(name):
                self.problems.append(f"{name}: unknown setting{_did_you_mean(name, PREFIX)}")
        known = [(spec, environ[variable]) for variable, spec in by_variable.items() if variable in environ]
        self.read(known, lambda spec: spec.variable)


def read_settings(
    flags: Mapping[str, str], *, config: str | None = None, environ: Mapping[str, str] = os.environ
) -> Settings:
    """The settings of this process. `flags` holds what was given, by setting name; InvalidSettings lists all faults."""
    reader = _Reader()
    config = config or environ.get(CONFIG_VARIABLE)
    if config:
        reader.read_file(Path(config))
    reader.read_environment(environ)
    reader.read(((_BY_NAME[name], raw) for name, raw in flags.items()), lambda spec: spec.flag)
    if reader.problems:
        raise InvalidSettings("\n".join(reader.problems))
    settings = Settings(**reader.values)  # type: ignore[arg-type]  # each value was made by its field's kind
    if settings.default_partitions > settings.partitions_max:
        raise InvalidSettings(
            f"default_partitions = {settings.default_partitions}: more than partitions_max = {settings.partitions_max}"
        )
    from goqueue.node.listeners import problems

    if found := problems(settings) + settings.oidc_problems():
        raise InvalidSettings("\n".join(found))
    return settings


def _did_you_mean(wrong: str, prefix: str = "") -> str:
    from difflib import get_close_matches

    guesses = get_close_matches(wrong.removeprefix(prefix).lower(), _BY_NAME, n=1)
    if not guesses:
        return ""
    return f", did you mean {_BY_NAME[guesses[0]].variable if prefix else guesses[0]}?"

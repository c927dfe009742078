"""Where a query asks, and what it shows there. The options are those of Spark's own Kafka source, and an API key.

Secrets go to executors with the plan of a task, and nowhere else: not into offsets, and so not into checkpoints, and
not into the text of a plan.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from goqueue.client.errors import InvalidArgument
from goqueue.client.security import Security, revealed
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options

LOGINS = frozenset({"goqueue.api.key", "goqueue.api.key.file", "kafka.sasl.jaas.config"})
"""Options by which a query says who it is."""
_JAAS = re.compile(r'\s*[\w.]+\s+required\b(?P<fields>(\s+\w+\s*=\s*"([^"\\]|\\.)*")*)\s*;?\s*')
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_FIELD = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Where:
    address: str
    security: Security | None = None
    client_id: str = "goqueue-spark"
    patience_s: float = 60.0
    """How long a broker may take to answer, and how long one that was there may be away, as when it restarts."""

    def __str__(self) -> str:
        return self.address


def kafka_at(options: Options) -> Where:
    """SparkError: the options do not say where, or contradict each other."""
    patience_s = options.get("kafka.request.timeout.ms") / 1000
    address: str = options.need("kafka.bootstrap.servers")
    return Where(address, security_of(options), options.get("kafka.client.id"), patience_s)


def security_of(options: Options) -> Security | None:
    protocol: str | None = options.get("kafka.security.protocol")
    user, password = _login(options.get("kafka.sasl.jaas.config"))
    api_key = _api_key(options)
    if (user or api_key) and protocol in ("PLAINTEXT", "SSL"):
        raise SparkError(f"kafka.security.protocol={protocol} shows no credentials: say SASL_{protocol}")
    if protocol in ("SASL_PLAINTEXT", "SASL_SSL") and not (user or api_key):
        raise SparkError(f"kafka.security.protocol={protocol} needs kafka.sasl.jaas.config, or goqueue.api.key")
    ca, pair = options.get("kafka.ssl.truststore.location"), options.get("kafka.ssl.keystore.location")
    cert = options.get("kafka.ssl.certificate.location") or pair
    tenant = options.get("goqueue.tenant")
    if protocol is None and not (user or api_key or ca or cert or tenant):
        return None
    try:
        return Security(
            api_key=api_key,
            user=user,
            password=password,
            mechanism=options.get("kafka.sasl.mechanism") or "SCRAM-SHA-256",
            tls=protocol in ("SSL", "SASL_SSL"),
            ca_file=ca,
            cert_file=cert,
            key_file=options.get("kafka.ssl.key.location") or pair,
            key_password=options.get("kafka.ssl.key.password"),
            tenant=tenant,
        )
    except InvalidArgument as error:
        raise SparkError(str(error)) from None


def options_of(security: Security) -> dict[str, str]:
    """The options that mean the same. SparkError: there are none for a token."""
    if security.token is not None:
        raise SparkError("Spark shows a key or a user, and no token")
    said: dict[str, str | Path | None] = {
        "goqueue.api.key": None if security.api_key is None else revealed(security.api_key),
        "goqueue.tenant": security.tenant,
        "kafka.ssl.truststore.location": security.ca_file,
        "kafka.ssl.certificate.location": security.cert_file,
        "kafka.ssl.key.location": security.key_file,
        "kafka.ssl.key.password": None if security.key_password is None else revealed(security.key_password),
    }
    if security.user is not None:
        user, password = (re.sub(r'(["\\])', r"\\\1", each) for each in security.sasl[1:])
        said["kafka.sasl.jaas.config"] = f'{_MODULE} required username="{user}" password="{password}";'
        said["kafka.sasl.mechanism"] = security.mechanism
    if security.tls or security.has_credentials:
        words = ("SASL" if security.has_credentials else "", "SSL" if security.tls else "PLAINTEXT")
        said["kafka.security.protocol"] = "_".join(filter(None, words))
    return {name: str(value) for name, value in said.items() if value is not None}


def _login(jaas: str | None) -> tuple[str | None, str | None]:
    """What is wrong is said without a word of it: it holds a password."""
    if jaas is None:
        return None, None
    found = _JAAS.fullmatch(jaas)
    fields = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _FIELD.findall(found["fields"])} if found else {}
    if not fields.get("username") or "password" not in fields:
        usual = f'{_MODULE} required username="..." password="...";'
        raise SparkError(f"kafka.sasl.jaas.config is not of the form: {usual}")
    return fields["username"], fields["password"]


def _api_key(options: Options) -> str | None:
    """From a file of the driver, if it is in one."""
    key: str | None = options.get("goqueue.api.key")
    file: str | None = options.get("goqueue.api.key.file")
    if file is None:
        return key
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SparkError(f"goqueue.api.key.file={file} cannot be read: {error}") from None
    return lines[0].strip() if lines else ""

"""Kafka's Java producer, consumer and admin against a closed node, by every way to show who they are."""

import secrets
import subprocess
import time
from pathlib import Path

from goqueue.client.sync import Admin
from goqueue.wire.rest.operations import accounts, quotas
from tests.certificates import Authority
from tests.integration.process import Node, own_host
from tests.integration.test_kafka_tools import jars
from tests.tokens import ALL_KEYS, AUDIENCE, ISSUER, token
from tools.kafka_tools import JVM

__all__ = ["jars"]
PROGRAM = Path(__file__).with_name("SecureRound.java")
PASSWORD = secrets.token_hex()
MODULES = "org.apache.kafka.common.security"
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="{{}}" password="{{}}";'
SCRAM = f'{MODULES}.scram.ScramLoginModule required username="{{}}" password="{{}}";'
BEARER = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
BEARER_HANDLER = f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
RUN_S_MAX = 300


class Closed:
    """A node with one listener for SASL_SSL and one that requires certificates, and files for its clients."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        host = own_host()
        self._sasl, self._mutual = f"{host}:9092", f"{host}:9093"
        self._authority = Authority(directory)
        server = self._authority.sign("server", dns=("localhost",), addresses=(host,))
        self._client = self._authority.sign("client", cn="carla")
        keys = directory / "jwks.json"
        keys.write_bytes(ALL_KEYS)
        files = f"cert_file={server.cert}&key_file={server.key}&ca_file={self._authority.ca}"
        listeners = (
            f"kafka://{self._sasl}?name=public&protocol=SASL_SSL&{files}",
            f"kafka://{self._mutual}?name=mutual&protocol=SSL&client_auth=require&{files}",
        )
        issuer = ("--oidc-issuer", ISSUER, "--oidc-audience", AUDIENCE, "--oidc-jwks", str(keys))
        self.node = Node(
            directory,
            *("--listeners", ",".join(listeners), "--tls-principal-rules", r"CN=(.+)->\1", *issuer),
            is_closed=True,
            host=host,
        )

    def properties(self, name: str, **given: str) -> Path:
        text = {
            "bootstrap.servers": self._sasl,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.ca),
        }
        text |= {key.replace("_", "."): value for key, value in given.items()}
        file = self._directory / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in text.items()))
        return file

    def by_certificate(self, name: str) -> Path:
        pair = self._directory / "both.pem"
        pair.write_bytes(self._client.key.read_bytes() + self._client.cert.read_bytes())
        stored = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(pair)}
        return self.properties(name, bootstrap_servers=self._mutual, security_protocol="SSL", **stored)

    def by_token(self, name: str) -> tuple[Path, str]:
        place = self._directory / "token"
        place.write_text(token(int(time.time() * 1000), sub="alice"))
        url = f"file://{place}"
        told = {"sasl_login_callback_handler_class": BEARER_HANDLER, "sasl_oauthbearer_token_endpoint_url": url}
        return self.properties(name, sasl_mechanism="OAUTHBEARER", sasl_jaas_config=BEARER, **told), url


def test_java_clients_come_in_by_every_mechanism_and_read_all_that_they_sent(jars: Path, tmp_path: Path) -> None:
    closed = Closed(tmp_path)
    closed.node.start()
    try:
        with Admin(closed.node.url, api_key=closed.node.first_key) as admin:
            key = admin.call(accounts.CREATE_KEY, name="java", roles=["producer", "consumer"])
            for name, roles in (("alice", ["producer", "consumer"]), ("carla", ["producer", "consumer"])):
                admin.call(accounts.CREATE_USER, name=name, password=PASSWORD, roles=roles)
            admin.call(accounts.CREATE_USER, name="maker", password=PASSWORD, roles=["operator"])
            admin.call(quotas.SET_QUOTA, user="maker", controller_mutation_rate=1)
            for topic in ("plain", "key", "scram256", "scram512", "oauthbearer", "mutual", "wrong"):
                admin.create_topic(topic, partitions=3)
        bearer, url = closed.by_token("oauthbearer")
        scram = {"sasl_mechanism": "SCRAM-SHA-512"}
        files = (
            closed.properties("maker", sasl_jaas_config=SCRAM.format("maker", PASSWORD), **scram),
            closed.properties("plain", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN.format("alice", PASSWORD)),
            closed.properties("key", sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN.format(key.id, key.key)),
            closed.properties(
                "scram256", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=SCRAM.format("alice", PASSWORD)
            ),
            closed.properties("scram512", sasl_jaas_config=SCRAM.format("alice", PASSWORD), **scram),
            bearer,
            closed.by_certificate("mutual"),
            closed.properties("wrong", sasl_jaas_config=SCRAM.format("alice", "wrong"), **scram),
        )
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"
        call = ["java", *JVM, allowed, "-cp", str(jars / "*"), str(PROGRAM), *map(str, files)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
    finally:
        closed.node.stop()
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    wrong = told.pop("wrong", "")
    assert wrong.startswith("SaslAuthenticationException"), (wrong, done.stderr[-3000:])
    assert told.pop("quota") == "2 [ThrottlingQuotaExceededException], then 21 topics"
    ways = ("plain", "key", "scram256", "scram512", "oauthbearer", "mutual")
    assert told == dict.fromkeys(ways, "read all"), done.stderr[-3000:]

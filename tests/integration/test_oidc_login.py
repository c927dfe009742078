"""A person with a browser logs in at an identity provider: a whole node with TLS, an issuer in a process of its own,
and Chromium, which carries everything from one to the other.
"""

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.certificates import Authority, Pair
from tests.integration.devtools import Page, chromium
from tests.integration.issuer import CLIENT_ID, CLIENT_SECRET, PORT
from tests.integration.process import DEADLINE_S, Node, own_host, wait_until
from tests.integration.test_browser import needs_chromium

CALL = """
const call = async (method, path, body, more) => { const reply = await fetch(path, { method,
  headers: { "content-type": "application/json", ...more }, body: body && JSON.stringify(body) });
  return { status: reply.status, body: await reply.json() }; };
"""
USE = """
const me = (await call("GET", "/session")).body;
const csrf = { "x-goqueue-csrf": me.csrf_token };
return { me: me.principal, roles: me.roles, cookie: document.cookie,
  made: (await call("POST", "/topics", { name: "orders" }, csrf)).status,
  without: (await call("POST", "/topics", { name: "others" })).status,
  topics: (await call("GET", "/topics")).body.topics };
"""


class Party:
    """The node and the issuer, each with a certificate of one authority."""

    def __init__(self, directory: Path, algorithm: str) -> None:
        self._directory = directory
        authority = Authority(directory)
        self.issuer_host, host = own_host(), own_host()
        self.issuer_pair = authority.sign("issuer", addresses=[self.issuer_host])
        self.pair = authority.sign("node", addresses=[host])
        self.ca = authority.ca
        self._algorithm = algorithm
        self.url = f"https://{host}:8080"
        self.node = Node(directory / "node", is_closed=True, host=host)
        (directory / "node").mkdir()

    @contextmanager
    def running(self) -> Iterator["Party"]:
        ready = self._directory / "issuer.ready"
        files = (str(self.issuer_pair.cert), str(self.issuer_pair.key))
        line = (sys.executable, "-m", "tests.integration.issuer", *files, self.issuer_host, self._algorithm, str(ready))
        with subprocess.Popen(line) as issuer:
            try:
                wait_until(lambda: ready.exists() or issuer.poll() is not None, "the start of the issuer")
                self._start_node()
                yield self
            finally:
                self.node.clean_up()
                issuer.kill()

    def _start_node(self) -> None:
        """With what the issuer says of itself, as an operator reads it there."""
        at = f"https://{self.issuer_host}:{PORT}"
        with self.http() as http:
            told: dict[str, Any] = http.get(f"{at}/.well-known/openid-configuration").raise_for_status().json()
        secret = self._directory / "client.secret"
        secret.write_text(CLIENT_SECRET)
        secret.chmod(0o600)
        files = ("--tls-cert-file", str(self.pair.cert), "--tls-key-file", str(self.pair.key))
        self.node.arguments = (
            *("--listeners", f"http://{self.url.removeprefix('https://')}?protocol=SSL", *files),
            *("--oidc-issuer", told["issuer"], "--oidc-audience", "programs", "--oidc-jwks", told["jwks_uri"]),
            *("--oidc-authorization-url", told["authorization_endpoint"], "--oidc-token-url", told["token_endpoint"]),
            *("--oidc-client-id", CLIENT_ID, "--oidc-client-secret-file", str(secret), "--oidc-ca-file", str(self.ca)),
            *("--oidc-roles-claim", "roles", "--audit", "access"),
        )
        self.node.start()

    def http(self, **headers: str) -> httpx.Client:
        import ssl

        return httpx.Client(verify=ssl.create_default_context(cafile=self.ca), timeout=DEADLINE_S, headers=headers)


def fingerprint(pair: Pair) -> str:
    """By which a browser is told to believe this certificate, and no other."""
    key = x509.load_pem_x509_certificate(pair.cert.read_bytes()).public_key()
    return base64.b64encode(
        hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    ).decode()


def log_in(page: Page, user: str, password: str) -> None:
    """As somebody who types: the page that is shown then is another one."""
    given = json.dumps([user, password])
    page.run(f"[document.forms[0].user.value, document.forms[0].password.value] = {given}")
    page.run("setTimeout(() => document.querySelector('button').click(), 0)")


def shown_at(page: Page, url: str) -> None:
    wait_until(lambda: page.run("return location.href + ' ' + document.readyState") == f"{url} complete", url)


@needs_chromium
@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_somebody_logs_in_at_the_issuer_and_uses_a_page_of_the_node(tmp_path: Path, algorithm: str) -> None:
    party = Party(tmp_path, algorithm)
    trusted = ",".join(fingerprint(each) for each in (party.pair, party.issuer_pair))
    believing = f"--ignore-certificate-errors-spki-list={trusted}"
    with party.running(), chromium(tmp_path / "profile", believing) as browser:
        page = browser.open(f"{party.url}/session/oidc?to=/docs")
        assert page.run("return location.origin") == f"https://{party.issuer_host}:{PORT}"
        log_in(page, "zoe", "pencil")
        shown_at(page, f"{party.url}/docs")
        assert page.run(CALL + USE) == {
            "me": "User:zoe",
            "roles": ["admin"],
            "cookie": "",
            "made": 201,
            "without": 403,
            "topics": ["orders"],
        }
        again = browser.open(f"{party.url}/topics")
        assert "orders" in again.run("return document.body.innerText"), "another tab has the session too"
        other = browser.open(f"{party.url}/session/oidc?to=/docs")
        log_in(other, "zoe", "wrong")
        wait_until(lambda: "let nobody in" in other.run("return document.body.innerText"), "the refusal")
        with party.http(**{"x-api-key": party.node.first_key}) as http:
            trail = http.get(f"{party.url}/admin/audit").raise_for_status().json()["entries"]
        assert [each["principal"] for each in trail if each["operation"] == "log_in"] == ["User:zoe"]
        assert (
            page.run(
                CALL + "const { csrf_token } = (await call('GET', '/session')).body;"
                "return (await call('DELETE', '/session', undefined, { 'x-goqueue-csrf': csrf_token })).status"
            )
            == 200
        )
        assert page.run(CALL + "return (await call('GET', '/topics')).status") == 401

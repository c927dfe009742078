"""Where the keys of an issuer come from: a file, or a server that is who it says."""

import json
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from goqueue.broker.accounts.accounts import Accounts
from goqueue.broker.accounts.logins import Logins
from goqueue.model.accounts import AccessImage
from goqueue.model.errors import InvalidSettings
from goqueue.model.secret import Secret
from goqueue.node.oidc import KEYS_BYTES_MAX, CannotFetch, Oidc, exchanged, fetched
from goqueue.node.settings import Settings, read_settings
from goqueue.testing.virtual_clock import VirtualClock
from tests.certificates import Authority
from tests.tokens import ALL_KEYS, AUDIENCE, ISSUER


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, headers, body = {
            "/keys": (200, {}, ALL_KEYS),
            "/moved": (302, {"Location": "/keys"}, b""),
            "/huge": (200, {}, b" " * (KEYS_BYTES_MAX + 1)),
        }.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Tells what it was asked."""
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = json.dumps([form, self.headers["Authorization"], self.headers["Content-Type"]]).encode()
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("Location", "/token")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Not into the output of the tests."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of an issuer, and the authority that knows it."""
    authority = Authority(tmp_path)
    pair = authority.sign("issuer", dns=["localhost"], addresses=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}", authority.ca
    server.shutdown()
    server.server_close()
    thread.join()


def test_keys_are_fetched_from_a_server_that_the_authority_knows(served: tuple[str, Path], tmp_path: Path) -> None:
    url, ca = served
    assert fetched(f"{url}/keys", ca) == ALL_KEYS
    other = Authority(tmp_path, "other")
    with pytest.raises(CannotFetch, match="CERTIFICATE_VERIFY_FAILED"):
        fetched(f"{url}/keys", other.ca)


@pytest.mark.parametrize(
    ("path", "words"), [("/moved", "answers 302"), ("/none", "answers 404"), ("/huge", "at most 1048576 bytes")]
)
def test_redirects_and_large_answers_are_not_taken(served: tuple[str, Path], path: str, words: str) -> None:
    url, ca = served
    with pytest.raises(CannotFetch, match=words):
        fetched(f"{url}{path}", ca)


def test_a_code_is_exchanged_by_a_client_that_proves_itself_and_no_redirect_is_followed(
    served: tuple[str, Path],
) -> None:
    url, ca = served
    form, kind = {"code": "a b"}, "application/x-www-form-urlencoded"
    told = exchanged(f"{url}/token", ca, ("shop", Secret("p:ä")), form)
    assert json.loads(told) == ["code=a+b", f"Basic {b64encode(b'shop:p%3A%C3%A4').decode()}", kind]
    assert json.loads(exchanged(f"{url}/token", ca, ("shop", None), form)) == ["code=a+b&client_id=shop", None, kind]
    with pytest.raises(CannotFetch, match="answers 302"):
        exchanged(f"{url}/moved", ca, ("shop", None), form)


class Nobody:
    """A store without accounts."""

    access = AccessImage()

    def __init__(self) -> None:
        self.on_change: list[Callable[[], None]] = []

    def submit(self, command: Any, on_reply: Callable[[Any], None]) -> None:
        raise AssertionError(f"{command} changes something, for {on_reply}")


PEOPLE = {
    "oidc_client_id": "shop",
    "oidc_authorization_url": "https://login.example.org/auth",
    "oidc_token_url": "https://login.example.org/token",
}


def test_settings_for_people_go_together_and_the_secret_is_nobody_elses(tmp_path: Path) -> None:
    keys, secret, clock = tmp_path / "jwks.json", tmp_path / "secret", VirtualClock()
    keys.write_bytes(ALL_KEYS)
    base = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_jwks": str(keys)}
    for name, value in PEOPLE.items():
        with pytest.raises(InvalidSettings, match="oidc_client_id, oidc_authorization_url and oidc_token_url: all"):
            read_settings({**base, name: value}, environ={})
    with pytest.raises(InvalidSettings, match="with oidc_issuer"):
        read_settings(PEOPLE, environ={})
    with pytest.raises(InvalidSettings, match="begins with https://"):
        read_settings({**base, **PEOPLE, "oidc_token_url": "http://login.example.org/token"}, environ={})
    oidc = Oidc(
        read_settings({**base, **PEOPLE, "oidc_client_secret_file": str(secret)}, environ={}),
        lambda _: Workers(),
        clock,
    )
    checked, store = oidc.open(), Accounts(Nobody(), clock, Random(1))
    assert checked is not None
    logins = Logins(store, clock, Random(1), b"secret", checked)
    for text, mode, words in ((None, 0, "No such file"), ("x", 0o644, "others may read it"), (" ", 0o600, "is empty")):
        if text is not None:
            secret.write_text(text)
            secret.chmod(mode)
        with pytest.raises(InvalidSettings, match=words):
            oidc.open_code_flow(checked, logins, Random(1))
    secret.write_text("x\n")
    oidc.open_code_flow(checked, logins, Random(1))
    assert logins.code_flow is not None


def settings(jwks: str) -> Settings:
    return read_settings({"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_jwks": jwks}, environ={})


class Workers:
    def __init__(self) -> None:
        self.stopped = 0

    def __call__(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        work()
        done(None)

    def stop(self) -> None:
        self.stopped += 1


def test_a_file_that_has_no_keys_stops_the_start(tmp_path: Path) -> None:
    keys, worker = tmp_path / "jwks.json", Workers()
    for text in (None, b"{}", b"x" * (KEYS_BYTES_MAX + 1)):
        if text is not None:
            keys.write_bytes(text)
        with pytest.raises(InvalidSettings, match="oidc_jwks = "):
            Oidc(settings(str(keys)), lambda _: worker, VirtualClock()).open()
    keys.write_bytes(ALL_KEYS)
    assert Oidc(settings(str(keys)), lambda _: worker, VirtualClock()).open() is not None
    assert Oidc(Settings(), lambda _: worker, VirtualClock()).open() is None


def test_keys_are_not_fetched_in_clear_and_settings_go_together() -> None:
    with pytest.raises(InvalidSettings, match="expected a path, or an address that begins with https://"):
        settings("http://login.example.org/keys")
    with pytest.raises(InvalidSettings, match="oidc_issuer, oidc_audience and oidc_jwks: all of them, or none"):
        read_settings({"oidc_issuer": ISSUER}, environ={})

"""An identity provider as a process of its own: OpenID Connect with discovery, a page to log in, codes with PKCE, and
tokens that it signs. `python -m tests.integration.issuer CERT KEY HOST ALGORITHM READY_FILE` serves until it is killed.
"""

import base64
import hashlib
import html
import json
import secrets
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from tests.tokens import KEYS, jwks, public, signed

CLIENT_ID, CLIENT_SECRET = "goqueue-console", "the secret: of+the client"
PEOPLE = {"zoe": "pencil", "eve": "rubber"}
ROLES = {"zoe": ["admin"], "eve": ["viewer"]}
PORT = 8443
LASTS_S = 60
FORM = """<!doctype html><title>Log in</title><form method="post" action="/login">{hidden}
<input name="user"><input name="password" type="password"><button>Log in</button></form>"""


class Code(NamedTuple):
    user: str
    nonce: str
    challenge: str
    redirect_uri: str


class Issuer:
    def __init__(self, host: str, algorithm: str) -> None:
        self.url = f"https://{host}:{PORT}"
        self._codes: dict[str, Code] = {}
        self.key_id = next(key_id for key_id, (each, _) in KEYS.items() if each == algorithm)

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def keys(self) -> bytes:
        return jwks(public(KEYS[self.key_id][1], self.key_id))

    def form(self, asked: dict[str, str]) -> str:
        """The page that a browser is sent to."""
        assert asked["client_id"] == CLIENT_ID, asked
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256"), asked
        hidden = "".join(
            f'<input type="hidden" name="{html.escape(n)}" value="{html.escape(v)}">' for n, v in asked.items()
        )
        return FORM.format(hidden=hidden)

    def log_in(self, given: dict[str, str]) -> str:
        """Where to go with it."""
        back = {"state": given["state"], "iss": self.url}
        if PEOPLE.get(given.get("user", "")) != given.get("password"):
            return f"{given['redirect_uri']}?{urlencode({**back, 'error': 'access_denied'})}"
        code = secrets.token_urlsafe(24)
        self._codes[code] = Code(given["user"], given["nonce"], given["code_challenge"], given["redirect_uri"])
        return f"{given['redirect_uri']}?{urlencode({**back, 'code': code})}"

    def token(self, given: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """None: it is refused."""
        shown = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        if tuple(map(unquote_plus, shown.split(":"))) != (CLIENT_ID, CLIENT_SECRET):
            return None
        code = self._codes.pop(given["code"], None)
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if code is None or code.challenge != challenge or code.redirect_uri != given["redirect_uri"]:
            return None
        now_s = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT_ID, "sub": code.user, "nonce": code.nonce, "roles": ROLES[code.user]}
        token = signed({**claims, "iat": now_s, "exp": now_s + LASTS_S}, self.key_id)
        return {"id_token": token, "access_token": "unused", "token_type": "Bearer", "expires_in": LASTS_S}


def handler_of(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if place.path == "/.well-known/openid-configuration":
                self._answer(200, json.dumps(issuer.discovery()).encode(), "application/json")
            elif place.path == "/keys":
                self._answer(200, issuer.keys(), "application/json")
            elif place.path == "/authorize":
                self._answer(200, issuer.form(_fields(place.query)).encode(), "text/html")
            else:
                self._answer(404, b"", "text/plain")

        def do_POST(self) -> None:
            given = _fields(self.rfile.read(int(self.headers["content-length"])).decode())
            if self.path == "/login":
                self.send_response(303)
                self.send_header("location", issuer.log_in(given))
                self.send_header("content-length", "0")
                self.end_headers()
                return
            told = issuer.token(given, self.headers.get("authorization", ""))
            self._answer(400 if told is None else 200, json.dumps(told or {"error": "invalid_grant"}).encode())

        def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _fields(query: str) -> dict[str, str]:
    return {name: each for name, (each, *_) in parse_qs(query).items()}


def main(cert: str, key: str, host: str, algorithm: str, ready_file: str) -> None:
    server = ThreadingHTTPServer((host, PORT), handler_of(Issuer(host, algorithm)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    Path(ready_file).write_text("ready", "ascii")
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])

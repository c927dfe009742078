"""People who log in at an identity provider: the code flow, and each answer that is refused."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import msgspec

from goqueue.broker.accounts.code_flow import BEGUN_MS_MAX, Client, CodeFlow
from goqueue.broker.gate import Gate
from goqueue.model.errors import GoQueueError
from goqueue.runtime.aside import at_once
from tests.tokens import ISSUER, token, tokens
from tests.unit.doors.http.session_door import Door, session_door

CLIENT_ID = "goqueue-console"
ASK = "https://login.example.org/authorize?tenant=shop"
BACK = "https://mq.example.org/session/callback"


class Issuer:
    """Gives a token for a code, once."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}
        """What the browser was sent with."""
        self.forms: list[Mapping[str, str]] = []
        self.claims: dict[str, Any] = {}
        self.answer: bytes | GoQueueError | None = None
        self.now_ms: Callable[[], int] = lambda: 0

    def exchange(self, form: Mapping[str, str]) -> bytes:
        self.forms.append(dict(form))
        if isinstance(self.answer, GoQueueError):
            raise self.answer
        if self.answer is not None:
            return self.answer
        claims = {"aud": CLIENT_ID, "nonce": self.asked["nonce"], "sub": "zoe", "roles": ["admin"], **self.claims}
        return json.dumps({"id_token": token(self.now_ms(), **claims), "token_type": "Bearer"}).encode()


def with_issuer(test: Callable[[Door, Issuer], Awaitable[None]]) -> Callable[[], None]:
    async def inside() -> None:
        issuer = Issuer()

        def prepare(gate: Gate) -> None:
            issuer.now_ms = gate.clock.now_ms
            checked, logins = tokens(gate.clock, roles_claim="roles"), gate.logins
            assert logins is not None
            client = Client(CLIENT_ID, ISSUER, ASK, issuer.exchange)
            logins.code_flow = CodeFlow(client, checked, logins, at_once, gate.clock, gate.dice)

        async with session_door(prepare) as door:
            await test(door, issuer)

    def run() -> None:
        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


async def begin(door: Door, issuer: Issuer, path: str = "/session/oidc?to=/docs") -> None:
    reply = await door.get(path)
    assert reply.status_code == 303, reply.text
    issuer.asked = {name: each for name, (each,) in parse_qs(urlsplit(reply.headers["location"]).query).items()}


def answer(issuer: Issuer, **other: str) -> str:
    said = {"code": "c0de", "state": issuer.asked["state"], "session_state": "x"} | other
    return "/session/callback?" + "&".join(f"{name}={each}" for name, each in said.items())


@with_issuer
async def test_somebody_whom_the_issuer_knows_comes_back_with_a_code_and_gets_a_session(
    door: Door, issuer: Issuer
) -> None:
    reply = await door.get("/session/oidc?to=/docs")
    assert reply.headers["location"].startswith(f"{ASK}&")
    (cookie,) = reply.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-gq-login=")
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/", "Max-Age=600"} <= set(cookie.split("; "))
    issuer.asked = dict(parse_qsl(urlsplit(reply.headers["location"]).query))
    expected = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": BACK, "scope": "openid"}
    assert expected.items() <= issuer.asked.items()
    assert (issuer.asked["code_challenge_method"], len(issuer.asked["state"])) == ("S256", 43)
    reply = await door.get(answer(issuer, iss=ISSUER))
    assert reply.status_code == 200, reply.text
    assert 'content="0; url=/docs"' in reply.text
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
    assert (reply.headers["cache-control"], reply.headers["referrer-policy"]) == ("no-store", "no-referrer")
    (form,) = issuer.forms
    assert (form["grant_type"], form["code"], form["redirect_uri"]) == ("authorization_code", "c0de", BACK)
    digest = hashlib.sha256(form["code_verifier"].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == issuer.asked["code_challenge"]
    assert list(door.cookies) == ["__Host-gq"]
    told = (await door.get("/session")).json()
    assert (told["principal"], told["roles"]) == ("User:zoe", ["admin"])
    shown = {"origin": "https://mq.example.org", "x-goqueue-csrf": told["csrf_token"]}
    assert (await door.ask("POST", "/topics", shown, {"name": "orders"})).status_code == 201


@with_issuer
async def test_the_answer_to_another_log_in_is_refused(door: Door, issuer: Issuer) -> None:
    await begin(door, issuer)
    kept = dict(door.cookies)
    for path in (answer(issuer, state="other"), answer(issuer, iss="https://evil.example"), "/session/callback?code=x"):
        reply = await door.get(path)
        assert (reply.status_code, reply.json()["code"]) == (401, "NOT_AUTHENTICATED"), path
    door.cookies = {}
    assert (await door.get(answer(issuer))).status_code == 401
    door.cookies = {"__Host-gq-login": kept["__Host-gq-login"][:-8] + "AAAAAAAA"}
    assert (await door.get(answer(issuer))).status_code == 401
    assert door.gate.logins is not None
    of_another_version = door.gate.logins.sessions.sealed("log-in", msgspec.msgpack.encode(["state"]))
    door.cookies = {"__Host-gq-login": of_another_version.reveal()}
    assert (await door.get(answer(issuer))).status_code == 401
    door.cookies = kept
    await door.advance(BEGUN_MS_MAX + 1)
    assert (await door.get(answer(issuer))).status_code == 401
    assert issuer.forms == []


@with_issuer
async def test_a_person_whom_the_issuer_refuses_is_told_so(door: Door, issuer: Issuer) -> None:
    await begin(door, issuer)
    reply = await door.get(f"/session/callback?error=access_denied&state={issuer.asked['state']}")
    assert (reply.status_code, "access_denied" in reply.text) == (401, True)
    assert issuer.forms == []


@with_issuer
async def test_a_token_that_is_not_the_answer_begins_no_session(door: Door, issuer: Issuer) -> None:
    wrong: list[dict[str, Any]] = [
        {"nonce": "other"},
        {"nonce": None},
        {"aud": "goqueue"},
        {"aud": [CLIENT_ID, "x"], "azp": "x"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"sub": "a~b"},
    ]
    for issuer.claims in wrong:
        await begin(door, issuer)
        reply = await door.get(answer(issuer))
        assert (reply.status_code, "__Host-gq" in door.cookies) == (401, False), issuer.claims
        await door.advance(1000)


@with_issuer
async def test_an_issuer_that_gives_no_token_begins_no_session(door: Door, issuer: Issuer) -> None:
    wrong = b"", b"{}", b'{"id_token": 7}', b'{"id_token": "x.y.z"}', b'{"id_token": "\xff"}'
    for issuer.answer in (*wrong, GoQueueError("not now")):
        await begin(door, issuer)
        assert (await door.get(answer(issuer))).status_code == 401
        await door.advance(1000)
    assert len(issuer.forms) == 6


@with_issuer
async def test_who_tries_codes_is_slowed_down(door: Door, issuer: Issuer) -> None:
    issuer.answer = b"{}"
    await begin(door, issuer)
    for _ in range(12):
        assert (await door.get(answer(issuer))).status_code == 401
    assert len(issuer.forms) == 10


@with_issuer
async def test_nobody_is_led_to_another_site_afterwards(door: Door, issuer: Issuer) -> None:
    for to in ("//evil.example", "https://evil.example", "/%5Cevil", "/a b", "/x%22%3E", "x"):
        reply = await door.get(f"/session/oidc?to={to}")
        if reply.status_code == 303:  # within this node, and not taken for a part of a page
            issuer.asked = dict(parse_qsl(urlsplit(reply.headers["location"]).query))
            page = (await door.get(answer(issuer))).text
            assert "evil.example" not in page
            assert 'x">' not in page
        else:
            assert reply.status_code == 400, to

"""Tokens of an identity provider: those that are taken, and every way to make one up that is known."""

import base64
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from goqueue.broker.accounts.token_keys import ASK_AGAIN_S, HOLD_S, REFRESH_MS, BadKeys, read_keys
from goqueue.broker.accounts.tokens import SKEW_MS, TOKEN_BYTES_MAX, UNSIGNED, Tokens
from goqueue.model.credentials import NotAuthenticated, Principal
from goqueue.testing.virtual_clock import VirtualClock
from tests.tokens import ALL_KEYS, AUDIENCE, EC_KEY, ISSUER, KEYS, RSA_KEY, jwks, public, token, tokens


def said(checked: Tokens, text: str) -> Principal | str:
    found: list[Any] = []
    checked.check(text, found.append)
    (one,) = found
    return str(one) if isinstance(one, NotAuthenticated) else one


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.mark.parametrize("by", list(KEYS))
def test_a_token_of_the_issuer_names_a_user_until_it_ends(clock: VirtualClock, by: str) -> None:
    text = token(clock.now_ms(), by=by)
    principal = Principal("User:alice", clock.now_ms() // 1000 * 1000 + 300_000 + SKEW_MS)
    checked = tokens(clock)
    assert [said(checked, text), said(checked, text)] == [principal, principal]  # the second is remembered
    clock.advance(300_000 + 30_001)
    assert said(checked, text) == "the token has expired"


def test_rsa_may_be_signed_by_either_scheme(clock: VirtualClock) -> None:
    assert isinstance(said(tokens(clock), token(clock.now_ms(), alg="PS256")), Principal)


def signed_by_hmac(text: str, secret: bytes, header: dict[str, Any]) -> str:
    """By hand: the library does not sign with a public key."""
    head = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    signing = f"{head}.{text.split('.')[1]}"
    mac = hmac.digest(secret, signing.encode(), "sha256")
    return f"{signing}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def test_tokens_without_a_signature_of_the_issuer_are_refused(clock: VirtualClock) -> None:
    checked, good = tokens(clock), token(clock.now_ms())
    head, body, signature = good.split(".")
    pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    wrong_words = "tokens are signed by one of RS256, PS256, ES256, EdDSA"
    assert said(checked, f"{none}.{body}.") == wrong_words
    assert said(checked, f"{none}.{body}.{signature}") == wrong_words
    for alg in ("HS256", "RS384", "ES512", "nOnE", "", None, 7, ["RS256"]):
        assert said(checked, signed_by_hmac(good, pem, {"alg": alg, "kid": "r"})) == wrong_words
    # Key confusion: another algorithm than the key is for.
    assert said(checked, signed_by_hmac(good, pem, {"alg": "RS256", "kid": "r"})) == UNSIGNED
    assert said(checked, token(clock.now_ms(), by="e", header={"kid": "r"})) == UNSIGNED
    other = rsa.generate_private_key(65537, 2048)
    assert said(checked, jwt.encode(claims(clock), other, "RS256", headers={"kid": "r"})) == UNSIGNED
    assert said(checked, f"{head}.{body}.{signature[:-4]}AAAA") == UNSIGNED
    changed = base64.urlsafe_b64encode(json.dumps(claims(clock, sub="root")).encode()).rstrip(b"=").decode()
    assert said(checked, f"{head}.{changed}.{signature}") == UNSIGNED


def claims(clock: VirtualClock, **more: Any) -> dict[str, Any]:
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": clock.now_ms() // 1000 + 300} | more


@pytest.mark.parametrize(
    "header",
    [
        {"kid": "../../../etc/passwd"},
        {"kid": "' OR 1=1 --"},
        {"kid": "\0"},
        {"kid": "x" * 10_000},
        {"kid": "unknown", "jku": "https://attacker.example/keys", "x5u": "https://attacker.example/"},
        {"kid": "unknown", "jwk": public(EC_KEY, "unknown")},
    ],
)
def test_what_a_token_says_of_its_key_is_only_looked_up(clock: VirtualClock, header: dict[str, Any]) -> None:
    assert said(tokens(clock), token(clock.now_ms(), by="e", header=header)) == UNSIGNED


def test_a_key_in_a_token_is_not_believed(clock: VirtualClock) -> None:
    own = ec.generate_private_key(ec.SECP256R1())
    text = jwt.encode(claims(clock), own, "ES256", headers={"kid": "e", "jwk": public(own, "e")})
    assert said(tokens(clock), text) == UNSIGNED


def test_a_token_that_is_none_or_too_large_is_refused_before_it_is_read(clock: VirtualClock) -> None:
    checked = tokens(clock)
    huge = token(clock.now_ms(), padding="x" * TOKEN_BYTES_MAX)
    assert said(checked, huge) == "a token has at most 16384 bytes"
    deep = base64.urlsafe_b64encode(b"[" * 5000).rstrip(b"=").decode()
    for text in ("", ".", "..", "a.b.c", "gqk_x", "\x00.\x00.\x00", "ä.ö.ü", f"{deep}.e30.e30", "e30.e30.e30.e30.e30"):
        found = said(checked, text)
        assert isinstance(found, str)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"exp": None}, "the token lacks the claim 'exp'"),
        ({"iss": None}, "the token lacks the claim 'iss'"),
        ({"aud": None}, "the token lacks the claim 'aud'"),
        ({"iss": "https://attacker.example"}, "the token is of another issuer"),
        ({"iss": f"{ISSUER}/"}, "the token is of another issuer"),
        ({"aud": "billing"}, "the token is for another audience"),
        ({"aud": ["billing", "goqueue2"]}, "the token is for another audience"),
        ({"exp": "soon"}, "the token's claim 'exp' is no time"),
        ({"exp": True}, "the token's claim 'exp' is no time"),
        ({"exp": 0}, "the token has expired"),
        ({"exp": -1e300}, "the token has expired"),
        ({"nbf": 10**11}, "the token is not valid yet"),
        ({"sub": None}, "the token's claim 'sub' is no name: a name has 1 to 1000 bytes, and no control character"),
        ({"sub": "a\nb"}, "the token's claim 'sub' is no name: a name has 1 to 1000 bytes, and no control character"),
        ({"sub": "ANONYMOUS"}, "the token's claim 'sub' is no name: ANONYMOUS stands for others than one user"),
        ({"sub": "acme~root"}, "the token's claim 'sub' is no name: it has a ~"),
        ({"sub": "*"}, "the token's claim 'sub' is no name: * stands for others than one user"),
    ],
)
def test_a_token_that_does_not_say_what_it_must_is_refused(
    clock: VirtualClock, changed: dict[str, Any], words: str
) -> None:
    assert said(tokens(clock), token(clock.now_ms(), **changed)) == words


def test_clocks_may_be_off_by_half_a_minute(clock: VirtualClock) -> None:
    now_s, checked = clock.now_ms() // 1000, tokens(clock)
    assert isinstance(said(checked, token(clock.now_ms(), exp=now_s - 29)), Principal)
    assert said(checked, token(clock.now_ms(), exp=now_s - 30)) == "the token has expired"
    assert isinstance(said(checked, token(clock.now_ms(), nbf=now_s + 30)), Principal)
    assert said(checked, token(clock.now_ms(), nbf=now_s + 31)) == "the token is not valid yet"


def test_names_and_roles_are_where_the_settings_say(clock: VirtualClock) -> None:
    checked = tokens(clock, principal_claim="email", roles_claim="realm_access.roles")
    text = token(clock.now_ms(), email="a@b.c", realm_access={"roles": ["readonly", "producer", "offline", 7]})
    found = said(checked, text)
    assert isinstance(found, Principal)
    assert (found.name, found.roles) == ("User:a@b.c", ("producer", "viewer"))
    flat = tokens(clock, roles_claim="scope")
    for roles, expected in (("admin openid", ("admin",)), (None, ()), (7, ()), ([], ())):
        found = said(flat, token(clock.now_ms(), scope=roles))
        assert isinstance(found, Principal)
        assert found.roles == expected


# -- keys


class Issuer:
    """Whose keys are fetched when the test says so."""

    def __init__(self, keys: bytes = ALL_KEYS) -> None:
        self.keys: bytes | OSError = keys
        self.fetches = 0
        self.pending: list[Any] = []

    def fetch(self) -> bytes:
        self.fetches += 1
        if isinstance(self.keys, OSError):
            raise self.keys
        return self.keys

    def aside(self, work: Any, done: Any) -> None:
        self.pending.append((work, done))

    def run(self) -> None:
        pending, self.pending = self.pending, []
        for work, done in pending:
            try:
                work()
            except OSError as error:
                done(error)
            else:
                done(None)


def test_who_comes_before_the_keys_are_there_waits_for_them(clock: VirtualClock) -> None:
    issuer = Issuer()
    found: list[Any] = []
    checked = tokens(clock, issuer.fetch, issuer.aside)
    checked.check(token(clock.now_ms()), found.append)
    assert found == []
    issuer.run()
    assert [isinstance(each, Principal) for each in found] == [True]
    assert issuer.fetches == 1


def test_unknown_keys_are_fetched_for_once_a_minute_at_most(clock: VirtualClock) -> None:
    issuer = Issuer(jwks(public(EC_KEY, "e")))
    text = token(clock.now_ms(), by="r")
    checked = tokens(clock, issuer.fetch)
    before = issuer.fetches
    for number in range(50):
        assert said(checked, token(clock.now_ms(), by="r", header={"kid": f"made up {number}"})) == UNSIGNED
    assert issuer.fetches == before + 1
    issuer.keys = ALL_KEYS
    assert said(checked, text) == UNSIGNED
    clock.advance(ASK_AGAIN_S * 1000)
    assert isinstance(said(checked, text), Principal)
    assert issuer.fetches == before + 2


def test_keys_are_read_again_every_five_minutes_and_withdrawn_ones_count_no_more(clock: VirtualClock) -> None:
    issuer = Issuer()
    checked = tokens(clock, issuer.fetch)
    text = token(clock.now_ms(), exp=10**11)
    assert isinstance(said(checked, text), Principal)
    issuer.keys = jwks(public(EC_KEY, "e"))
    clock.advance(REFRESH_MS)
    assert said(checked, text) == UNSIGNED


def test_the_last_good_keys_hold_for_a_day(clock: VirtualClock) -> None:
    issuer = Issuer()
    checked = tokens(clock, issuer.fetch)
    issuer.keys = OSError("no route")
    clock.advance(HOLD_S * 1000 - REFRESH_MS)
    assert isinstance(said(checked, token(clock.now_ms())), Principal)
    lasting = token(clock.now_ms(), exp=10**11)
    assert isinstance(said(checked, lasting), Principal)
    clock.advance(2 * REFRESH_MS)
    assert [said(checked, each) for each in (lasting, token(clock.now_ms()))] == [UNSIGNED, UNSIGNED]


def test_secrets_short_keys_and_keys_for_other_work_are_not_used() -> None:
    short = rsa.generate_private_key(65537, 1024)
    curve = ec.generate_private_key(ec.SECP384R1())
    for bad in (
        {"kty": "oct", "k": "c2VjcmV0", "kid": "x"},
        public(short, "x"),
        public(curve, "x"),
        public(RSA_KEY, "x", use="enc"),
        public(RSA_KEY, "x", alg="RS512"),
        public(RSA_KEY, "x", d="AQAB"),
        {"kty": "RSA", "n": 7, "e": []},
        {},
    ):
        with pytest.raises(BadKeys):
            read_keys(jwks(bad))
        assert len(read_keys(jwks(bad, public(RSA_KEY, "r")))) == 1
    for text in (b"", b"[]", b"{}", b'{"keys": 7}', b"\xff", b"<html>"):
        with pytest.raises(BadKeys):
            read_keys(text)


def test_a_key_is_used_for_its_own_algorithm_only(clock: VirtualClock) -> None:
    checked = tokens(clock, lambda: jwks(public(RSA_KEY, "r", alg="PS256")))
    assert said(checked, token(clock.now_ms())) == UNSIGNED
    assert isinstance(said(checked, token(clock.now_ms(), alg="PS256")), Principal)


def test_a_token_that_names_no_key_is_taken_where_there_is_one_it_can_mean(clock: VirtualClock) -> None:
    text = token(clock.now_ms(), header={})
    assert isinstance(said(tokens(clock), text), Principal)
    other = public(rsa.generate_private_key(65537, 2048), "other")
    assert said(tokens(clock, lambda: jwks(other, public(RSA_KEY, "r"))), text) == UNSIGNED


def test_a_claim_may_say_whose_user_it_is(clock: VirtualClock) -> None:
    checked = tokens(clock, tenant_claim="org")
    found = [said(checked, token(clock.now_ms(), org=each)) for each in ("acme", "default")]
    assert [each.name for each in found if isinstance(each, Principal)] == ["User:acme~alice", "User:alice"]
    for wrong in (None, "", "Acme", "a~b", 7, ["acme"], "x" * 40):
        told = said(checked, token(clock.now_ms(), org=wrong))
        assert isinstance(told, str)
        assert told.startswith("the token's claim 'org' names no tenant")

"""SCRAM as RFC 5802 and RFC 7677 have it, and what a server must not fall for."""

import base64

import pytest

from goqueue.model.refusal import Refused
from goqueue.model.scram import Mechanism, Verifier
from goqueue.wire.sasl.plain import Plain, read_plain
from goqueue.wire.sasl.scram import ScramClient, ScramServer, escaped, unescaped

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
SERVER_FIRST = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
WITHOUT_PROOF = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE}"
FINAL = f"{WITHOUT_PROOF},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def server(password: str = "pencil", mechanism: Mechanism = Mechanism.SHA_256) -> ScramServer:
    verifier = Verifier.of_password(mechanism, password, SALT, 4096)
    return ScramServer(mechanism, SERVER_NONCE, lambda name: verifier)


def test_the_exchange_of_rfc_7677_on_both_sides() -> None:
    one, other = server(), ScramClient(Mechanism.SHA_256, "user", "pencil", CLIENT_NONCE)
    assert other.first() == FIRST
    assert one.step(FIRST) == SERVER_FIRST
    assert other.step(SERVER_FIRST) == FINAL
    assert not one.is_done
    assert one.step(FINAL) == SERVER_FINAL
    other.step(SERVER_FINAL)
    assert (one.is_done, one.name, other.is_done) == (True, "user", True)


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_both_sides_agree_with_each_hash_and_any_name(mechanism: Mechanism) -> None:
    one, other = server("pä ss,=", mechanism), ScramClient(mechanism, "bob,=x", "pä ss,=", "abc")
    other.step(one.step(other.step(one.step(other.first()))))
    assert (one.is_done, one.name, other.is_done) == (True, "bob,=x", True)


@pytest.mark.parametrize(
    "final",
    [
        FINAL.replace(b"dHzb", b"eHzb"),
        FINAL.replace(b"c=biws", b"c=eSws"),
        FINAL.replace(CLIENT_NONCE.encode(), b"another"),
        WITHOUT_PROOF.encode(),
        f"{WITHOUT_PROOF},p=".encode(),
        f"{WITHOUT_PROOF},p=!".encode(),
        b"",
        b"\xff\xfe",
    ],
)
def test_a_last_message_that_is_not_the_right_one_is_refused(final: bytes) -> None:
    one = server()
    one.step(FIRST)
    with pytest.raises(Refused):
        one.step(final)
    assert not one.is_done


@pytest.mark.parametrize(
    "first",
    [
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,r=abc",
        b"n,,n=user",
        b"n,,n=us=2user,r=abc",
        b"n,,m=x,n=user,r=abc",
        b"n,,n=user,r=abc,tokenauth=true",
        b"",
        b"n,,n=user,r=" + b"a" * 5000,
    ],
)
def test_a_first_message_that_asks_for_more_is_refused(first: bytes) -> None:
    with pytest.raises(Refused):
        server().step(first)


def test_a_done_exchange_takes_nothing_more() -> None:
    one = server()
    one.step(FIRST)
    one.step(FINAL)
    with pytest.raises(Refused):
        one.step(FINAL)


def test_a_client_says_which_tenant_it_acts_for_and_signs_it() -> None:
    one, other = server(), ScramClient(Mechanism.SHA_256, "user", "pencil", CLIENT_NONCE, "acme")
    final = other.step(one.step(other.first()))
    other.step(one.step(final))
    assert other.is_done
    assert (one.name, one.tenant) == ("user", "acme")
    changed = server()
    changed.step(other.first().replace(b"acme", b"beta"))
    with pytest.raises(Refused):
        changed.step(final)


def test_a_client_does_not_believe_a_server_that_lacks_the_password() -> None:
    other = ScramClient(Mechanism.SHA_256, "user", "pencil", CLIENT_NONCE)
    with pytest.raises(Refused):
        other.step(SERVER_FIRST.replace(CLIENT_NONCE.encode(), b"another"))
    other.step(SERVER_FIRST)
    with pytest.raises(Refused):
        other.step(SERVER_FINAL.replace(b"6rri", b"7rri"))
    assert not other.is_done


def test_names_are_escaped_and_back() -> None:
    assert escaped("a,b=c") == "a=2Cb=3Dc"
    assert unescaped("a=2Cb=3Dc") == "a,b=c"


def test_plain_has_one_form() -> None:
    assert read_plain(b"\0alice\0secret") == Plain("alice", "secret")
    assert read_plain(b"alice\0alice\0secret") == Plain("alice", "secret")  # as aiokafka says it
    assert read_plain(Plain("alice", "secret").encode()) == Plain("alice", "secret")
    assert read_plain(Plain("alice", "secret", "acme").encode()) == Plain("alice", "secret", "acme")
    for wrong in (b"", b"alice\0secret", b"bob\0alice\0secret", b"\0alice\0", b"\0\0x", b"\0a\0\xff", b"\0a\0b\0c"):
        with pytest.raises(Refused):
            read_plain(wrong)

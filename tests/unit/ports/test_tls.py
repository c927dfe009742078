"""Certificates: which are taken, whose they are, and that a broken file changes nothing."""

from pathlib import Path

import pytest

from goqueue.model.certificate_names import DEFAULT_RULES, CertificateNames, PrincipalRule, principal_of
from goqueue.model.listener import ClientAuth
from goqueue.ports.tls import BadCertificate, ServerTls, TlsFiles, certificate_names, names_of_pem
from goqueue.ports.tls_network import HandshakeRate
from tests.certificates import Authority


def test_the_names_of_a_certificate_are_read(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("alice", cn="alice", dns=["a.example.org"], uris=["spiffe://example.org/shop"])
    names = names_of_pem(pair.cert.read_bytes())
    assert names == CertificateNames(("spiffe://example.org/shop",), ("a.example.org",), {"CN": ("alice",)})
    with pytest.raises(BadCertificate):
        certificate_names(b"no certificate")


NAMES = CertificateNames(("spiffe://example.org/shop",), ("a.example.org", "b.test"), {"CN": ("alice",), "OU": ("x",)})


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ([str(rule) for rule in DEFAULT_RULES], "User:spiffe://example.org/shop"),
        ([r"uri=spiffe://example\.org/(.+)->\1", r"CN=(.+)->\1"], "User:shop"),
        ([r"dns=(.+)\.test->\1"], "User:b"),
        ([r"ou=x->admin"], "User:admin"),
        ([r"CN=ali->\1"], None),  # a part of a name is not the name
        ([r"uri=https://.*->x", r"CN=(.+)->cn-\1"], "User:cn-alice"),
    ],
)
def test_the_first_rule_that_matches_says_who_it_is(rules: list[str], principal: str | None) -> None:
    assert principal_of(NAMES, [PrincipalRule.parse(rule) for rule in rules]) == principal


@pytest.mark.parametrize("text", ["", "CN", "CN=(.+)", "=x->y", "CN=(->y", "C N=x->y", "CN=x->"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        PrincipalRule.parse(text)


def test_a_pair_is_loaded_again_when_it_has_changed_and_kept_when_it_is_broken(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.sign("server", days=10)
    tls = ServerTls(TlsFiles(pair.cert, pair.key))
    assert not tls.load()
    before = tls.expires
    other = authority.sign("other")
    pair.key.write_bytes(other.key.read_bytes())
    with pytest.raises(BadCertificate, match="does not belong to the certificate"):
        tls.load()
    pair.key.write_bytes(b"")
    with pytest.raises(BadCertificate):
        tls.load()
    pair.key.unlink()
    with pytest.raises(BadCertificate, match="No such file"):
        tls.load()
    assert (tls.expires, tls.loads) == (before, 1)
    authority.sign("server", days=20)
    assert tls.load()
    assert tls.expires > before
    assert not tls.authorities_changed


def test_another_authority_of_clients_is_noticed(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.sign("server")
    tls = ServerTls(TlsFiles(pair.cert, pair.key, None, authority.ca), ClientAuth.REQUIRE)
    authority.ca.write_bytes(Authority(tmp_path, "new").ca.read_bytes())
    assert tls.load()
    assert tls.authorities_changed


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("server", password=b"open sesame")
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    tls = ServerTls(TlsFiles(pair.cert, pair.key, password))
    assert b"ENCRYPTED" not in tls.pem()[0]  # for grpc, which takes no other
    with pytest.raises(BadCertificate, match="has a password"):
        ServerTls(TlsFiles(pair.cert, pair.key))
    password.write_text("wrong")
    with pytest.raises(BadCertificate, match="password"):
        ServerTls(TlsFiles(pair.cert, pair.key, password))


def test_clients_cannot_be_checked_without_an_authority(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("server")
    with pytest.raises(BadCertificate, match="authority"):
        ServerTls(TlsFiles(pair.cert, pair.key), ClientAuth.REQUEST)


def test_handshakes_of_one_address_are_bounded_and_others_are_not_held_up() -> None:
    rate = HandshakeRate(3)
    assert [rate.take("10.0.0.1", 0.0) for _ in range(4)] == [True, True, True, False]
    assert rate.take("10.0.0.2", 0.0)
    assert not rate.take("10.0.0.1", 0.3)
    assert rate.take("10.0.0.1", 0.4)
    assert not rate.take("10.0.0.1", 0.0)  # time that goes back adds nothing

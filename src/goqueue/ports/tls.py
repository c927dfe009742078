"""TLS: contexts made from files, which may be replaced while listeners are open.

A listener has a front context for as long as it lives. Each handshake is handed over to the current one, so that a new
certificate, and a new or withdrawn authority of clients, counts from the next handshake on.
"""

import ssl
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from goqueue.model.certificate_names import CertificateNames
from goqueue.model.errors import GoQueueError
from goqueue.model.listener import ClientAuth
from goqueue.model.secret import Secret

VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUEST: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRE: ssl.CERT_REQUIRED,
}


class BadCertificate(GoQueueError):
    """Files that should hold a certificate, its key or authorities cannot be used."""


class TlsFiles(NamedTuple):
    """All PEM."""

    cert: Path
    key: Path
    key_password: Path | None = None
    """A file with the password of the key, in one line."""
    ca: Path | None = None
    """Whose signature makes the certificate of the other side a good one."""


class _Material(NamedTuple):
    """What is in the files."""

    cert: bytes
    key: Secret[bytes]
    password: Secret[bytes] | None
    ca: bytes | None


class ServerTls:
    """Of one listener. `load` raises BadCertificate, and leaves what was there before."""

    def __init__(self, files: TlsFiles, client_auth: ClientAuth = ClientAuth.NONE) -> None:
        if client_auth is not ClientAuth.NONE and files.ca is None:
            raise BadCertificate("certificates of clients cannot be checked without an authority: name a ca_file")
        self.files = files
        self.client_auth = client_auth
        self._material = _read(files)
        self._context = self._make(self._material)
        self.expires = expiry(self._material.cert, files.cert)
        self.loads = 1
        self.authorities_changed = False
        """Since the start. A session from before must not be resumed then: its certificate was not checked again."""
        self.front = _server_context(client_auth)
        self.front.sni_callback = self._switch

    def _switch(self, connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
        """Called in each handshake, with or without a name."""
        connection.context = self._context

    def _make(self, material: _Material) -> ssl.SSLContext:
        context = _server_context(self.client_auth)
        _load_pair(context, self.files, material)
        if material.ca is not None:
            _load_authorities(context, material.ca, self.files.ca)
        return context

    def load(self) -> bool:
        """Look at the files. False: nothing in them has changed. In any thread."""
        material = _read(self.files)
        if material == self._material:
            return False
        context, expires = self._make(material), expiry(material.cert, self.files.cert)
        self.authorities_changed = self.authorities_changed or material.ca != self._material.ca
        self._material, self._context, self.expires = material, context, expires
        self.loads += 1
        return True

    def pem(self) -> tuple[bytes, bytes, bytes | None]:
        """Key without a password, certificate and authorities, for those who make contexts of their own."""
        return _plain_key(self._material, self.files), self._material.cert, self._material.ca


def client_context(ca: Path | None, cert: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """Of whoever connects. Without `ca`: the authorities that this machine trusts. BadCertificate."""
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if cert is not None:
            context.load_cert_chain(cert, key)
    except (OSError, ValueError) as error:  # an SSLError is one
        raise BadCertificate(f"{_shown(ca, cert, key)}: {_words(error)}") from error
    return context


def certificate_names(der: bytes) -> CertificateNames:
    """BadCertificate: nobody can read it."""
    from cryptography import x509

    try:
        certificate = x509.load_der_x509_certificate(der)
        subject: dict[str, tuple[str, ...]] = {}
        for part in certificate.subject:
            name = part.rfc4514_attribute_name.upper()
            subject[name] = (*subject.get(name, ()), str(part.value))
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return CertificateNames(subject=subject)
        uris = tuple(names.get_values_for_type(x509.UniformResourceIdentifier))
        return CertificateNames(uris, tuple(names.get_values_for_type(x509.DNSName)), subject)
    except ValueError as error:
        raise BadCertificate(f"a certificate cannot be read: {error}") from error


def names_of_pem(pem: bytes) -> CertificateNames:
    try:
        return certificate_names(ssl.PEM_cert_to_DER_cert(pem.decode("ascii")))
    except ValueError as error:
        raise BadCertificate(f"a certificate cannot be read: {error}") from error


def expiry(pem: bytes, path: Path) -> datetime:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except ValueError as error:
        raise BadCertificate(f"{path}: is no certificate: {error}") from error


def _server_context(client_auth: ClientAuth) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.verify_mode = VERIFY[client_auth]
    if client_auth is not ClientAuth.NONE:  # who resumes is not asked for a certificate again
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _read(files: TlsFiles) -> _Material:
    def read(path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise BadCertificate(f"{path}: cannot be read: {error.strerror}") from error

    password = None if files.key_password is None else Secret(read(files.key_password).rstrip(b"\r\n"))
    return _Material(read(files.cert), Secret(read(files.key)), password, None if files.ca is None else read(files.ca))


def _load_pair(context: ssl.SSLContext, files: TlsFiles, material: _Material) -> None:
    def password() -> bytes:
        if material.password is None:
            raise BadCertificate(f"{files.key}: has a password: name a file with it")
        return material.password.reveal()

    try:
        context.load_cert_chain(files.cert, files.key, password)
    except (OSError, ValueError) as error:
        raise BadCertificate(f"{_shown(files.cert, files.key)}: {_words(error)}") from error


def _load_authorities(context: ssl.SSLContext, pem: bytes, path: Path | None) -> None:
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (OSError, ValueError) as error:
        raise BadCertificate(f"{path}: {_words(error)}") from error


def _plain_key(material: _Material, files: TlsFiles) -> bytes:
    if material.password is None:
        return material.key.reveal()
    from cryptography.hazmat.primitives import serialization

    try:
        key = serialization.load_pem_private_key(material.key.reveal(), material.password.reveal())
    except (TypeError, ValueError) as error:
        raise BadCertificate(f"{files.key}: {error}") from error
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _shown(*paths: Path | None) -> str:
    return " and ".join(str(path) for path in paths if path is not None) or "the authorities of this machine"


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        known = WORDS.get(error.reason or "")
        return known or error.reason or "is not PEM, or has another password"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


WORDS = {
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
    "NO_START_LINE": "is not PEM",
    "BAD_DECRYPT": "the password of the key is wrong",
}

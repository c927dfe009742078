"""An authority of our own, and what it signs: EC keys, made at once."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    cert: Path
    key: Path


class Authority:
    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = _builder(self._name, self._name, self._key, 365).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.ca = directory / f"{name}.pem"
        self.ca.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def sign(
        self,
        file: str,
        *,
        cn: str = "someone",
        dns: Sequence[str] = (),
        uris: Sequence[str] = (),
        addresses: Sequence[str] = (),
        days: int = 30,
        password: bytes | None = None,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cn)])
        made = _builder(subject, self._name, key, days)
        names: list[x509.GeneralName] = [x509.DNSName(each) for each in dns]
        names += [x509.UniformResourceIdentifier(each) for each in uris]
        names += [x509.IPAddress(ip_address(each)) for each in addresses]
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair = Pair(self._directory / f"{file}.pem", self._directory / f"{file}.key")
        pair.cert.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        locked = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        pair.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
        return pair


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + days * DAY)
    )

"""A broker that wants a password on one listener and has a certificate on another, and who signed that."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.kafka_broker import KafkaBroker

USER, PASSWORD = "firesteel", "a secret"

_LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'


class Authority:
    """Signs certificates."""

    def __init__(self, directory: Path, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._directory = directory
        self.certificate = directory / f"{name}.pem"
        signed = _certificate(self._name, self._name, self._key, self._key, authority=True)
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def sign_for_loopback(self) -> Path:
        """A key and its certificate, as one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = _certificate(_name("broker"), self._name, key, self._key, authority=False)
        path = self._directory / "broker.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + signed.public_bytes(serialization.Encoding.PEM)
        )
        return path


def secured_broker(home: Path, authority: Authority) -> KafkaBroker:
    """`addresses["PASSWORD"]` and `addresses["TLS"]` are where it is guarded."""
    return KafkaBroker(
        home,
        protocols={"PASSWORD": "SASL_PLAINTEXT", "TLS": "SSL"},
        properties={
            "listener.name.password.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.password.plain.sasl.jaas.config": _LOGIN,
            "listener.name.tls.ssl.keystore.type": "PEM",
            "listener.name.tls.ssl.keystore.location": authority.sign_for_loopback(),
        },
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signing: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
    now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
    loopback = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    built = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    built = built.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
    built = built.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    if not authority:
        built = built.add_extension(x509.SubjectAlternativeName(loopback), critical=False)
    return built.sign(signing, hashes.SHA256())

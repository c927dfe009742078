"""How a node reaches its etcd, from its settings."""

from pathlib import Path

import pytest

from goqueue.cluster.etcd.endpoints import EtcdOptions
from goqueue.model.errors import InvalidSettings
from goqueue.model.secret import Secret
from goqueue.node.etcd_options import etcd_options
from goqueue.node.settings import Settings

ENDPOINTS = ("https://10.0.0.1:2379",)


def test_members_alone_are_enough() -> None:
    assert etcd_options(Settings(etcd=ENDPOINTS)) == EtcdOptions(ENDPOINTS)


def test_user_and_certificates_are_taken_from_files(tmp_path: Path) -> None:
    for name in ("password", "ca", "cert", "key"):
        (tmp_path / name).write_text(f"{name}\n")
    options = etcd_options(
        Settings(
            etcd=ENDPOINTS,
            etcd_user="node",
            etcd_password_file=tmp_path / "password",
            etcd_ca_file=tmp_path / "ca",
            etcd_cert_file=tmp_path / "cert",
            etcd_key_file=tmp_path / "key",
        )
    )
    files = (tmp_path / "ca", tmp_path / "cert", tmp_path / "key")
    assert options == EtcdOptions(ENDPOINTS, "node", Secret("password"), *files)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings) as refused:
        etcd_options(Settings(etcd=ENDPOINTS, etcd_user="node", etcd_ca_file=tmp_path / "none"))
    assert str(refused.value).splitlines() == [
        "etcd_user needs etcd_password_file",
        f"etcd_ca_file = {tmp_path / 'none'}: No such file or directory",
    ]

"""The thin client on an etcd that wants to know who asks: certificates both ways, users with passwords."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from goqueue.cluster.etcd.client import EtcdClient
from goqueue.cluster.etcd.endpoints import EtcdOptions
from goqueue.cluster.etcd.port import EtcdFault, KeyPut, KeyValue, Txn
from goqueue.model.secret import Secret
from tests.integration.etcd_members import Etcds, is_well
from tests.integration.process import wait_until

FAR_S = 60.0


def asked(options: EtcdOptions, *keys: bytes) -> list[Any]:
    """What becomes of a write of each key, one after the other, while one watch goes on over all."""

    async def go() -> list[Any]:
        client = EtcdClient(options)
        answers: list[Any] = []
        try:
            for key in keys:
                answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                client.txn([], [KeyPut(key, b"1")], answer.set_result)
                answers.append(await asyncio.wait_for(answer, FAR_S))
            return answers
        finally:
            client.close()

    return asyncio.run(go())


def watched(options: EtcdOptions) -> list[KeyValue]:
    """What a watch from the beginning tells first, tried as the store does."""

    async def go() -> list[KeyValue]:
        client = EtcdClient(options)
        told: asyncio.Queue[list[KeyValue] | None] = asyncio.Queue()
        try:
            async with asyncio.timeout(FAR_S):
                while True:
                    end = client.watch(
                        b"/", 1, lambda revision, keys: told.put_nowait(list(keys)), lambda fault: told.put_nowait(None)
                    )
                    entries = await told.get()
                    end()
                    if entries is not None:
                        return entries
        finally:
            client.close()

    return asyncio.run(go())


class Certificates:
    """An authority, and what it has signed, made by openssl."""

    def __init__(self, directory: Path, host: str) -> None:
        self.directory = directory
        self._run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority", "ca")
        for name in ("server", "node"):
            self._run("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", name)
            (directory / "names").write_text(f"subjectAltName=IP:{host}\n")
            signed = ["-in", self.path(name, "csr"), "-CA", self.path("ca", "crt"), "-CAkey", self.path("ca", "key")]
            made = ["-CAcreateserial", "-days", "2", "-extfile", str(directory / "names")]
            self._openssl("x509", "-req", *signed, *made, "-out", self.path(name, "crt"))

    def path(self, name: str, kind: str) -> str:
        return str(self.directory / f"{name}.{kind}")

    def _run(self, *words: str) -> None:
        *arguments, name = words
        kind = "crt" if "-x509" in arguments else "csr"
        self._openssl(*arguments, "-keyout", self.path(name, "key"), "-out", self.path(name, kind))

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.directory)


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[Etcds, Certificates]]:
    etcds = Etcds(tmp_path, scheme="https")
    certificates = Certificates(tmp_path, etcds.members[0].host)
    path = certificates.path
    etcds.members[0].arguments += (
        *("--cert-file", path("server", "crt"), "--key-file", path("server", "key")),
        *("--client-cert-auth", "--trusted-ca-file", path("ca", "crt")),
    )
    yield etcds, certificates
    etcds.clean_up()


def test_certificates_are_shown_and_checked_both_ways(secured: tuple[Etcds, Certificates]) -> None:
    etcds, certificates = secured
    ca, cert, key = (Path(certificates.path(*each)) for each in (("ca", "crt"), ("node", "crt"), ("node", "key")))
    whole = EtcdOptions(etcds.endpoints, ca_file=ca, cert_file=cert, key_file=key)
    etcds.start(whole)
    (done,) = asked(whole, b"/tls")
    assert isinstance(done, Txn)
    assert done.is_done
    (without,) = asked(EtcdOptions(etcds.endpoints, ca_file=ca), b"/no-certificate")
    assert isinstance(without, EtcdFault)
    (stranger,) = asked(EtcdOptions(etcds.endpoints), b"/unknown-authority")
    assert isinstance(stranger, EtcdFault)
    assert [entry.key for entry in watched(whole)] == [b"/tls"]


class Administrator:
    """What `etcdctl` would ask, by numbers of fields."""

    def __init__(self, url: str) -> None:
        self._channel = grpc.insecure_channel(url.removeprefix("http://"))

    def ask(self, method: str, *fields: str | bytes) -> None:
        request = b""
        for number, field in enumerate(fields, 1):
            value = field.encode() if isinstance(field, str) else field
            request += bytes([number << 3 | 2, len(value)]) + value
        call: Any = self._channel.unary_unary(f"/etcdserverpb.Auth/{method}")
        call(request, timeout=FAR_S)

    def close(self) -> None:
        self._channel.close()


def enable_users(url: str) -> None:
    """`root`, and `node` who may do anything below /goqueue/."""
    admin = Administrator(url)
    admin.ask("UserAdd", "root", "secret")
    admin.ask("RoleAdd", "root")
    admin.ask("UserGrantRole", "root", "root")
    admin.ask("RoleAdd", "nodes")
    permission = bytes([8, 2]) + _field(2, b"/goqueue/") + _field(3, b"/goqueue0")
    admin.ask("RoleGrantPermission", "nodes", permission)
    admin.ask("UserAdd", "node", "pass")
    admin.ask("UserGrantRole", "node", "nodes")
    admin.ask("AuthEnable")
    admin.close()


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def test_a_user_with_a_password_may_do_what_the_role_allows(tmp_path: Path) -> None:
    etcds = Etcds(tmp_path, 1, "--auth-token-ttl", "1").start()
    try:
        (url,) = etcds.endpoints
        enable_users(url)
        node = EtcdOptions((url,), user="node", password=Secret("pass"))
        wait_until(lambda: is_well(url, node), "login")
        done, denied, again = asked(node, b"/goqueue/a", b"/elsewhere", b"/goqueue/b")
        assert isinstance(done, Txn)
        assert isinstance(again, Txn)
        assert "permission denied" in str(denied)
        (nobody,) = asked(EtcdOptions((url,)), b"/goqueue/c")
        assert isinstance(nobody, EtcdFault)
        (wrong,) = asked(EtcdOptions((url,), user="node", password=Secret("guess")), b"/goqueue/d")
        assert "authentication failed" in str(wrong)
    finally:
        etcds.clean_up()


def test_a_token_that_has_expired_is_had_anew_and_the_request_is_done(tmp_path: Path) -> None:
    etcds = Etcds(tmp_path, 1, "--auth-token-ttl", "1").start()

    async def scenario(options: EtcdOptions) -> None:
        client = EtcdClient(options)
        loop = asyncio.get_running_loop()
        try:
            for number in range(3):
                answer: asyncio.Future[Any] = loop.create_future()
                client.txn([], [KeyPut(b"/goqueue/t", b"%d" % number)], answer.set_result)
                assert isinstance(await answer, Txn)
                later = asyncio.Event()
                loop.call_later(3, later.set)  # longer than a token lives
                await later.wait()
        finally:
            client.close()

    try:
        (url,) = etcds.endpoints
        enable_users(url)
        options = EtcdOptions((url,), user="node", password=Secret("pass"))
        wait_until(lambda: is_well(url, options), "login")
        asyncio.run(asyncio.wait_for(scenario(options), FAR_S))
    finally:
        etcds.clean_up()

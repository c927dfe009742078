"""`goqueue doctor --security` finds what lets others in, each fault by itself."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from goqueue.cli.run.doctor import FAIL, OK, WARN, Finding
from goqueue.cli.run.doctor_security import look_at_certificates, look_at_files, look_at_ways_in
from goqueue.node.settings import Settings, read_settings
from goqueue.node.values import Authentication, Switch
from tests.certificates import Authority


def states(findings: Iterable[Finding]) -> dict[str, str]:
    return {each.check: each.state for each in findings}


def test_an_open_node_fails_and_a_closed_one_does_not() -> None:
    closed = Settings()
    assert states(look_at_ways_in(closed)) == {"authentication": OK, "master key": WARN}
    assert states(look_at_ways_in(replace(closed, insecure=Switch.ON)))["insecure"] == FAIL
    assert states(look_at_ways_in(replace(closed, authentication=Authentication.OFF)))["authentication"] == FAIL
    assert states(look_at_ways_in(replace(closed, dev=Switch.ON)))["dev"] == WARN


def test_files_with_secrets_are_their_owners_only(tmp_path: Path) -> None:
    master = tmp_path / "master.key"
    master.write_text("ab" * 32)
    settings = Settings(data_dir=tmp_path / "data", master_key_file=master)
    for mode, state in ((0o600, OK), (0o640, FAIL), (0o604, FAIL)):
        master.chmod(mode)
        assert next(iter(look_at_files(settings))).state == state
    master.chmod(0o600)
    master.write_text("short")
    assert states(look_at_files(settings))["master key"] == FAIL
    master.unlink()
    assert states(look_at_files(settings))["files"] == FAIL
    settings.data_dir.mkdir(mode=0o755)
    assert states(look_at_files(Settings(data_dir=settings.data_dir))) == {"data directory": WARN}
    settings.data_dir.chmod(0o700)
    assert list(look_at_files(Settings(data_dir=settings.data_dir))) == []


def test_certificates_that_end_soon_are_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    found = {}
    for days in (3, 20, 90):
        pair = authority.sign(f"d{days}", dns=["localhost"], days=days)
        flags = {"listeners": "kafka://127.0.0.1:0?protocol=SSL", "tls_cert_file": str(pair.cert)}
        settings = read_settings({**flags, "tls_key_file": str(pair.key)}, environ={})
        found[days] = states(look_at_certificates(settings))["certificate"]
    assert found == {3: FAIL, 20: WARN, 90: OK}
    broken = tmp_path / "d3.pem"
    broken.write_text("no certificate")
    flags = {"listeners": "kafka://127.0.0.1:0?protocol=SSL", "tls_cert_file": str(broken), "tls_key_file": str(broken)}
    assert states(look_at_certificates(read_settings(flags, environ={}))) == {"certificate": FAIL}

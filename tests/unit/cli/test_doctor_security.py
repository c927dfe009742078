"""`goqueue doctor --security` finds what lets others in, each fault by itself."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from goqueue.cli.run.doctor import FAIL, OK, WARN, Finding
from goqueue.cli.run.doctor_security import DAY_MS, look_at_certificates, look_at_files, look_at_keys, look_at_ways_in
from goqueue.node.settings import Settings, read_settings
from goqueue.node.values import Authentication, Switch
from goqueue.wire.rest.accounts import KeyFacts, Keys
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


def test_keys_that_last_or_that_nobody_uses_are_told() -> None:
    def look(used_day: int | None, *, made_day: int = 0, since_day: int = 0, expires: bool = True) -> list[str]:
        """On day 100."""
        key = KeyFacts(
            id="k1",
            principal="Key:k1",
            prefix="gqk_k1_",
            name="shop",
            roles=[],
            created_at=made_day * DAY_MS + 1,
            expires_at=200 * DAY_MS if expires else None,
            secrets=1,
            is_bootstrap=False,
            metadata={},
            for_sqs=False,
            last_used_at=None if used_day is None else used_day * DAY_MS,
        )
        listed = Keys(keys=[key], count=1, since=since_day * DAY_MS + 1)
        return [each.found for each in look_at_keys(listed, 100 * DAY_MS + 2)]

    assert look(50) == []
    assert look(5) == ["k1 (shop) was not used for 95 days"]
    assert look(None) == ["k1 (shop) was not used for 100 days"]
    assert look(None, made_day=50) == look(None, since_day=50) == [], "nobody knows"
    assert look(50, expires=False) == ["k1 (shop) does not expire"]


def test_keys_of_listeners_are_their_owners_only(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("server", dns=["localhost"])
    pair.key.chmod(0o640)
    listener = f"kafka://127.0.0.1:0?name=public&protocol=SSL&cert_file={pair.cert}&key_file={pair.key}"
    (found,) = look_at_files(read_settings({"listeners": listener, "data_dir": str(tmp_path / "none")}, environ={}))
    assert (found.state, found.found) == (FAIL, f"key_file of public = {pair.key}: others may read it")

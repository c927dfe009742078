"""Which versions of etcd a node trusts."""

import pytest

from goqueue.cluster.etcd.versions import EtcdTooOld, check_versions, is_trusted


@pytest.mark.parametrize("version", ["3.5.28", "3.5.30", "3.6.9", "3.6.16", "3.7.0", "4.0.0", "3.6.9-rc.1"])
def test_a_version_without_known_loss_is_trusted(version: str) -> None:
    assert is_trusted(version)


@pytest.mark.parametrize("version", ["3.4.23", "3.5.1", "3.5.27", "3.6.0", "3.6.8", "2.3.8", "", "unknown"])
def test_an_older_one_is_not(version: str) -> None:
    assert not is_trusted(version)


def test_the_refusal_names_the_member_and_what_is_needed() -> None:
    check_versions({"http://a:2379": "3.6.16", "http://b:2379": "3.5.28"})
    with pytest.raises(EtcdTooOld, match=r"http://b:2379 runs etcd 3\.5\.1: 3\.5\.28 or 3\.6\.9 is needed"):
        check_versions({"http://a:2379": "3.6.16", "http://b:2379": "3.5.1"})

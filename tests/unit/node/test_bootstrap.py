"""The first admin of a closed node, and the file that the master key is in."""

import asyncio
from pathlib import Path

import pytest

from goqueue.broker.accounts.logins import Logins
from goqueue.model.credentials import Principal
from goqueue.model.errors import InvalidSettings
from goqueue.model.secret import Secret
from goqueue.node.bootstrap import FILE_NAME, LIFE_MS, RESET_NAME, Bootstrap
from goqueue.node.master_key import read_master_keys
from goqueue.node.settings import Settings
from goqueue.testing import MemoryBroker, broker
from tests.unit.doors.http.test_credentials import done_of
from tests.unit.testing.loops import in_loop

KEY = f"gqk_k0123456789abcdef_{'ab' * 32}"


def starting(b: MemoryBroker, settings: Settings) -> Bootstrap:
    return Bootstrap(settings, b.broker.accounts, b.broker.clock.now_ms())


def logins(b: MemoryBroker) -> Logins:
    return Logins(b.broker.accounts, b.broker.clock, b.broker.dice, b"secret")


@in_loop
async def test_a_node_without_accounts_makes_one_key_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", ready_file=tmp_path / "ready")
    async with broker() as b:
        await starting(b, settings).run()
        path = tmp_path / FILE_NAME
        text = path.read_text().strip()
        assert path.stat().st_mode & 0o777 == 0o600
        (key,) = b.broker.accounts.image.keys.values()
        assert (key.is_bootstrap, key.roles) == (True, ("admin",))
        assert logins(b).key(text, "") == Principal(key.principal, b.broker.clock.now_ms() + LIFE_MS)
        path.unlink()
        await starting(b, settings).run()
        assert (len(b.broker.accounts.image.keys), path.exists()) == (1, False)


@in_loop
async def test_a_key_in_a_file_is_taken_and_not_written_again(tmp_path: Path) -> None:
    given = tmp_path / "first.key"
    given.write_text(KEY + "\n")
    settings = Settings(data_dir=tmp_path, bootstrap_key_file=given)
    async with broker() as b:
        await starting(b, settings).run()
        assert logins(b).key(KEY, "").name == "Key:k0123456789abcdef"
        assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize("text", ["", "secret", KEY[:-1], KEY.upper()])
@in_loop
async def test_a_file_without_a_key_stops_the_start(tmp_path: Path, text: str) -> None:
    given = tmp_path / "first.key"
    given.write_text(text)
    async with broker() as b:
        with pytest.raises(InvalidSettings):
            await starting(b, Settings(data_dir=tmp_path, bootstrap_key_file=given)).run()
        assert b.broker.accounts.image.keys == {}


def test_a_master_key_lies_elsewhere_and_is_read_by_its_owner_only(tmp_path: Path) -> None:
    data_dir, path = tmp_path / "data", tmp_path / "master.key"
    data_dir.mkdir()
    path.write_text("ab" * 32 + "\n")
    path.chmod(0o600)
    assert read_master_keys(path, data_dir) == [Secret(b"\xab" * 32)]
    path.write_text("ab" * 32 + "\n" + "cd" * 32 + "\n")
    assert read_master_keys(path, data_dir) == [Secret(b"\xab" * 32), Secret(b"\xcd" * 32)]
    path.chmod(0o640)
    with pytest.raises(InvalidSettings, match="chmod 600"):
        read_master_keys(path, data_dir)
    path.chmod(0o600)
    with pytest.raises(InvalidSettings, match="inside data_dir"):
        read_master_keys(path, tmp_path)
    for wrong in ("ab" * 31, "xy" * 32, ""):
        path.write_text(wrong)
        with pytest.raises(InvalidSettings, match="openssl rand"):
            read_master_keys(path, data_dir)
    with pytest.raises(InvalidSettings):
        read_master_keys(tmp_path / "nowhere", data_dir)


@in_loop
async def test_a_first_key_that_ended_unused_is_replaced_at_the_next_start(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    async with broker() as b:
        first = await starting(b, settings).run()
        assert await starting(b, settings).run() is None
        await b.advance(LIFE_MS)
        second = await starting(b, settings).run()
        assert first is not None
        assert second is not None
        assert first.key_id != second.key_id


@in_loop
async def test_whoever_may_write_to_the_data_directory_gets_a_key_beside_the_accounts_that_are_there(
    tmp_path: Path,
) -> None:
    async with broker() as b:
        accounts = b.broker.accounts
        await done_of(lambda done: accounts.create_key("lost", ("admin",), 0, {}, done))
        assert await starting(b, Settings(data_dir=tmp_path)).run() is None
        (tmp_path / RESET_NAME).touch()
        made = await starting(b, Settings(data_dir=tmp_path)).run()
        assert made is not None
        assert accounts.image.keys[made.key_id].is_bootstrap
        assert len(accounts.image.keys) == 2
        assert await starting(b, Settings(data_dir=tmp_path)).run() is None


@in_loop
async def test_nodes_that_are_given_the_same_key_all_start(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    async with broker() as b:
        for _ in range(2):
            (tmp_path / RESET_NAME).touch()  # as if neither had seen what the other has stored
            await Bootstrap(settings, b.broker.accounts, b.broker.clock.now_ms(), Secret(KEY)).run()
        assert list(b.broker.accounts.image.keys) == ["k0123456789abcdef"]
        (tmp_path / RESET_NAME).touch()
        with pytest.raises(InvalidSettings, match="GOQUEUE_BOOTSTRAP_KEY"):
            await Bootstrap(settings, b.broker.accounts, b.broker.clock.now_ms(), Secret("secret")).run()


@in_loop
async def test_nodes_that_start_together_make_one_key(tmp_path: Path) -> None:
    both = [Settings(data_dir=tmp_path / name, ready_file=tmp_path / name / "ready") for name in ("a", "b")]
    for each in both:
        each.data_dir.mkdir()
    async with broker() as b:
        made = await asyncio.gather(*(starting(b, each).run() for each in both))
        (key,) = b.broker.accounts.image.keys.values()
        assert [each.key_id for each in made if each is not None] == [key.key_id]
        told = [each.data_dir / FILE_NAME for each in both]
        (text,) = [each.read_text().strip() for each in told if each.exists()]
        assert logins(b).key(text, "").name == key.principal

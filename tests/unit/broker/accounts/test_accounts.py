"""Users and keys: made, changed, checked, kept over a restart, and gone when they are deleted."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from goqueue.broker.accounts.accounts import Accounts, NewKey
from goqueue.broker.accounts.guesses import FAILURES_MAX, Guesses
from goqueue.broker.accounts.logins import Logins
from goqueue.broker.accounts.sealing import CannotUnseal, Sealing
from goqueue.model import scram
from goqueue.model.access import Kind, Operation, Rule
from goqueue.model.accounts import ApiKey, KeySecret
from goqueue.model.codes import Code
from goqueue.model.credentials import NotAuthenticated, Principal
from goqueue.model.refusal import Refused
from goqueue.model.scram import Mechanism, Salted, Verifier, salted_password
from goqueue.model.secret import Secret
from goqueue.model.tenancy import Tenant
from goqueue.ports.dice import system_dice
from goqueue.testing import MemoryDisk, broker
from tests.unit.testing.loops import in_loop

HOST = "10.0.0.1"


@dataclass
class House:
    b: Any

    @property
    def accounts(self) -> Accounts:
        found: Accounts = self.b.broker.accounts
        return found

    def logins(self) -> Logins:
        return Logins(self.accounts, self.b.broker.clock, self.b.broker.dice, b"secret")

    async def ask(self, submit: Callable[[Callable[[Any], None]], object]) -> Any:
        """What was answered; a refusal is raised."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        submit(done.set_result)
        reply = await done
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def key(self, *roles: str, expires_ms: int = 0) -> NewKey:
        made: NewKey = await self.ask(lambda done: self.accounts.create_key("app", roles, expires_ms, {}, done))
        return made

    async def user(self, name: str = "alice", password: str = "secret", *roles: str) -> None:
        await self.ask(lambda done: self.accounts.create_user(name, password, roles, done))

    async def log_in(self, logins: Logins, name: str, password: str, host: str = HOST) -> Principal:
        found: Principal = await self.ask(lambda done: logins.password(name, password, host, done))
        return found


@in_loop
async def test_a_user_logs_in_with_its_password_and_no_other() -> None:
    async with broker() as b:
        house = House(b)
        await house.user()
        logins = house.logins()
        for _ in range(2):  # the second time it is remembered
            assert await house.log_in(logins, "alice", "secret") == Principal("User:alice")
        for name, password in (("alice", "other"), ("alice", ""), ("bob", "secret"), ("", "")):
            with pytest.raises(NotAuthenticated):
                await house.log_in(logins, name, password)


@in_loop
async def test_a_changed_password_counts_at_once() -> None:
    async with broker() as b:
        house = House(b)
        await house.user()
        logins = house.logins()
        await house.log_in(logins, "alice", "secret")
        await house.ask(lambda done: house.accounts.change_user("alice", "another", None, done))
        with pytest.raises(NotAuthenticated):
            await house.log_in(logins, "alice", "secret")
        assert await house.log_in(logins, "alice", "another") == Principal("User:alice")
        await house.ask(lambda done: house.accounts.delete_user("alice", done))
        with pytest.raises(NotAuthenticated):
            await house.log_in(logins, "alice", "another")


@in_loop
async def test_accounts_are_there_after_a_restart() -> None:
    disk = MemoryDisk()
    rule = Rule("r1", "User:alice", Kind.TOPIC, "orders", Operation.READ)
    async with broker(disk=disk) as b:
        house = House(b)
        await house.user("alice", "secret", "producer")
        await house.user("gone")
        kept, deleted = await house.key("consumer"), await house.key()
        await house.ask(lambda done: house.accounts.create_rules([rule], done))
        await house.ask(lambda done: house.accounts.delete_user("gone", done))
        await house.ask(lambda done: house.accounts.delete_key(deleted.key.key_id, done))
    async with broker(disk=disk) as b:
        house = House(b)
        image = house.accounts.image
        assert (list(image.users), list(image.keys), dict(image.rules)) == (["alice"], [kept.key.key_id], {"r1": rule})
        assert image.users["alice"].roles == ("producer",)
        logins = house.logins()
        assert await house.log_in(logins, "alice", "secret") == Principal("User:alice")
        assert logins.key(kept.text.reveal(), HOST) == Principal(f"Key:{kept.key.key_id}")
        with pytest.raises(NotAuthenticated):
            logins.key(deleted.text.reveal(), HOST)


@in_loop
async def test_a_topic_does_not_change_with_accounts_nor_they_with_it() -> None:
    async with broker() as b:
        house = House(b)
        await b.create_topic("orders")
        topics, access = b.broker.topics.image.revision, house.accounts.image.revision
        await house.user()
        assert b.broker.topics.image.revision == topics
        assert house.accounts.image.revision > access
        access = house.accounts.image.revision
        await b.create_topic("others")
        assert house.accounts.image.revision == access


@in_loop
async def test_a_key_ends_when_it_expires_and_its_old_secret_when_the_overlap_is_over() -> None:
    async with broker() as b:
        house = House(b)
        logins, now_ms = house.logins(), b.broker.clock.now_ms()
        short = await house.key(expires_ms=now_ms + 60_000)
        key = await house.key()
        other = await house.ask(lambda done: house.accounts.rotate_key(key.key.key_id, 60_000, done))
        assert logins.key(key.text.reveal(), HOST).expires_ms == now_ms + 60_000
        assert logins.key(other.text.reveal(), HOST).expires_ms == 0
        assert logins.key(short.text.reveal(), HOST).expires_ms == now_ms + 60_000
        await b.advance("1m")
        for gone in (short, key):
            with pytest.raises(NotAuthenticated):
                logins.key(gone.text.reveal(), HOST)
        assert logins.key(other.text.reveal(), HOST).name == key.key.principal


@in_loop
async def test_a_key_is_its_own_user_and_password() -> None:
    async with broker() as b:
        house = House(b)
        key = await house.key()
        logins = house.logins()
        for secret in (key.text.secret.reveal(), key.text.reveal()):
            assert await house.log_in(logins, key.text.key_id, secret) == Principal(key.key.principal)


@in_loop
async def test_the_bootstrap_key_ends_with_the_first_lasting_admin() -> None:
    async with broker() as b:
        house = House(b)
        first = ApiKey("k0123456789abcdef", "bootstrap", (KeySecret(bytes(32)),), ("admin",), is_bootstrap=True)
        await house.ask(lambda done: house.accounts.store_key(first, done))
        await house.key("consumer")
        await house.key("admin", expires_ms=b.broker.clock.now_ms() + 1000)
        assert first.key_id in house.accounts.image.keys
        await house.user("root", "secret", "admin")
        assert first.key_id not in house.accounts.image.keys


@in_loop
async def test_the_bootstrap_key_outlives_admins_of_tenants_who_could_not_take_its_place() -> None:
    async with broker() as b:
        house = House(b)
        first = ApiKey("k0123456789abcdef", "bootstrap", (KeySecret(bytes(32)),), ("admin",), is_bootstrap=True)
        await house.ask(lambda done: house.accounts.store_key(first, done))
        await house.ask(lambda done: b.broker.tenants.create(Tenant("acme", "acme"), done))
        await house.user("acme~boss", "secret", "admin")
        theirs = ApiKey("k1123456789abcdef", "theirs", (KeySecret(bytes(31) + b"1"),), ("admin",), tenant="acme")
        await house.ask(lambda done: house.accounts.store_key(theirs, done))
        assert first.key_id in house.accounts.image.keys


@in_loop
async def test_what_cannot_be_is_refused_with_its_reason() -> None:
    async with broker() as b:
        house = House(b)
        await house.user()
        accounts = house.accounts
        refused = [
            (lambda done: accounts.create_user("alice", "x", (), done), Code.DUPLICATE_RESOURCE),
            (lambda done: accounts.create_user("a:b", "x", (), done), Code.UNACCEPTABLE_CREDENTIAL),
            (lambda done: accounts.create_user("a", "", (), done), Code.UNACCEPTABLE_CREDENTIAL),
            (lambda done: accounts.create_user("a", "x", ("king",), done), Code.INVALID_REQUEST),
            (lambda done: accounts.change_user("bob", "x", None, done), Code.RESOURCE_NOT_FOUND),
            (lambda done: accounts.delete_user("bob", done), Code.RESOURCE_NOT_FOUND),
            (lambda done: accounts.delete_key("k1", done), Code.RESOURCE_NOT_FOUND),
            (lambda done: accounts.rotate_key("k1", 0, done), Code.RESOURCE_NOT_FOUND),
            (lambda done: accounts.delete_rules(["r1"], done), Code.RESOURCE_NOT_FOUND),
        ]
        for submit, code in refused:
            with pytest.raises(Refused) as error:
                await house.ask(submit)
            assert error.value.code is code


@in_loop
async def test_kafka_sets_passwords_that_are_salted_already() -> None:
    async with broker() as b:
        house = House(b)
        salted = salted_password(Mechanism.SHA_256, "secret", b"salt", 4096)
        change = {Mechanism.SHA_256: Salted(b"salt", 4096, salted)}
        await house.ask(lambda done: house.accounts.alter_scram("kate", change, done))
        assert await house.log_in(house.logins(), "kate", "secret") == Principal("User:kate")
        with pytest.raises(Refused):
            house.accounts.alter_scram("kate", {Mechanism.SHA_512: None}, lambda reply: None)
        await house.ask(lambda done: house.accounts.alter_scram("kate", {Mechanism.SHA_256: None}, done))
        assert "kate" not in house.accounts.image.users


@in_loop
async def test_whoever_is_unknown_gets_the_same_salt_each_time_and_never_in() -> None:
    async with broker() as b:
        house = House(b)
        one, other = (house.logins().verifier("nobody", Mechanism.SHA_256) for _ in range(2))
        assert (one.salt, one.iterations) == (other.salt, other.iterations)
        assert one.stored_key != other.stored_key


@in_loop
async def test_a_stolen_directory_gives_no_verifier_away() -> None:
    disk, dice = MemoryDisk(), system_dice()
    sealing = Sealing(dice, Secret(bytes(range(32))))
    async with broker(disk=disk) as b:
        house = House(b)
        house.accounts.sealing = sealing
        await house.user()
        assert await house.log_in(house.logins(), "alice", "secret") == Principal("User:alice")
    async with broker(disk=disk) as b:
        house = House(b)
        with pytest.raises(CannotUnseal):
            house.accounts.verifier("alice", Mechanism.SHA_256)
        house.accounts.sealing = Sealing(dice, Secret(bytes(32)))
        with pytest.raises(CannotUnseal):
            house.accounts.verifier("alice", Mechanism.SHA_256)
        house.accounts.sealing = sealing
        found = house.accounts.verifier("alice", Mechanism.SHA_256)
        assert found is not None
        assert found.is_password(Mechanism.SHA_256, "secret")


def test_what_is_sealed_for_one_opens_for_no_other() -> None:
    sealing = Sealing(system_dice(), Secret(bytes(32)))
    sealed = sealing.seal("user/alice", b"verifier")
    assert b"verifier" not in sealed
    assert sealing.open("user/alice", sealed) == b"verifier"
    for of, data in (("user/bob", sealed), ("user/alice", sealed[:-1] + bytes([sealed[-1] ^ 1])), ("user/alice", b"")):
        with pytest.raises(CannotUnseal):
            sealing.open(of, data)


def test_guesses_are_slowed_down_by_address_and_name() -> None:
    now_s = 100.0
    guesses = Guesses(lambda: now_s)
    for _ in range(FAILURES_MAX):
        assert guesses.may("10.0.0.1", "alice")
        guesses.failed("10.0.0.1", "alice")
    assert not guesses.may("10.0.0.1", "alice")
    assert guesses.may("10.0.0.2", "alice"), "a stranger locks nobody out"
    assert guesses.may("10.0.0.1", "bob")
    now_s += 1.0
    assert guesses.may("10.0.0.1", "alice")
    guesses.failed("10.0.0.1", "alice")
    assert not guesses.may("10.0.0.1", "alice")


def test_all_addresses_of_a_v6_network_are_one() -> None:
    guesses = Guesses(lambda: 0.0)
    for number in range(FAILURES_MAX):
        guesses.failed(f"2001:db8::{number}", "alice")
    assert not guesses.may("2001:db8::ffff", "alice")
    assert guesses.may("2001:db8:0:1::1", "alice")


def test_a_verifier_is_right_for_one_password() -> None:
    made = Verifier.of_password(Mechanism.SHA_512, "secret", b"salt", 4096)
    assert made.is_password(Mechanism.SHA_512, "secret")
    assert not made.is_password(Mechanism.SHA_512, "Secret")


@in_loop
async def test_an_unknown_user_costs_as_much_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is computed, not by a watch: the same hash, with as many rounds, once for each try."""
    async with broker() as b:
        house = House(b)
        await house.user()
        logins, rounds = house.logins(), []
        real = scram.salted_password

        def counted(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
            rounds.append((mechanism, len(salt), iterations))
            return real(mechanism, password, salt, iterations)

        monkeypatch.setattr(scram, "salted_password", counted)
        words = set()
        for name in ("alice", "nobody", "nobody"):
            with pytest.raises(NotAuthenticated) as refused:
                await house.log_in(logins, name, "wrong")
            words.add(str(refused.value))
        assert len(words) == 1
        assert len(rounds) == 3
        assert len(set(rounds)) == 1


@in_loop
async def test_the_first_answer_of_scram_does_not_tell_who_there_is() -> None:
    async with broker() as b:
        house = House(b)
        await house.user()
        logins = house.logins()
        for mechanism in Mechanism:
            known, unknown = logins.verifier("alice", mechanism), logins.verifier("nobody", mechanism)
            shape = [
                (len(each.salt), each.iterations, len(each.stored_key), len(each.server_key))
                for each in (known, unknown)
            ]
            assert shape[0] == shape[1]
            assert logins.verifier("nobody", mechanism).salt == unknown.salt
            assert logins.verifier("nobody", mechanism).stored_key != unknown.stored_key


def test_what_an_earlier_master_key_sealed_is_read_and_what_is_new_is_sealed_with_the_newest() -> None:
    first, second = Secret(bytes(32)), Secret(bytes(range(32)))
    dice = system_dice()
    old = Sealing(dice, first).seal("user/a", b"x")
    both = Sealing(dice, second, first)
    assert both.open("user/a", old) == b"x"
    assert Sealing(dice, second).open("user/a", both.seal("user/a", b"x")) == b"x"
    with pytest.raises(CannotUnseal):
        Sealing(dice, second).open("user/a", old)

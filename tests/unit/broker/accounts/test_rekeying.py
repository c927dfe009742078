"""A new master key: everything is sealed anew, whatever happens meanwhile, and the old key opens nothing any more."""

from typing import Any

import pytest

from goqueue.broker.accounts.accounts import Accounts
from goqueue.broker.accounts.sealing import CannotUnseal, Sealing
from goqueue.machines.accounts import ChangeUser, Reseal
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused
from goqueue.model.scram import Mechanism
from goqueue.model.secret import Secret
from tests.brokers import TestBroker

OLD, NEW = b"o" * 32, b"n" * 32


def sealed_with(node: TestBroker, *masters: bytes) -> Accounts:
    accounts = node.broker.accounts
    accounts.sealing = Sealing(node.broker.dice, *map(Secret, masters))
    return accounts


def furnished(*masters: bytes) -> TestBroker:
    """With a user and a key for SQS that has two secrets, and a key that nothing is kept of."""
    node = TestBroker()
    accounts = sealed_with(node, *masters)

    def ask(call: Any) -> Any:
        return node.ask(lambda _none, done: call(done), None)

    ask(lambda done: accounts.create_user("anna", "secret", ("producer",), done))
    if masters:
        made = ask(lambda done: accounts.create_key("sqs", (), 0, {}, done, is_for_sqs=True))
        ask(lambda done: accounts.rotate_key(made.key.key_id, 60_000, done))
    ask(lambda done: accounts.create_key("plain", (), 0, {}, done))
    return node


def opened(accounts: Accounts) -> list[Any]:
    users = [accounts.verifier("anna", mechanism) for mechanism in Mechanism]
    keys = [
        accounts.signing_secret(key, one) for key in accounts.image.keys.values() for one in key.secrets if one.sealed
    ]
    return [*users, *keys]


def rekey(node: TestBroker) -> Any:
    return node.ask(lambda _none, done: node.broker.accounts.rekey(done), None)


@pytest.mark.parametrize("before", [(OLD,), ()])
def test_all_that_was_sealed_before_or_not_at_all_is_sealed_under_the_new_key(before: tuple[bytes, ...]) -> None:
    node = furnished(*before)
    told = opened(node.broker.accounts)
    accounts = sealed_with(node, NEW, *before)
    assert rekey(node) == (2 if before else 1)
    assert rekey(node) == 0
    again = TestBroker(node.disk.crashed())
    accounts = sealed_with(again, NEW)
    assert opened(accounts) == told
    sealed_with(again, OLD)
    with pytest.raises(CannotUnseal):
        opened(accounts)


def test_who_lacks_a_key_is_told_so_and_nothing_is_changed() -> None:
    node = furnished(OLD)
    before = node.broker.accounts.image
    for masters, words in (((), "no master key"), ((NEW,), "add the key that it was sealed under")):
        sealed_with(node, *masters)
        with pytest.raises(Refused, match=words):
            rekey(node)
    assert node.broker.accounts.image is before


def test_a_password_that_is_changed_meanwhile_stays() -> None:
    node = furnished(OLD)
    before = node.broker.accounts.image.users["anna"]
    changed = ChangeUser("anna", {Mechanism.SHA_256: b"new"})
    store = node.broker.accounts._store
    assert node.ask(store.submit, changed).code is Code.NONE
    assert node.ask(store.submit, Reseal(before, before)).code is Code.NONE
    assert node.broker.accounts.image.users["anna"].scram[Mechanism.SHA_256] == b"new"


def test_after_a_crash_anywhere_all_accounts_are_read_and_the_rest_is_done_again() -> None:
    node = furnished(OLD)
    told = opened(node.broker.accounts)
    sealed_with(node, NEW, OLD)
    first = node.disk.op_count
    assert rekey(node) == 2
    counts = []
    for upto in range(first, node.disk.op_count + 1):
        again = TestBroker(node.disk.crashed(upto))
        assert opened(sealed_with(again, NEW, OLD)) == told
        counts.append(rekey(again))
        assert opened(sealed_with(again, NEW)) == told
    assert sorted(set(counts)) == [0, 1, 2], "from all of them to none"

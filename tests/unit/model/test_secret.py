"""A secret is given to whoever asks for it by name, and to nobody else."""

import json
import pickle
import traceback

import msgspec
import pytest

from goqueue.model.secret import HIDDEN, Secret, hides
from goqueue.telemetry.logs import in_words

MARK = "MARKED-7f3"


@pytest.mark.parametrize("secret", [Secret(MARK), Secret(MARK.encode())])
def test_no_way_to_write_a_text_shows_it(secret: Secret[str] | Secret[bytes]) -> None:
    texts = [repr(secret), str(secret), f"{secret}", f"{secret!r:>9}", "%s" % secret, f"{[secret]}"]  # noqa: UP031
    texts += ["{:>20}".format(secret), repr({"a": (secret,)}), in_words("logged in", {"password": secret})]  # noqa: UP032
    assert all(HIDDEN in each for each in texts)
    assert not any(MARK in each for each in texts)
    for encode in (json.dumps, msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins):
        with pytest.raises(TypeError) as refused:
            encode(secret)
        assert MARK not in str(refused.value)
    try:
        raise ValueError(secret)
    except ValueError as error:
        assert MARK not in "".join(traceback.format_exception(error))


def test_it_is_the_same_as_another_and_can_be_sent_to_a_worker() -> None:
    assert (Secret("a") == Secret("a"), Secret("a") == Secret("b"), Secret("a") == Secret(b"a")) == (True, False, False)
    assert Secret("a") != "a"
    assert {Secret("a"): 1}[Secret("a")] == 1
    assert (bool(Secret("")), bool(Secret(b"x"))) == (False, True)
    assert pickle.loads(pickle.dumps(Secret(MARK))).reveal() == MARK


def test_a_class_hides_the_fields_that_it_says() -> None:
    @hides("password")
    class Login(msgspec.Struct):
        name: str
        password: str

    assert repr(Login("alice", MARK)) == f"Login(name='alice', password={HIDDEN})"
    assert msgspec.json.decode(msgspec.json.encode(Login("alice", MARK)))["password"] == MARK
    with pytest.raises(AssertionError):
        hides("pasword")(Login)

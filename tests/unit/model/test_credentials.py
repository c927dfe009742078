"""The same headers mean the same whoever carries them: HTTP, SQS or the metadata of gRPC."""

import base64

import pytest

from goqueue.model.credentials import Credentials, NotAuthenticated
from goqueue.model.listener import IN_PROCESS
from goqueue.model.secret import Secret


def shown(authorization: str, api_key: str = "") -> Credentials:
    return Credentials.of_headers("test", IN_PROCESS, authorization, api_key)


def basic(text: bytes) -> str:
    return f"Basic {base64.b64encode(text).decode()}"


@pytest.mark.parametrize("authorization", ["Bearer gqk_a", " bearer   gqk_a ", "BEARER gqk_a"])
def test_a_bearer_is_a_key_however_its_scheme_is_written(authorization: str) -> None:
    assert shown(authorization).key == Secret("gqk_a")


def test_a_key_in_either_header_goes_before_a_password() -> None:
    assert shown("Bearer gqk_a", "gqk_b").key == Secret("gqk_a")
    assert shown("Bearer ", "gqk_b").key == Secret("gqk_b")
    assert shown("AWS4-HMAC-SHA256 Credential=x", "gqk_b")[3:8] == (Secret("gqk_b"), None, Secret(""), "", "")
    assert shown(basic(b"anna:secret"), "gqk_b").key == Secret("gqk_b")


def test_a_password_may_hold_colons_and_letters_of_any_alphabet() -> None:
    assert shown(basic("änne:a:b:ü".encode())).name_and_password() == ("änne", "a:b:ü")


@pytest.mark.parametrize(
    "text", ["", "Basic", "Basic !!!", "Basic ä", basic(b"anna"), basic(b":secret"), basic(b"\xff:x")]
)
def test_what_is_no_name_and_password_is_refused(text: str) -> None:
    with pytest.raises(NotAuthenticated, match="as Basic has it"):
        shown(text).name_and_password()

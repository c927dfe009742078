from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goqueue.model.errors import InvalidName
from goqueue.model.names import TOPIC_NAME_CHARS_MAX, check_topic_name

ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"


@pytest.mark.parametrize(
    "name", ["a", "orders", "Orders.v2_eu-west", "...", "-", "__delays", "x" * TOPIC_NAME_CHARS_MAX]
)
def test_a_kafka_topic_name_is_accepted(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../escape",
        "a b/../c",
        "a/b",
        "a\\b",
        "/etc",
        "a\0b",
        "a\n",
        "\na",
        " a",
        "ä",
        "\u0661",  # a digit to Python's str.isdigit, not to us
        "x" * (TOPIC_NAME_CHARS_MAX + 1),
    ],
)
def test_a_name_that_could_leave_its_directory_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_topic_name(name)


@given(st.text(max_size=300))
@example("../escape")
def test_an_accepted_name_is_one_path_component(name: str) -> None:
    try:
        check_topic_name(name)
    except InvalidName as error:
        assert len(str(error)) < 600
        assert name in {"", ".", ".."} or len(name) > TOPIC_NAME_CHARS_MAX or not set(name) <= set(ALLOWED)
    else:
        assert PurePosixPath("data", name).parts == ("data", name)
        assert set(name) <= set(ALLOWED)


@given(
    st.text(alphabet=ALLOWED, min_size=1, max_size=TOPIC_NAME_CHARS_MAX).filter(lambda name: name not in {".", ".."})
)
def test_every_name_of_allowed_characters_is_accepted(name: str) -> None:
    check_topic_name(name)

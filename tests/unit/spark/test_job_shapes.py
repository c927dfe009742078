"""What dead letters look like, in a word."""

import pytest

from goqueue.spark.jobs.shapes import shape_of


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (None, "none"),
        (b"", "empty"),
        (b'{"name": "x", "id": 1, "price": 1.5, "ok": true}', "{id:int,name:text,ok:bool,price:float}"),
        (b'{"no": null}', "{no:null}"),
        (b'{"items": [{"id": 1}, {"id": 2}], "by": {"a": {"b": 1}}}', "{by:{a:{…}},items:[{…}]}"),
        (b'[1, "a", 2]', "[int|text]"),
        (b'{"cut off', "broken JSON 1-9 B"),
        (b"three apples", "text 10-99 B"),
        (b"\xff\x00" * 300, "bytes 100-999 B"),
    ],
)
def test_shapes(value: bytes | None, shape: str) -> None:
    assert shape_of(value) == shape


def test_what_is_deep_or_wide_stays_short() -> None:
    assert len(shape_of(b"[" * 100_000)) < 40
    wide = b"{" + b",".join(b'"n%02d":1' % number for number in range(50)) + b"}"
    assert shape_of(wide).endswith(",n11:int,…}")

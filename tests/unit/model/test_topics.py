"""Options of topics: each has its good and its bad values, and an image never changes."""

from dataclasses import FrozenInstanceError, fields, replace
from types import MappingProxyType

import pytest

from goqueue.model.errors import InvalidOption
from goqueue.model.kept_options import INT_MAX, KEPT_OPTIONS, LONG_MAX
from goqueue.model.placements import Placement
from goqueue.model.topics import (
    CHOICES,
    DEFAULTS,
    LABEL_CHARS_MAX,
    LOWEST,
    OPTION_NAMES,
    Image,
    Topic,
    TopicOptions,
    check_together,
    dotted,
    parse_option,
)

NUMBERS = [each.name for each in fields(TopicOptions) if isinstance(getattr(DEFAULTS, each.name), int | float)]
TEXTS = [each.name for each in fields(TopicOptions) if isinstance(getattr(DEFAULTS, each.name), str)]
for name in ("dead_letter_topic", "schema_subject", "table_partition", "table_catalog"):
    TEXTS.remove(name)


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_option_takes_its_choices_and_nothing_else(name: str) -> None:
    good = CHOICES.get(name, ("1,1,1,1,1", "50,25,15,7,3"))
    for text in good:
        assert parse_option(dotted(name), text) == text
    for text in ("", "x", good[0].upper() if good[0].upper() != good[0] else "1,2", f"{good[0]} ", "\0"):
        with pytest.raises(InvalidOption, match=dotted(name)):
            parse_option(dotted(name), text)


def test_a_subject_is_any_name_that_can_be_seen() -> None:
    for text in ("{topic}-value", "orders", "shop/orders.proto", "a b", "x" * 255):
        assert parse_option("schema.subject", text) == text
    for text in ("", "\0", "a\nb", "x" * 256):
        with pytest.raises(InvalidOption, match=r"schema\.subject"):
            parse_option("schema.subject", text)


def test_dead_letters_go_to_a_topic_that_there_may_be() -> None:
    for text in ("", "failed", "a.fifo", "__failed"):
        assert parse_option("dead.letter.topic", text) == text
    for text in ("a b", "..", "@metadata", "x" * 250):
        with pytest.raises(InvalidOption, match=r"dead\.letter\.topic"):
            parse_option("dead.letter.topic", text)


def test_labels_are_kept_with_a_topic_and_are_no_options() -> None:
    topic = Topic("orders", b"0" * 16, 1, {"sqs.tags": '{"team": "a"}', "lease.ms": "5000"})
    assert topic.options(DEFAULTS) == TopicOptions(lease_ms=5000)
    assert parse_option("sqs.tags", "x" * LABEL_CHARS_MAX) == "x" * LABEL_CHARS_MAX
    for name, text in (("sqs.tags", "x" * (LABEL_CHARS_MAX + 1)), ("sqs.other", "x")):
        with pytest.raises(InvalidOption, match=name):
            parse_option(name, text)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_option_takes_what_is_in_its_range_and_nothing_else(name: str) -> None:
    kind = type(getattr(DEFAULTS, name))
    lowest = LOWEST.get(name, 0)
    for text in (str(kind(lowest)), str(getattr(DEFAULTS, name))):
        assert parse_option(dotted(name), text) == kind(text)
    for text in (str(lowest - 1), "", "many", "1e", str(1 << 63), "nan", "inf"):
        with pytest.raises(InvalidOption, match=dotted(name)):
            parse_option(dotted(name), text)


GOOD_AND_BAD = {
    "compression.gzip.level": (("-1", "1", "9"), ("0", "10", "-2", "high")),
    "compression.lz4.level": (("1", "17"), ("0", "18")),
    "compression.zstd.level": (("-131072", "22"), ("23", "")),
    "file.delete.delay.ms": (("0", str(LONG_MAX)), ("-1", str(LONG_MAX + 1))),
    "flush.messages": (("1",), ("0",)),
    "flush.ms": (("0",), ("-1",)),
    "follower.replication.throttled.replicas": (("", "*", "0:1,2:3"), ("0", "0:1;2:3", "a:b")),
    "index.interval.bytes": (("0", str(INT_MAX)), ("-1", str(INT_MAX + 1))),
    "leader.replication.throttled.replicas": (("", "*", "0:1"), ("**", ":")),
    "local.retention.bytes": (("-2", "5"), ("-3",)),
    "local.retention.ms": (("-2", "5"), ("-3",)),
    "preallocate": (("true", "false"), ("yes", "1", "")),
    "remote.log.copy.disable": (("true", "false"), ("x",)),
    "remote.log.delete.on.disable": (("true", "false"), ("x",)),
    "remote.storage.enable": (("true", "false"), ("x",)),
    "segment.index.bytes": (("4",), ("3",)),
    "segment.jitter.ms": (("0",), ("-1", "1.5")),
    "unclean.leader.election.enable": (("true", "false"), ("x",)),
}


@pytest.mark.parametrize("name", list(KEPT_OPTIONS))
def test_an_option_that_is_only_kept_is_checked_by_its_type_as_kafka_does(name: str) -> None:
    good, bad = GOOD_AND_BAD[name]
    for text in (*good, KEPT_OPTIONS[name].default):
        assert parse_option(name, text) == text
    for text in bad:
        with pytest.raises(InvalidOption, match=name):
            parse_option(name, text)
    topic = Topic("orders", b"0" * 16, 1, {name: good[0], "lease.ms": "5000"})
    assert topic.options(DEFAULTS) == TopicOptions(lease_ms=5000)


def test_a_switch_and_a_number_are_kept_as_kafka_shows_them() -> None:
    assert parse_option("preallocate", " TRUE ") == "true"
    assert parse_option("flush.ms", " 5 ") == "5"


def test_every_option_has_a_dotted_name_and_an_unknown_one_is_refused() -> None:
    assert list(OPTION_NAMES) == [dotted(each.name) for each in fields(TopicOptions)]
    for name in ("retention_ms", "retention", "", "cleanup.policy "):
        with pytest.raises(InvalidOption, match="unknown option"):
            parse_option(name, "1")


@pytest.mark.parametrize("text", ["compact,delete", "delete,compact", "compact, delete", "delete, compact"])
def test_both_cleanups_may_be_named_in_any_order(text: str) -> None:
    assert parse_option("cleanup.policy", text) == "compact,delete"


@pytest.mark.parametrize("text", ["1,2,3,4", "1,2,3,4,5,6", "1,2,3,4,0", "1,2,3,4,-5", "a,b,c,d,e", "1,2,3,4,²"])
def test_lane_weights_are_five_numbers_over_zero(text: str) -> None:
    with pytest.raises(InvalidOption):
        parse_option("lane.weights", text)


def test_a_ratio_is_a_share() -> None:
    assert parse_option("min.cleanable.dirty.ratio", "1") == 1.0
    with pytest.raises(InvalidOption):
        parse_option("min.cleanable.dirty.ratio", "1.5")


def test_what_was_set_wins_over_the_defaults_of_the_node() -> None:
    topic = Topic("orders", b"i" * 16, 1, {"retention.ms": "5"})
    defaults = replace(DEFAULTS, retention_ms=9, lease_ms=10)
    assert topic.options(defaults) == replace(DEFAULTS, retention_ms=5, lease_ms=10)


def test_an_image_shows_one_moment() -> None:
    topic = Topic("orders", b"i" * 16, 1)
    image = Image(1, MappingProxyType({"orders": topic}))
    with pytest.raises(FrozenInstanceError):
        image.revision = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        image.topics["x"] = topic  # type: ignore[index]
    assert image.by_id(topic.id) is topic
    assert image.by_id(b"other") is None


def _placed(*epochs: int) -> tuple[Placement, ...]:
    return tuple(Placement(1, 10, epoch, (1, 2), (1, 2)) for epoch in epochs)


def test_a_topic_knows_which_of_its_partitions_are_placed_otherwise() -> None:
    first, second, third = _placed(0, 1, 2)
    before = Topic("orders", b"i" * 16, 3, placements=(first, second, third))
    assert before.placed_anew(None) == [0, 1, 2]
    assert before.placed_anew(before) == []
    moved = replace(before, placements=(first, second._replace(epoch=5), third))
    assert moved.placed_anew(before) == [1]
    grown = replace(moved, partitions=5, placements=(*moved.placements, *_placed(0, 0)))
    assert grown.placed_anew(before) == [1, 3, 4]
    made_again = replace(before, id=b"j" * 16)
    assert made_again.placed_anew(before) == [0, 1, 2]


def test_an_image_knows_which_partitions_are_placed_otherwise_of_ledgers_too() -> None:
    orders = Topic("orders", b"i" * 16, 2, placements=_placed(0, 0))
    others = Topic("others", b"o" * 16, 1, placements=_placed(0))
    groups = Topic("@groups", b"g" * 16, 1, placements=_placed(0))
    before = Image().replaced(1, {"orders": orders, "others": others, "@groups": groups})
    assert list(before.placed_anew(before)) == []
    assert sorted(before.placed_anew(Image())) == [("@groups", 0), ("orders", 0), ("orders", 1), ("others", 0)]
    elected = replace(orders, placements=(orders.placements[0], *_placed(1)))
    led = replace(groups, placements=_placed(1))
    after = before.replaced(2, {"orders": elected, "@groups": led})
    assert sorted(after.placed_anew(before)) == [("@groups", 0), ("orders", 1)]


def test_a_topic_has_other_options_when_one_was_set_or_it_has_more_copies() -> None:
    topic = Topic("orders", b"i" * 16, 1, MappingProxyType({"retention.ms": "5"}), _placed(0))
    assert not replace(topic, placements=_placed(1)).has_other_options(topic)
    assert not replace(topic, overrides=MappingProxyType({"retention.ms": "5"})).has_other_options(topic)
    assert replace(topic, overrides=MappingProxyType({"retention.ms": "6"})).has_other_options(topic)
    assert replace(topic, replication_factor=3).has_other_options(topic)


@pytest.mark.parametrize(
    ("option", "value", "is_plain"),
    [
        ("schema_validation", "reject", False),
        ("schema_validation", "dead-letter", False),
        ("cleanup_policy", "compact,delete", False),
        ("delay_order", "hold_key", False),
        ("message_timestamp_after_max_ms", 5, False),
        ("message_timestamp_before_max_ms", 5, False),
        ("min_insync_replicas", 2, True),
        ("durability", "os", True),
    ],
)
def test_a_topic_is_plain_if_none_of_its_options_is_about_single_records(
    option: str, value: object, is_plain: bool
) -> None:
    assert DEFAULTS.is_plain
    assert replace(DEFAULTS, **{option: value}).is_plain is is_plain  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["default", "none", "day(_timestamp)", "day(_timestamp), bucket(16, _key)", "region", "truncate(3,name)"]
)
def test_a_table_is_divided_by_parts(text: str) -> None:
    assert parse_option("table.partition", text) == text.replace(", ", ",")


NINE = ",".join(f"c{number}" for number in range(9))


@pytest.mark.parametrize(
    "text", ["", "week(_timestamp", "bucket(_key)", "bucket(0,_key)", "day(a),a", "a;b", ",", "1x", "a,b,", NINE]
)
def test_a_partition_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"table\.partition"):
        parse_option("table.partition", text)


def test_rows_of_one_key_stay_in_one_partition() -> None:
    check_together({"table.mode": "upsert"})
    check_together({"table.mode": "upsert", "table.partition": "bucket(4,_key)"})
    check_together({"table.mode": "append", "table.partition": "day(_timestamp)"})
    with pytest.raises(InvalidOption, match=r"by _timestamp, but with table\.mode=upsert"):
        check_together({"table.mode": "upsert", "table.partition": "bucket(4,_key),day(_timestamp)"})


def test_a_catalog_is_a_name() -> None:
    assert parse_option("table.catalog", "lake-1") == "lake-1"
    with pytest.raises(InvalidOption, match=r"table\.catalog"):
        parse_option("table.catalog", "https://user:password@catalog")

"""The table of what is implemented, beside the plan and beside kio."""

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.schema.response_header.v1.header import ResponseHeader as FlexibleResponseHeader

from goqueue.wire.kafka.apis import APIS
from goqueue.wire.kafka.schema import Span

PLAN = {
    0: (3, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (1, 1),
    18: (0, 5),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 6),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    35: (1, 5),
    37: (0, 3),
    42: (0, 3),
    36: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    55: (0, 2),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
}


def test_the_versions_are_those_of_the_plan() -> None:
    assert {key: tuple(api.versions) for key, api in APIS.items()} == PLAN
    assert all(key == api.key for key, api in APIS.items())


def test_only_two_advertise_more_than_they_implement() -> None:
    """librdkafka 2.0 turns compression off for a broker that does not claim the oldest Produce, and does not log in to
    one that does not claim the oldest SaslHandshake."""
    differing = {key: api.advertised for key, api in APIS.items() if api.advertised != api.versions}
    assert differing == {0: Span(0, 13), 17: Span(0, 1)}


def test_keys_names_and_flexible_versions_are_the_protocols() -> None:
    for key, api in APIS.items():
        name = api_key_map[key]
        assert name.replace("_", "") == api.name.lower()
        for version in range(api.versions.first, api.versions.last + 1):
            if version not in schema_name_map[name]:
                continue
            request, response = load_request_schema(key, version), load_response_schema(key, version)
            assert request.__flexible__ == response.__flexible__ == api.is_flexible(version)
            has_tags = response.__header_schema__ is FlexibleResponseHeader
            assert has_tags == api.has_flexible_response_header(version)

"""What a store asks of etcd, and what etcd tells a store: the metadata as entries, compares and puts."""

from collections.abc import Sequence

from goqueue.cluster.etcd.keys import MetadataUnreadable, key_of, key_path
from goqueue.cluster.etcd.port import KeyCompare, KeyPut, KeyValue
from goqueue.cluster.etcd.values import decode_value, encode_value
from goqueue.model.metadata import Compare, CompareGone, Event, Put


def decode_entry(prefix: str, entry: KeyValue) -> Event | None:
    """None: nothing that is known here."""
    try:
        key = key_of(entry.key[len(prefix.encode()) :].decode())
        if key is None:
            return None
        value = None if entry.value is None else decode_value(key, entry)
    except ValueError as error:  # not text, not a number, not in hex
        raise MetadataUnreadable(f"the value of {entry.key!r} in etcd is damaged: {error}") from None
    return Event(key, value, entry.mod_revision)


def encode_compares(prefix: str, compares: Sequence[Compare | CompareGone]) -> list[KeyCompare]:
    return [
        KeyCompare((prefix + key_path(each.key)).encode(), each.revision, isinstance(each, Compare))
        for each in compares
    ]


def encode_puts(prefix: str, puts: Sequence[Put]) -> list[KeyPut]:
    return [
        KeyPut((prefix + key_path(put.key)).encode(), None if put.value is None else encode_value(put.value), put.lease)
        for put in puts
    ]

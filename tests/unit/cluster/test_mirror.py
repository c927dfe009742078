"""What a node knows of the metadata never goes back, however late an answer of etcd is."""

from goqueue.cluster.mirror import Mirror
from goqueue.model.metadata import Event, Listing, RemovedKey, RemovedValue
from goqueue.model.partition_limits import PartitionLimits

ID = b"i" * 16


def there(node: int, revision: int) -> Event:
    return Event(RemovedKey(ID, node), RemovedValue(0), revision)


def gone(node: int, revision: int) -> Event:
    return Event(RemovedKey(ID, node), None, revision)


def test_a_listing_that_was_overtaken_by_changes_takes_none_of_them_back() -> None:
    """It was asked for beside the watch, and came after what had changed since. The watch does not tell that again."""
    mirror = Mirror(PartitionLimits(), 0)
    mirror.listed(Listing(5, [there(1, 3), there(2, 4)]))
    assert mirror.changed([gone(1, 7), there(3, 8)]) == [gone(1, 7), there(3, 8)]
    assert mirror.listed(Listing(6, [there(1, 3), there(2, 4)])) == []
    assert mirror.removed(ID) == {2: 4, 3: 8}
    assert mirror.revision == 8


def test_a_listing_that_has_more_is_taken_in_and_so_is_the_absence_in_it() -> None:
    mirror = Mirror(PartitionLimits(), 0)
    mirror.listed(Listing(5, [there(1, 3)]))
    mirror.changed([there(2, 7)])
    assert mirror.listed(Listing(9, [there(2, 7), there(3, 9)])) == [gone(1, 9), there(3, 9)]
    assert mirror.changed([there(4, 8)]) == []
    assert mirror.removed(ID) == {2: 7, 3: 9}

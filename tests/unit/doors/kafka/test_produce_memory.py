"""What a Produce request that waits for copies keeps in memory: not its records, which are in the log."""

import gc
import os
from dataclasses import replace

import pytest

from goqueue.replica.roles import MYSELF, Reign
from tests.brokers import data
from tests.unit.doors.kafka.test_door_fuzz import House
from tests.unit.doors.kafka.test_produce_run import ask, learned, the_general_way

SIZE = 900_000
REQUESTS = 8


def frames_kept() -> int:
    gc.collect()
    views = [each for each in gc.get_objects() if isinstance(each, memoryview)]
    return len({id(each.obj) for each in views if isinstance(each.obj, bytearray) and len(each.obj) > SIZE})


@pytest.mark.parametrize("is_general", [True, False])
def test_requests_that_wait_for_copies_keep_no_records(*, is_general: bool) -> None:
    made = House()
    guest = learned(made)
    replica = made.broker.broker.topics.replica("orders", 0)
    replica.options = replace(replica.options, min_insync_replicas=2)
    replica.lead(Reign(replica.leader_epoch + 1, isr=(MYSELF, 7), replicas=2))
    records = bytes(data(os.urandom(SIZE)))
    before = frames_kept()
    with the_general_way(is_general):
        for number in range(REQUESTS):
            guest.send(ask(number, records=records))
            made.broker.clock.run()
        made.broker.commit()
    assert guest.replies() == []
    assert replica.end_offset - replica.high_watermark >= REQUESTS - 1
    assert frames_kept() - before <= 2  # what the connection reads into

"""What a Fetch request costs, in lines of Python: the way that most consumers take must not grow unnoticed."""

from tests.steps import count_steps
from tests.unit.doors.kafka.fetch_readers import Reader, values
from tests.unit.doors.kafka.share_members import House
from tests.unit.doors.kafka.transports import feed

WITHOUT_SESSION = -1
STEPS_MAX = 560


def test_a_fetch_of_one_partition_that_finds_something_costs_few_steps() -> None:
    house = House()
    house.publish(b"a")
    reader = Reader(house)
    fetch = {"max_wait_ms": 500, "session_epoch": WITHOUT_SESSION}
    assert reader.told({0: 0}, **fetch) == {0: [b"a"]}  # what was read first is prepared for what comes next
    frame = reader.encode(reader.request({0: 0}, **fetch), reader.version)
    assert count_steps(lambda: feed(reader._connection, frame)) <= STEPS_MAX
    (response,) = reader.waited()
    assert values(response) == {0: [b"a"]}

"""Whoever may lease a message may settle it by its place."""

from tests.unit.doors.http.session_door import Door, in_door
from tests.unit.doors.http.test_schedule_owners import basic


@in_door
async def test_the_rights_on_its_topic_and_its_group_are_enough(door: Door) -> None:
    await door.as_admin("POST", "/topics", name="orders", num_partitions=1)
    await door.as_admin("PATCH", "/admin/users/alice", roles=[])
    rule = {"principal": "User:alice", "operation": "read", "effect": "allow"}
    for kind, name in (("topic", "orders"), ("group", "packers")):
        await door.as_admin("POST", "/admin/acls", **rule, resource_type=kind, resource_name=name)
    await door.as_admin("POST", "/topics/orders/messages", messages=[{"value": "x"}])
    wanted = {"topics": ["orders"], "max_messages": 1}
    assert (await door.ask("POST", "/groups/packers/leases", basic("alice"), wanted)).status_code == 200
    place = {"topic": "orders", "partition": 0, "offset": 0, "action": "ack"}
    assert (await door.ask("POST", "/groups/packers/settle", basic("alice"), place)).status_code == 200
    assert (await door.ask("POST", "/groups/others/settle", basic("alice"), place)).status_code == 403

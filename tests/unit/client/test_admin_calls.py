"""What `Admin` says of messages, leases, schemas, traces and the node is what the operations of the table take."""

from goqueue.client import Admin
from goqueue.testing import MemoryBroker
from tests.unit.client.test_admin import served
from tests.unit.testing.loops import in_loop

SCHEMA = '{"type":"string"}'


async def _topic(admin: Admin) -> None:
    await admin.create_topic("orders", 1)
    results = await admin.publish("orders", [{"value": "a", "key": "k"}, {"value": "b"}, {"value": "c"}])
    assert [(each.partition, each.offset) for each in results] == [(0, 0), (0, 1), (0, 2)]


async def _rejected(admin: Admin) -> None:
    received = await admin.receive("orders", "packers", limit=3, lease="1m", consumer="me", partition=0)
    settled = await admin.settle([each.receipt_handle for each in received], "reject", reason="no")
    assert [each.success for each in settled] == [True] * 3


@in_loop
async def test_messages_are_published_read_received_and_settled() -> None:
    async with served() as (admin, _):
        await _topic(admin)
        page = await admin.read("orders", 0, offset=1, limit=1)
        assert [each.value for each in page.messages] == ["b"]
        await _rejected(admin)
        assert await admin.dead_letter_topic("orders") == "orders.dlq"
        assert (await admin.dead_letter("orders", 0, 1)).value == "b"
        trimmed = await admin.trim("orders", 2, partition=0, dry_run=True)
        assert [(each.before, each.after) for each in trimmed.partitions] == [(0, 2)]
        assert [each.partition for each in await admin.partitions("orders")] == [0]
        assert (await admin.group("packers")).id == "packers"


@in_loop
async def test_leases_are_taken_extended_listed_and_finished() -> None:
    async with served() as (admin, _):
        await _topic(admin)
        (lease,) = await admin.take_leases("packers", ["orders"], limit=2, lease="1m", consumer="me", start="earliest")
        assert [run[:2] for run in lease.runs] == [[0, 1]]
        assert await admin.extend_leases([lease.receipt], "2m") == [2]
        assert [each.messages async for each in admin.leases("packers", "orders")] == [2]
        assert await admin.finish_leases([{"receipt": lease.receipt, "runs": lease.runs}]) == [2]
        assert [each.messages async for each in admin.leases()] == []


async def _delay(b: MemoryBroker) -> None:
    for value in (b"later", b"much later"):
        await b.publish("orders", value, delay="1h")


@in_loop
async def test_all_that_waits_is_listed() -> None:
    async with served() as (admin, b):
        await admin.create_topic("orders", 1)
        await _delay(b)
        assert [each.partition async for each in admin.all_delayed("orders")] == [0, 0]


@in_loop
async def test_schemas_are_registered_checked_found_and_deleted() -> None:
    async with served() as (admin, _):
        assert (await admin.register_schema("orders", SCHEMA, "JSON")).id == 1
        assert await admin.subjects() == ["orders"]
        assert await admin.schema_versions("orders") == [1]
        assert [each.subject for each in await admin.schemas()] == ["orders"]
        assert (await admin.schema("orders")).version == 1
        assert (await admin.schema("orders", 1, serialized=True)).schema_type == "JSON"
        assert (await admin.schema_by_id(1)).schema == SCHEMA
        assert (await admin.check_schema("orders", SCHEMA, "JSON")).is_compatible
        assert not (await admin.check_schema("orders", '{"type": "integer"}', "JSON", version=1)).is_compatible
        assert await admin.set_compatibility("FULL") == "FULL"
        assert await admin.set_compatibility("NONE", "orders") == "NONE"
        assert (await admin.compatibility(), await admin.compatibility("orders")) == ("FULL", "NONE")
        assert await admin.compatibility("bills") == "FULL", "where a subject has no level of its own"
        assert await admin.delete_schema("orders", 1) == [1]
        await admin.register_schema("orders", SCHEMA, "JSON")
        await admin.delete_schema("orders")
        assert sorted(await admin.delete_schema("orders", permanent=True)) == [1, 2]


@in_loop
async def test_traces_are_listed_searched_and_explained() -> None:
    async with served() as (admin, _):
        await _topic(admin)
        await _rejected(admin)
        where = await admin.why("orders", 0, 0)
        assert (await admin.why_key("orders", "k")).offset == 0
        assert where.trace_id in [each.trace_id for each in await admin.traces(10)]
        assert (await admin.trace(where.trace_id)).trace_id == where.trace_id
        found = await admin.search_traces(topic="orders", partition=0, group="packers", limit=10, spans=True)
        assert {each.offset for each in found} == {0, 1, 2}
        assert [each.offset async for each in admin.all_traces("orders", 0, group="packers")] == [0, 1, 2]
        assert (await admin.stored_steps(topic="orders", cursor=0)).steps is not None
        assert (await admin.trace_stats()).enabled


@in_loop
async def test_the_node_tells_how_it_is() -> None:
    async with served() as (admin, _):
        assert (await admin.is_ready()).checks
        assert (await admin.stats()).topics == 0
        assert await admin.version()

"""Every operation of every API, asked by one tenant on a node that has two more: nothing of theirs is told or changed,
and names come back as the tenant knows them. The tables of the APIs are walked over, so that a new operation that does
not tell tenants apart is found here; what is not open to tenants is refused.
"""

import asyncio
import re
from typing import Any

from grpc import aio

from goqueue.broker.gate import Gate
from goqueue.broker.metrics.of_topics import Names
from goqueue.broker.metrics.page import is_other
from goqueue.doors.grpc.door import GrpcDoor
from goqueue.doors.http.routes.table import ROUTES
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.machines.controller_commands import CreateTopic
from goqueue.model.tenancy import Tenant
from goqueue.testing import MemoryBroker, broker
from tests.unit.doors.grpc.test_garbage import METHODS, Context, Details
from tests.unit.doors.grpc.test_garbage import sample as grpc_sample
from tests.unit.doors.http.bare import TOPIC, Asked, Bare, samples
from tests.unit.doors.http.test_garbage import sqs
from tests.unit.doors.kafka.every_api import OFFERED, sample
from tests.unit.doors.kafka.test_door_fuzz import Guest, House, frame
from tests.unit.testing.loops import turn

ACME = ((b"x-goqueue-tenant", b"acme"),)
FOREIGN = ("treasure", "hoard", "of default", "beta~", "acme~")
"""Names and values of others; and names of one's own as nobody but the node knows them."""
SAMPLES = samples()


async def furnished(b: MemoryBroker) -> Bare:
    """The same names everywhere, and some that only others have."""
    bare = Bare(b)
    for tenant in ("acme", "beta"):
        made = await bare.ask(Asked("POST", "/admin/tenants", {"id": tenant, "name": tenant}))
        assert made.status == 201
    for of, headers in (("default", ()), ("beta", ((b"x-goqueue-tenant", b"beta"),)), ("acme", ACME)):
        for topic in (TOPIC,) if of == "acme" else (TOPIC, "treasure"):
            assert (await bare.ask(Asked("POST", "/topics", {"name": topic}), headers=headers)).status == 201
            published = Asked("POST", f"/topics/{topic}/messages", {"messages": [{"value": f"of {of}"}]})
            assert (await bare.ask(published, headers=headers)).status == 200
        if of != "acme":
            await bare.ask(Asked("PUT", "/groups/hoard/options", {"lease.ms": "1000"}), headers=headers)
    return bare


def of_others(b: MemoryBroker) -> Any:
    """All that the other two tenants have."""
    topics = {name: each for name, each in b.broker.topics.image.topics.items() if not name.startswith("acme~")}
    ends = {
        name: [b.broker.topics.end_offset(name, one) for one in range(each.partitions)] for name, each in topics.items()
    }
    groups = [name for name in b.broker.groups.page(None, 100) if not name.startswith("acme~")]
    queues = [name for name in b.broker.queues.page(None, 100) if not name.startswith("acme~")]
    return topics, ends, groups, queues, b.broker.schemas.subjects()


def leaked(text: str) -> list[str]:
    return [word for word in FOREIGN if word in text]


async def asked(bare: Bare, one: Asked, headers: Any) -> tuple[int, str]:
    waiting = asyncio.ensure_future(bare.ask(one, headers=headers))
    for _ in range(30):
        await turn()
    if not waiting.done():
        waiting.cancel()
    answered = await waiting
    return answered.status, answered.body.decode()


def test_http_and_sqs_tell_a_tenant_of_its_own_alone() -> None:
    async def walk() -> list[Any]:
        found = []
        async with broker() as b:
            bare = await furnished(b)
            before = of_others(b)
            wanted: list[tuple[str, Asked, Any]] = [
                (route.operation.name, SAMPLES[route.operation.name], ()) for route in ROUTES
            ]
            wanted += [(f"sqs {action}", *sqs(action)) for action in ACTIONS]
            for name, one, headers in wanted:
                status, body = await asked(bare, one, (*headers, *ACME))
                if status == 500 or leaked(body):
                    found.append((name, status, leaked(body), body[:200]))
                assert [subject for subject in b.broker.schemas.subjects() if not subject.startswith("acme~")] == []
            assert of_others(b)[:4] == before[:4]
        return found

    assert asyncio.run(walk()) == []


class Called(Context):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def invocation_metadata(self) -> Any:
        return (("goqueue-tenant", "acme"),)

    async def write(self, message: bytes) -> None:
        self.told.append(message)

    async def abort(self, *why: Any) -> None:
        self.told.append(why)
        raise aio.AbortError


def test_grpc_tells_a_tenant_of_its_own_alone() -> None:
    async def walk() -> list[Any]:
        found = []
        async with broker() as b:
            await furnished(b)
            before = of_others(b)
            door = GrpcDoor(Gate(b.broker))
            for method in METHODS:
                (served,) = (one for service, one in door._services() if service is method.containing_service)
                handlers = door._serving.handler_of(method.containing_service, served)
                handler: Any = handlers.service(Details(f"/{method.containing_service.full_name}/{method.name}"))
                behaviour = handler.unary_unary or handler.unary_stream or handler.stream_stream
                context = Called()
                data = grpc_sample(method.input_type, is_filled=True).SerializeToString()
                task = asyncio.ensure_future(behaviour(data, context))
                for _ in range(30):
                    await turn()
                task.cancel()
                done, _ = await asyncio.wait((task,))
                context.told += [each.result() for each in done if not each.cancelled() and not each.exception()]
                if leaked(str(context.told)) or "INTERNAL" in str(context.told):
                    found.append((method.full_name, str(context.told)[:200]))
            assert of_others(b) == before
        return found

    assert asyncio.run(walk()) == []


def test_kafka_tells_a_tenant_of_its_own_alone() -> None:
    found = []
    for api in OFFERED:
        house = House()
        node = house.broker
        node.create("treasure", 1)
        for tenant in ("acme", "beta"):
            node.broker.tenants.create(Tenant(tenant, tenant), lambda _reply: None)
            node.commit()
        for number, name in enumerate(("acme~orders", "beta~treasure")):
            node.broker.topics.submit(CreateTopic(name, bytes([number + 1]) * 16, 1), lambda _reply: None)
            node.commit()
        before = dict(node.broker.topics.image.topics)
        gate = Gate(node.broker)
        house.door = KafkaDoor(gate)
        for version in {api.versions.first, api.advertised.last}:
            guest = Guest(house)
            house.door._set_access(guest._connection, gate.trusted_in("acme"))
            guest.send(frame(sample(api.request, version, share_session_epoch=1), version))
            node.commit()
            house.settle()
            told = b"".join(bytes(each) for each in guest.replies()).decode("latin-1")
            if leaked(told) or not told:
                found.append((api.name, version, leaked(told)))
        after = {name: each for name, each in node.broker.topics.image.topics.items() if not name.startswith("acme~")}
        if after != {name: each for name, each in before.items() if not name.startswith("acme~")}:
            found.append((api.name, 0, ["changed"]))
    assert found == []


def test_numbers_receipts_and_traces_of_another_tenant_are_those_of_nobody() -> None:
    """They are guessed or found somewhere: what comes back is what comes back for one that never was."""

    async def scenario() -> None:
        async with broker() as b:
            bare = await furnished(b)
            beta = ((b"x-goqueue-tenant", b"beta"),)

            async def told(method: str, path: str, body: Any, headers: Any = ACME) -> tuple[int, bytes]:
                answered = await bare.ask(Asked(method, path, body), headers=headers)
                return answered.status, re.sub(rb"\d\d\d+", b"", answered.body)

            init = await bare.ask(Asked("POST", "/producers/init", {"transactional_id": "shop"}), headers=beta)
            producer = init.json
            assert (await told("POST", "/transactions/begin", producer, beta))[0] == 200
            nobody = {"producer_id": 123_456, "epoch": 0}
            for step, more in (
                ("begin", {}),
                ("commit", {}),
                ("abort", {}),
                ("add-partition", {"topic": TOPIC, "partition": 0}),
                ("publish", {"topic": TOPIC, "value": "mine"}),
            ):
                path = f"/transactions/{step}"
                theirs = await told("POST", path, {**producer, **more})
                number, words = producer["producer_id"], b"producer 123456"
                missing = await bare.ask(Asked("POST", path, {**nobody, **more}), headers=ACME)
                assert missing.status == theirs[0] == 404
                expected = missing.body.replace(words, b"producer %d" % number)
                assert theirs[1] == re.sub(rb"\d\d\d+", b"", expected)
            leased = await bare.ask(Asked("POST", "/groups/hoard/leases", {"topics": ["treasure"]}), headers=beta)
            receipt = leased.json["leases"][0]["receipt"]
            for path, body in (
                ("/leases/extend", lambda one: {"receipts": [one], "timeout": "1m"}),
                ("/leases/finish", lambda one: {"leases": [{"receipt": one}]}),
            ):
                forged = receipt[:-2] + ("AA" if receipt[-2:] != "AA" else "BB")
                assert await told("POST", path, body(receipt)) == await told("POST", path, body(forged))
            held = await bare.ask(Asked("GET", "/leases"), headers=beta)
            assert held.json["count"] == 1
            found = await bare.ask(Asked("GET", "/traces?topic=treasure"), headers=beta)
            trace_id = found.json["traces"][0]["trace_id"]
            assert (await told("GET", f"/traces/{trace_id}", None, beta))[0] == 200
            assert (await told("GET", f"/traces/{trace_id}", None))[0] == 404
            assert (await told("GET", f"/traces?trace_id={trace_id}", None)) == (200, b'{"traces":[],"total":0}')

    asyncio.run(scenario())


def test_a_schedule_of_one_tenant_is_not_that_of_another_with_its_name() -> None:
    async def scenario() -> None:
        async with broker() as b:
            bare = await furnished(b)
            wanted = {"topic": TOPIC, "cron": "0 * * * *", "headers": {"acme~x": "1"}}
            for of, headers in (("default", ()), ("acme", ACME)):
                asked = Asked("PUT", "/schedules/hourly", {**wanted, "value": f"hourly {of}"})
                made = await bare.ask(asked, headers=headers)
                assert (made.status, made.json["headers"]) == (200, {"acme~x": "1"})
            assert (await bare.ask(Asked("DELETE", "/schedules/hourly"))).status == 200
            left = await bare.ask(Asked("GET", "/schedules"), headers=ACME)
            assert [(each["name"], each["topic"]) for each in left.json["schedules"]] == [("hourly", TOPIC)]
            await b.advance("1h")
            values = {}
            for of, headers in (("default", ()), ("acme", ACME)):
                read = await bare.ask(Asked("GET", f"/topics/{TOPIC}/partitions/0/messages"), headers=headers)
                values[of] = [each["value"] for each in read.json["messages"] if "hourly" in each["value"]]
            assert values == {"default": [], "acme": ["hourly acme"]}
            refused = await bare.ask(Asked("PUT", "/schedules/acme~mine", {**wanted, "value": "", "headers": {}}))
            assert refused.status == 403

    asyncio.run(scenario())


def test_a_tenant_follows_its_own_topic_and_is_woken_by_its_own_records() -> None:
    async def scenario() -> bytes:
        async with broker() as b:
            bare = await furnished(b)
            following = asyncio.ensure_future(bare.ask(Asked("GET", f"/topics/{TOPIC}/follow"), headers=ACME))
            await b.advance("1s")
            for headers, value in ((), "late of default"), (ACME, "late of acme"):
                published = Asked("POST", f"/topics/{TOPIC}/messages", {"messages": [{"value": value}]})
                assert (await bare.ask(published, headers=headers)).status == 200
            assert (await bare.ask(Asked("DELETE", f"/topics/{TOPIC}"), headers=ACME)).status in (200, 204)
            await b.advance("1s")
            assert following.done()  # its topic is gone
            return following.result().body

    told = asyncio.run(scenario())
    assert (told.count(b"late of acme"), told.count(b"of default"), told.count(b"event: end")) == (1, 0, 1)


def test_a_schema_of_another_tenant_is_not_read_by_its_number_nor_found_by_its_text() -> None:
    async def scenario() -> None:
        async with broker() as b:
            bare = await furnished(b)
            beta, path = ((b"x-goqueue-tenant", b"beta"),), "/subjects/orders-value/versions"
            ids: dict[int, str] = {}
            for tenant, headers in (("beta", beta), ("acme", ACME), ("default", ())):
                for _ in range(2):  # the second time it is the same
                    made = await bare.ask(Asked("POST", path, {"schema": '"string"'}), headers=headers)
                    ids.setdefault(made.json["id"], tenant)
            assert sorted(ids.values()) == ["acme", "beta", "default"]
            for number, owner in ids.items():
                for more in ("", "/schema", "/subjects", "/versions", "?format=resolved"):
                    for tenant, headers in (("beta", beta), ("acme", ACME)):
                        read = await bare.ask(Asked("GET", f"/schemas/ids/{number}{more}"), headers=headers)
                        never = await bare.ask(Asked("GET", f"/schemas/ids/99{more}"), headers=headers)
                        assert (read.status == 200) is (owner == tenant), (more, owner, tenant, read)
                        if owner != tenant:
                            assert read.body.replace(b"Schema %d" % number, b"") == never.body.replace(
                                b"Schema 99", b""
                            )
            last = (1 << 31) - 1
            mode = await bare.ask(Asked("PUT", "/mode?force=true", {"mode": "IMPORT"}), headers=ACME)
            assert mode.status == 200
            chosen = {"schema": '"int"', "id": last, "version": 7}
            refused = await bare.ask(Asked("POST", path, chosen), headers=ACME)
            assert (refused.status, b"does not choose" in refused.body) == (422, True)
            other = await bare.ask(Asked("POST", "/subjects/jobs-value/versions", {"schema": '"int"'}), headers=beta)
            assert (other.status, other.json["id"]) == (200, len(ids) + 1)

    asyncio.run(scenario())


def test_metrics_have_a_label_for_tenants_and_a_tenant_is_told_its_own() -> None:
    """An empty label is as good as none, to Prometheus: the series of `default` go on when the first tenant is made."""

    async def scenario() -> None:
        async with broker() as b:
            bare = await furnished(b)
            whole = (await bare.ask(Asked("GET", "/metrics"))).body.decode()
            own = (await bare.ask(Asked("GET", "/metrics"), headers=ACME)).body.decode()
            name = "goqueue_broker_messages_published_total"
            for tenant in ("", "acme", "beta"):
                assert f'{name}{{topic="{TOPIC}",tenant="{tenant}",node_id="1"}} 1' in whole.splitlines()
            lines = [line for line in own.splitlines() if not line.startswith("#")]
            assert f'{name}{{topic="{TOPIC}",tenant="acme",node_id="1"}} 1' in lines
            assert all('tenant="acme"' in line for line in lines)
            assert [word for word in (*FOREIGN, "process_") if word in own] == []
            assert "acme~" not in whole

    asyncio.run(scenario())


def test_topics_of_one_tenant_do_not_push_those_of_others_into_other() -> None:
    names = Names(1)
    names.begin({"acme": None, "beta": None})
    told = [names.topic(each) for each in ("acme~a", "acme~b", "acme~c", "beta~a", "a", "b")]
    assert told == [("acme~a",), ("acme~_other",), ("acme~_other",), ("beta~a",), ("a",), ("_other",)]
    assert [is_other(each) for each in told] == [False, True, True, False, False, True]
    names.end()
    names.topic("acme~b")
    names.end()
    assert names.topic("acme~b") == ("acme~b",)


def test_a_tenant_with_something_goes_by_force_alone() -> None:
    async def scenario() -> None:
        async with broker() as b:
            bare = await furnished(b)
            for path, status in (("default", 403), ("nobody", 404)):
                assert (await bare.ask(Asked("DELETE", f"/admin/tenants/{path}"))).status == status
            refused = await bare.ask(Asked("DELETE", "/admin/tenants/acme"))
            assert (refused.status, b"TENANT_NOT_EMPTY" in refused.body) == (409, True)
            assert f"topics {TOPIC}".encode() in refused.body
            going = await bare.ask(Asked("DELETE", "/admin/tenants/acme?force=true"))
            assert (going.status, going.body) == (202, b'{"tenant_id":"acme","status":"deleting"}')
            assert (await bare.ask(Asked("GET", "/topics"), headers=ACME)).status == 404
            await b.advance("1s")
            assert (await bare.ask(Asked("GET", "/admin/tenants/acme"))).status == 404
            assert {*b.broker.topics.image.topics} == {TOPIC, "treasure", f"beta~{TOPIC}", "beta~treasure"}

    asyncio.run(scenario())


def test_a_tenant_beyond_its_quotas_is_told_so_and_others_go_on() -> None:
    async def scenario() -> None:
        async with broker() as b:
            bare = await furnished(b)
            path = "/admin/tenants/acme/quotas"
            for bad in ({"max_topics": -1}, {"max_topics": "x"}, {"publish_bytes_rate_limit": 0}, {"max_gold": 1}):
                assert (await bare.ask(Asked("PUT", path, bad))).status == 400
            assert (await bare.ask(Asked("PUT", "/admin/tenants/default/quotas", {"max_topics": 1}))).status == 403
            quotas = {"max_topics": 1, "publish_bytes_rate_limit": 1000}
            assert (await bare.ask(Asked("PUT", path, quotas))).status == 200
            assert (await bare.ask(Asked("PUT", path, quotas), headers=ACME)).status == 403
            shown = await bare.ask(Asked("GET", path))
            assert (b'"max_topics":1' in shown.body, b'"max_total_partitions":null' in shown.body) == (True, True)
            refused = await bare.ask(Asked("POST", "/topics", {"name": "more"}), headers=ACME)
            assert (refused.status, b"POLICY_VIOLATION" in refused.body) == (403, True)
            assert (await bare.ask(Asked("POST", "/topics", {"name": "more"}))).status == 201
            large = Asked("POST", f"/topics/{TOPIC}/messages", {"messages": [{"value": "x" * 2000}]})
            statuses = [(await bare.ask(large, headers=ACME)).status for _ in range(2)]
            assert statuses == [200, 429]
            assert [(await bare.ask(large)).status for _ in range(2)] == [200, 200]
            await b.advance("3s")
            assert (await bare.ask(large, headers=ACME)).status == 200
            used = await bare.ask(Asked("GET", "/admin/tenants/acme/usage"))
            assert b'"topics":1' in used.body

    asyncio.run(scenario())

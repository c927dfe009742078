"""`goqueue cluster`."""

from operator import itemgetter
from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED
from goqueue.cli.output import Column, size
from goqueue.client import HttpRefused

UNAVAILABLE = 503


async def _facts(call: Call) -> dict[str, Any]:
    stats = await call.admin.stats()
    probe = await call.admin.is_ready()
    return {
        "cluster_id": probe.broker.cluster_id if probe.broker else None,
        "server": call.target.server,
        "node_id": stats.node_id,
        "version": await call.admin.version(),
        "uptime": stats.uptime,
        "nodes": 1,
        "topics": stats.topics,
        "partitions": sum(each.partitions for each in stats.topic_stats.values()),
        "messages": sum(each.total_messages for each in stats.topic_stats.values()),
        "size_bytes": stats.total_size_bytes,
    }


async def info(call: Call) -> None:
    facts = await _facts(call)
    shown = {name.replace("_", " ").capitalize(): value for name, value in facts.items() if name != "size_bytes"}
    call.out.facts(facts, shown | {"Size": size(facts["size_bytes"])})


async def health(call: Call) -> int:
    try:
        probe = await call.admin.is_ready()
    except HttpRefused as error:
        if error.status != UNAVAILABLE:
            raise
        message = str(error)
        call.out.facts({"status": "fail", "message": message}, {"Status": "fail", "Message": message})
        return EXIT_FAILED
    checks = probe.checks or {}
    shown: dict[str, Any] = {"Status": probe.status, "Uptime": probe.uptime}
    call.out.facts(probe, shown)
    if call.out.is_for_a_person and checks:
        call.out.heading("Checks")
        rows = [[name, each.status, each.message] for name, each in checks.items()]
        call.out.table(["CHECK", "STATUS", "MESSAGE"], rows, [False] * 3)
    return 0


async def nodes(call: Call) -> None:
    facts = await _facts(call)
    node = {name: facts[name] for name in ("node_id", "server", "version", "uptime")} | {"state": "up"}
    columns = [Column(name.upper().replace("_", " "), itemgetter(name)) for name in node]
    call.out.rows([node], columns)

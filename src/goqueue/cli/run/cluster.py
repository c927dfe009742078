"""`goqueue cluster`."""

from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED
from goqueue.cli.output import count, size
from goqueue.client import HttpRefused
from goqueue.wire.rest.operations.cluster import CLUSTER_NODES, CLUSTER_STATE, RECOVER_CLUSTER

UNAVAILABLE = 503


async def _facts(call: Call) -> dict[str, Any]:
    stats = await call.admin.stats()
    probe = await call.admin.is_ready()
    state = await call.admin.call(CLUSTER_STATE)
    return {
        "cluster_id": probe.broker.cluster_id if probe.broker else None,
        "server": call.target.server,
        "node_id": stats.node_id,
        "version": await call.admin.version(),
        "uptime": stats.uptime,
        "nodes": state.nodes,
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


async def recover(call: Call) -> int:
    """What would be done, unless --yes says that it is to be."""
    given = call.given
    choices = [_choice(call, text) for text in given.choose]
    asked = {"without": given.without, "choices": choices, "reason": given.reason}
    found = await call.admin.call(RECOVER_CLUSTER, dry_run=not given.yes, **asked)
    if not call.out.is_for_a_person:
        call.out.facts(found)
        return 0
    call.out.facts(
        found,
        {
            "Halted": found.halted,
            "Done": "yes" if found.is_done else "no: this is what --yes would do",
            "Nodes without an answer": ", ".join(map(str, found.missing_nodes)) or "none",
            "Stay as they are": ", ".join(found.left) or "none",
        },
    )
    rows = [
        [
            f"{one.topic}/{one.partition}",
            f"{one.node_id}",
            f"{one.end_offset}",
            " ".join(f"{copy.node_id}:{copy.last_epoch}/{copy.end_offset}" for copy in one.copies),
        ]
        for one in found.partitions
    ]
    titles = ["PARTITION", "GOES ON WITH NODE", "END", "COPIES (NODE:EPOCH/END)"]
    call.out.table(titles, rows, [False, True, True, False])
    return 0


def _choice(call: Call, text: str) -> dict[str, Any]:
    place, _, node_id = text.partition("=")
    topic, _, partition = place.rpartition("/")
    if not topic or not partition.isdigit() or not node_id.isdigit():
        call.given.refuse(f"--choose {text}: say it as orders/0=2, a topic, a partition and a node")
    return {"topic": topic, "partition": int(partition), "node_id": int(node_id)}


async def ready(call: Call) -> int:
    """For rolling restarts: the next node may be stopped."""
    state = await call.admin.call(CLUSTER_STATE)
    told = [each for each in (await call.admin.call(CLUSTER_NODES)).nodes if each.is_alive]
    missing = [
        (state.under_replicated_partitions, "partition", "under-replicated"),
        (state.nodes - state.nodes_alive, "node", "down"),
        (sum(each.standbys_behind or 0 for each in told), "standby", "behind"),
        (sum(each.standbys_behind is None for each in told), "node", "silent about its standbys"),
    ]
    reasons = [f"{count(number_of, what)} {words}" for number_of, what, words in missing if number_of]
    if reasons:
        words = f"not yet: {', '.join(reasons)}"
        call.out.facts({"ready": False, "message": words}, {"Ready": "no", "Message": words})
        return EXIT_FAILED
    words = "all replicas are in sync, and standbys are up to date: one node may be stopped"
    call.out.facts({"ready": True, "message": words}, {"Ready": "yes", "Message": words})
    return 0

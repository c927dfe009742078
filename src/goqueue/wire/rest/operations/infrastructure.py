"""Operations on the node itself, and its documents."""

from typing import Any

from goqueue.wire.home import EVERYWHERE, HERE
from goqueue.wire.rest import infrastructure
from goqueue.wire.rest.operation import HTML, TEXT, Resource

NODE = Resource("Node")

HEALTH = NODE.add("health", "GET /health", infrastructure.Health, "Does the node answer at all?", home=HERE)

LIVEZ = NODE.add(
    "livez", "GET /livez", infrastructure.Probe, "Is the process alive? For startup and liveness probes.", home=HERE
)

HEALTHZ = NODE.add(
    "healthz",
    "GET /healthz",
    infrastructure.Probe,
    """Are all logs and ledgers of this node in service, and whole?

    A log or ledger that failed stays so until the node is restarted; a coordinator that met a fault of the node tries
    again. `warn`, with status 200, says that something was found damaged or missing, or that the disk is full: the node
    serves what there is, and a restart does not help.
    """,
    other_replies=((503, "A log or a ledger is out of service"),),
    home=HERE,
)

READYZ = NODE.add(
    "readyz",
    "GET /readyz",
    infrastructure.Probe,
    """May clients be sent here? For readiness probes.

    Not while the node stops, the disk is full, requests wait for seconds, or a log or a ledger is out of service.
    """,
    query=infrastructure.ProbeQuery,
    other_replies=((503, "Clients had better go elsewhere"),),
    home=HERE,
)

VERSION = NODE.add("version", "GET /version", infrastructure.Version, "Which GoQueue, on which Python.", home=HERE)

METRICS = NODE.add(
    "metrics",
    "GET /metrics",
    str,
    "Metrics for Prometheus, as text or, if asked for, as OpenMetrics with exemplars.",
    query=infrastructure.MetricsQuery,
    errors=(503,),
    header_fields=(("accept", "accept"),),
    media_type=TEXT,
    home=HERE,
)

STATS = NODE.add("stats", "GET /stats", infrastructure.Stats, "What is in this node, topic by topic.", home=EVERYWHERE)

DOCUMENTS = Resource("Documents")

ROOT = DOCUMENTS.add(
    "root",
    "GET /",
    infrastructure.Root,
    "Where to go on from here. Browsers are led to /console/.",
    query=infrastructure.RootQuery,
    other_replies=((303, "For browsers: to /console/"),),
    header_fields=(("accept", "accept"),),
    home=HERE,
)

OPENAPI = DOCUMENTS.add("openapi", "GET /openapi.json", dict[str, Any], "This document: OpenAPI 3.1.", home=HERE)

POSTMAN = DOCUMENTS.add(
    "postman",
    "GET /postman.json",
    dict[str, Any],
    """The same as a Postman collection.

    Set its variable `baseUrl` to where your node is.
    """,
    home=HERE,
)

DOCS = DOCUMENTS.add(
    "docs",
    "GET /docs",
    str,
    "The same as a page for people, who can try each operation there.",
    media_type=HTML,
    home=HERE,
)

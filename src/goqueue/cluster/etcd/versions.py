"""Which versions of etcd a node trusts. Older ones of these lines may corrupt data, or answer from the past after a
pause; a node asks every member that it can reach before it begins.
"""

import re
from collections.abc import Mapping

from goqueue.cluster.etcd.endpoints import Endpoints, EtcdOptions
from goqueue.cluster.etcd.messages import MEMBERS, STATUS
from goqueue.cluster.etcd.port import EtcdFault
from goqueue.model.errors import GoQueueError

OLDEST = ((3, 5, 28), (3, 6, 9))
"""Of each line; later lines are trusted."""


class EtcdTooOld(GoQueueError):
    """The message says which member, and the way out."""


def is_trusted(version: str) -> bool:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        return False
    parts = int(found[1]), int(found[2]), int(found[3])
    for oldest in OLDEST:
        if parts[:2] == oldest[:2]:
            return parts >= oldest
    return parts > OLDEST[-1]


def check_versions(versions: Mapping[str, str]) -> None:
    """EtcdTooOld: one of them is."""
    old = {endpoint: version for endpoint, version in versions.items() if not is_trusted(version)}
    if old:
        members = ", ".join(f"{endpoint} runs etcd {version or '(unknown)'}" for endpoint, version in old.items())
        needed = " or ".join(".".join(map(str, oldest)) for oldest in OLDEST)
        raise EtcdTooOld(
            f"{members}: {needed} is needed, or later of the same line. Older ones may lose metadata; upgrade etcd"
            " first, one member at a time (see docs/cluster.md)"
        )


def ask_versions(options: EtcdOptions) -> dict[str, str]:
    """Of every member that answers, by its address; for a thread that may wait. EtcdFault: none does."""
    endpoints = Endpoints(options)
    versions: dict[str, str] = {}
    last: EtcdFault | None = None
    try:
        asked: dict[str, None] = dict.fromkeys(options.endpoints)
        for endpoint in options.endpoints:
            try:
                members = endpoints.ask(MEMBERS, MEMBERS.request(), endpoint=endpoint).members
            except EtcdFault as fault:
                last = fault
                continue
            # What a member tells of itself may be out of our reach; then what we were given has to do.
            asked |= dict.fromkeys(url for member in members for url in member.clientURLs)
            break
        for endpoint in asked:
            try:
                versions[endpoint] = endpoints.ask(STATUS, STATUS.request(), endpoint=endpoint).version
            except EtcdFault as fault:
                last = fault
    finally:
        endpoints.close()
    if not versions:
        assert last is not None
        raise last
    return versions

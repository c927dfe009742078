"""Tells the broker how far a query is, as the offsets of a group: its lag is then seen where every other lag is.

Nobody reads these offsets back. A broker that cannot take them now is told the next ones.
"""

import hashlib
import json
from collections.abc import Mapping

from goqueue.client.assigned import Place
from goqueue.client.cluster import Cluster
from goqueue.client.errors import BrokerRefused, ClientError
from goqueue.client.offsets import GroupOffsets
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options

SEND_S_MAX = 2.0
_IDENTITY = ("kafka.bootstrap.servers", "subscribe", "subscribePattern", "assign", "path")


class PositionReport:
    def __init__(self, group: str | None) -> None:
        """None: nobody wants to know."""
        self.group = group
        self._sent: dict[Place, int] = {}

    @classmethod
    def of(cls, options: Options) -> "PositionReport":
        group: str | None = options.get("kafka.group.id")
        prefix: str | None = options.get("groupIdPrefix")
        if group is None and prefix is not None:
            group = f"{prefix}-{_digest(options)}"
        return cls(group)

    async def send(self, cluster: Cluster, offsets: Mapping[Place, int]) -> None:
        if self.group is None:
            return
        news = {place: offset for place, offset in offsets.items() if self._sent.get(place) != offset}
        if not news:
            return
        try:
            await GroupOffsets(cluster, self.group).commit(news, cluster.clock.time_s() + SEND_S_MAX)
        except BrokerRefused as error:
            if not error.retriable:
                raise SparkError(
                    f"the query's position cannot be reported under group {self.group!r}: {error};"
                    " a group whose members are consumers cannot be used for it"
                ) from None
        except ClientError:
            pass  # the next report says more
        else:
            self._sent |= news


def _digest(options: Options) -> str:
    """The same whenever the query is started; Spark does not tell its source the query's id."""
    said = json.dumps({name: options.get(name) for name in _IDENTITY}, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:12]

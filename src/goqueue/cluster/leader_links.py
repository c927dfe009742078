"""Which copies follow which node, and over which of the two ways: told of every change of role, it sees to it that each
copy is fetched for by one link, and by none while it leads.
"""

from collections.abc import Callable, Mapping

from goqueue.cluster.copies import Copies, CopyId, id_of
from goqueue.cluster.followed import Followed
from goqueue.cluster.leader_link import LeaderLink, Myself
from goqueue.cluster.peers import PeerWay
from goqueue.cluster.throttle import Throttle
from goqueue.ports.copying import Copying
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Following
from goqueue.runtime.clock import Clock


class LeaderLinks:
    """All of a node, by their leaders. `role_changed` is told of every copy of a topic or a ledger."""

    def __init__(
        self,
        way: Callable[[int, str], PeerWay],
        me: Callable[[], Myself],
        copies: Copies,
        clock: Clock,
        throttle: Throttle,
        is_in_sync: Callable[[Replica], bool],
    ) -> None:
        """`is_in_sync`: whether the copy of this node is in the ISR, as the metadata has it. Such a copy is never
        throttled."""
        self._way = way
        self._me = me
        self._copies = copies
        self._clock = clock
        self._throttle = throttle
        self._is_in_sync = is_in_sync
        self._links: dict[tuple[int, bool], LeaderLink] = {}
        self._where: dict[CopyId, LeaderLink] = {}

    def role_changed(self, replica: Replica) -> None:
        """Also of its companions, which take the role of their partition."""
        if CompanionName.parse(*replica.place) is None:
            self._copies.add(replica)
        self._place(replica)

    def _place(self, replica: Replica) -> None:
        self.withdraw(replica)
        role = replica.role
        if isinstance(role, Following) and role.leader >= 0 and role.leader != self._me().node_id:
            link = self._link(role.leader, catches_up=False)
            self._where[id_of(replica)] = link
            link.add(replica)

    def withdraw(self, replica: Replica) -> None:
        """No fetch speaks for it any more: to be called before this node stands for election."""
        link = self._where.pop(id_of(replica), None)
        if link is not None:
            link.remove(id_of(replica))

    def _link(self, leader: int, *, catches_up: bool) -> LeaderLink:
        found = self._links.get((leader, catches_up))
        if found is None:
            found = self._links[leader, catches_up] = LeaderLink(
                self._way(leader, "catch-up" if catches_up else "live"),
                self._me,
                self._copies,
                self._clock,
                throttle=self._throttle if catches_up else None,
                on_full=self._move,
                on_adopt=self._adopt,
            )
        return found

    def _adopt(self, companion: Replica) -> None:
        link = self._where.get(id_of(companion))
        if link is None:
            self._place(companion)
        else:
            link.add(companion)

    def _move(self, link: LeaderLink, followed: Followed) -> None:
        """From the live link to the other, or back."""
        leader = followed.role.leader
        is_live = link is self._links.get((leader, False))
        if is_live and self._is_in_sync(followed.replica):
            return
        other = self._link(leader, catches_up=is_live)
        link.remove(followed.copy)
        self._where[followed.copy] = other
        followed.full_answers = 0
        other.move_in(followed)

    def copying(self, lags: Mapping[int, int]) -> Copying:
        links = self._links.values()
        return Copying(
            sum(link.fetches for link in links),
            sum(link.failures for link in links),
            sum(link.copied_bytes for link in links),
            lags,
        )

    def close(self) -> None:
        for link in self._links.values():
            link.close()

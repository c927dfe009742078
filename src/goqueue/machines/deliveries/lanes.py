"""Lanes: whose turn it is. Deficit round robin: a lane may be served as often as its weight says before all others had
their share, so that the first one comes first and the last one is not forgotten.
"""

from collections.abc import Sequence
from typing import TypeAlias

from goqueue.model.lanes import LANES

Shares: TypeAlias = tuple[int, ...]
"""How many records more each lane may take before the others get theirs."""

NO_DEFICITS: Shares = (0,) * LANES


def share_out(
    ready: Sequence[int], deficits: Sequence[int], weights: Sequence[int], count: int
) -> tuple[list[tuple[int, int]], Shares]:
    """Serve `count` of the records that are `ready` in each lane: (lane, how many), each lane once, in the order in
    which they are first served; and what each lane may still take of its share afterwards. A lane with nothing ready
    loses its share.
    """
    lanes = [lane for lane in range(LANES) if ready[lane]]
    if len(lanes) < 2:  # nobody to share with
        return [(lane, min(count, ready[lane])) for lane in lanes], NO_DEFICITS
    left = list(ready)
    shares = [deficits[lane] if ready[lane] else 0 for lane in range(LANES)]
    served: dict[int, int] = {}
    while count > 0 and lanes:
        lane = next((lane for lane in lanes if shares[lane] > 0), None)
        if lane is None:
            for each in lanes:
                shares[each] = max(1, weights[each])
            lane = lanes[0]
        # The last lane left has nobody to wait for.
        taken = min(count, left[lane], shares[lane] if len(lanes) > 1 else count)
        served[lane] = served.get(lane, 0) + taken
        count -= taken
        left[lane] -= taken
        shares[lane] = max(0, shares[lane] - taken)
        if not left[lane]:
            lanes.remove(lane)
            shares[lane] = 0
    return list(served.items()), tuple(shares)

"""What a node's process does about itself."""

import gc

from goqueue.node.process import freeze_start


def test_what_the_start_made_is_not_looked_at_by_collections() -> None:
    before = gc.get_freeze_count()
    made = [[number] for number in range(1000)]
    try:
        freeze_start()
        assert gc.get_freeze_count() >= before + len(made)
    finally:
        gc.unfreeze()

from random import Random
from uuid import UUID

from goqueue.ports.dice import random_id, random_uuid, system_dice


def test_the_same_seed_gives_the_same_ids_and_another_seed_others() -> None:
    def drawn(seed: int) -> tuple[bytes, str]:
        dice = Random(seed)
        return random_id(dice), random_uuid(dice)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_the_dice_of_a_real_process_never_give_an_id_twice() -> None:
    dice = system_dice()
    assert len({random_id(dice) for _ in range(1000)}) == 1000


def test_a_random_uuid_is_one_of_version_4() -> None:
    assert UUID(random_uuid(Random(7))).version == 4

from goqueue.runtime.company import LINGERS_MAX, PAUSE_MAX, Company


def syncs_between_waits(company: Company) -> int:
    """How many syncs, each of one who was alone in it while another came, pass before the next wait."""
    count = 0
    while True:
        company.stored(1)
        company.sync_ended(1)
        if company.is_awaited(1):
            company.waited_in_vain()
            return count
        count += 1


def test_waits_in_vain_become_rare() -> None:
    company = Company()
    found = [syncs_between_waits(company) for _ in range(10)]
    assert found == [0, 1, 2, 4, 8, 16, 32, 64, 64, 64]
    assert found[-1] == PAUSE_MAX


def test_those_who_came_back_once_are_waited_for_again() -> None:
    company = Company()
    for _ in range(5):
        syncs_between_waits(company)
    company.stored(2)
    assert company.is_here(2)
    company.came()
    syncs_between_waits(company)  # what was left of the last pause
    assert syncs_between_waits(company) == 1


def test_who_still_comes_is_waited_for_once_more_and_not_for_ever() -> None:
    company = Company()
    company.stored(8)
    assert company.is_awaited(1)
    for here in range(2, LINGERS_MAX + 1):
        assert company.still_comes(here)
    assert not company.still_comes(7)
    company.waited_in_vain()
    company.stored(8)
    assert not company.is_awaited(1), "it was in vain"


def test_who_does_not_come_is_not_waited_for_any_longer() -> None:
    company = Company()
    company.stored(8)
    assert company.is_awaited(3)
    assert not company.still_comes(3)


def test_what_needs_no_sync_is_never_waited_for() -> None:
    company = Company()
    company.stored(3)
    company.stored(0)
    assert not company.is_awaited(1)

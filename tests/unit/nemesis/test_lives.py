"""A client that does not return from a call is left behind, and another takes its place."""

import io
import threading

import confluent_kafka as ck

from tools.nemesis.history import Book
from tools.nemesis.workloads.common import Run
from tools.nemesis.workloads.lives import Life, live


def a_run() -> Run:
    return Run(Book(io.StringIO()), (), (), ())


def test_a_client_that_was_silent_for_too_long_is_given_up_and_told_of() -> None:
    run, answer, last = a_run(), threading.Event(), threading.Event()
    names: list[str] = []

    def work(life: Life) -> None:
        names.append(life.name)
        if len(names) == 1:
            answer.wait()
            assert not life.goes_on(), "another has taken its place"
            last.set()
        else:
            run.is_ending.set()

    live(run, "writer", work, silent_s_max=0)
    assert run.given_up[0] == "writer.0"
    assert "writer.0 was given up" in run.notes[0]
    assert "answer.wait()" in run.notes[0], "the line that it waits in"
    assert names[:2] == ["writer.0", "writer.1"]
    answer.set()
    last.wait()
    assert run.problems == []


def test_an_error_of_the_client_is_followed_by_another_life() -> None:
    run = a_run()
    lives: list[Life] = []

    def work(life: Life) -> None:
        lives.append(life)
        if len(lives) == 1:
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._FATAL))
        run.is_ending.set()

    live(run, "writer", work)
    assert len(lives) == 2
    assert [note.partition(":")[0] for note in run.notes] == ["writer began anew"]
    assert run.problems == []


def test_any_other_error_is_one_of_the_workload_and_proves_nothing() -> None:
    run = a_run()

    def work(life: Life) -> None:
        run.is_ending.set()
        raise ValueError("the workload")

    live(run, "writer", work)
    assert run.problems == ["writer broke: ValueError('the workload')"]

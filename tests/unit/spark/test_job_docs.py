"""docs/pipeline.md: its commands can be given as they stand there, and every job has its place on the page."""

import re
import shlex
from pathlib import Path

from goqueue.cli.parser import parse
from goqueue.spark.jobs.comparing import FAULTS, GONE
from goqueue.spark.jobs.table import JOBS

PAGE = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text("utf-8")


def test_every_command_of_the_page_can_be_given() -> None:
    lines = [line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    assert len(lines) > len(JOBS)
    used = {parse(shlex.split(line)[1:]).command.words for line in lines}
    assert used == {f"pipeline {job.name}" for job in JOBS}


def test_every_job_and_every_fault_is_on_the_page() -> None:
    told = set(re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \|", PAGE, re.MULTILINE))
    words = {word for pair in told for word in pair if word}
    assert {job.name for job in JOBS} | {*FAULTS, GONE} == words

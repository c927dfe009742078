"""The modules of the console in Node, with a browser that is no more than they need: for what a real one cannot be
asked, since it depends on which answer comes first."""

import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

PAGES = Path(__file__).parent / "console" / "pages.mjs"


def test_pages_do_what_they_should_whatever_comes_first(tmp_path: Path) -> None:
    modules = tmp_path / "console"
    shutil.copytree(str(files("goqueue.doors.http").joinpath("console")), modules)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    ran = subprocess.run(
        ["node", "--test", str(PAGES)],
        env={**os.environ, "CONSOLE": str(modules)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr

"""`make docs`: collect the pages in build/site-source, build build/site from them, and check what came out."""

import shutil
import subprocess
import sys

from tools.site.check import problems
from tools.site.pages import ROOT, SITE, SOURCE, write_pages


def main() -> int:
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    write_pages(SOURCE)
    line = [sys.executable, "-m", "zensical", "build", "--config-file", str(ROOT / "mkdocs.yml"), "--strict"]
    if subprocess.run(line, cwd=ROOT, check=False).returncode:
        return 1
    found = problems(SITE)
    for each in found:
        print(each, file=sys.stderr)
    print(f"{SITE.relative_to(ROOT)}: {sum(1 for _ in SITE.rglob('*.html'))} pages, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

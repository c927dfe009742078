"""`python -m tools.needed go node`: says which of these programs are missing, and fails if any is."""

import shutil
import sys

missing = [name for name in sys.argv[1:] if shutil.which(name) is None]
if missing:
    sys.exit(f"not on the PATH: {', '.join(missing)}")

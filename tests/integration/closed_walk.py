"""The walk-through of a closed cluster in docs/cluster.md, as a shell runs it: its lines, with other names."""

import json
import os
import re
import subprocess
from pathlib import Path

from tests.integration.closed_cluster import ClosedCluster
from tests.integration.process import DEADLINE_S, GOQUEUE

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
IN_LINE = re.compile(r"`(goqueue config set-context [^`]+)`")
PASSWORD = "chosen-by-a-person"


class Walk:
    def __init__(self, cluster: ClosedCluster, directory: Path) -> None:
        section = PAGE.read_text("utf-8").partition("\n## A closed cluster\n")[2].partition("\n## ")[0]
        blocks = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
        self.certificates, self.serve, self.accounts, self.programs = blocks
        (self.context,) = IN_LINE.findall(section)
        self._cluster = cluster
        self._directory = directory
        self.keep("password", PASSWORD)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GOQUEUE_")}
        path = f"{Path(GOQUEUE).parent}{os.pathsep}{clean['PATH']}"
        self._environment = clean | {"HOME": str(directory), "PATH": path}

    def keep(self, name: str, secret: str) -> None:
        (self._directory / name).write_text(secret)
        (self._directory / name).chmod(0o600)

    def run(self, lines: str, **environment: str) -> str:
        """What they print. They end at the first that fails."""
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", lines],
            cwd=self._directory,
            env=self._environment | environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, f"{lines}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def here(self, lines: str) -> str:
        """With the addresses of this cluster, and names that it does not have yet. A password, which is asked for on a
        terminal, comes from a file."""
        lines = re.sub(r"(goqueue user create \w+)", r"\1 --password-file password", lines)
        others = {"-u root": f"-u 'boss:{PASSWORD}'", " root": " boss", "orders": "walked", "curl ": "curl -sS --fail "}
        others |= {"ca.pem": str(self._cluster.ca), "sasl.password=...": f"'sasl.password={PASSWORD}'"}
        for number, host in self._cluster.hosts.items():
            others |= {f"10.0.0.{number}:8443": f"{host}:8080", f"10.0.0.{number}:9093": f"{host}:9092"}
        for said, meant in others.items():
            lines = lines.replace(said, meant)
        return lines

    def keep_key(self, printed: str) -> None:
        """That was shown behind all else."""
        self.keep("ops.key", json.loads(printed[printed.index("{") :])["key"])

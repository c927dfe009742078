"""The NATS server of this folder's go.mod, which names it as a tool: it has a main package of its own."""

from pathlib import Path

from tools.golang import GoProgram

MODULE = "github.com/nats-io/nats-server/v2"
NATS = GoProgram("nats-server", Path(__file__).parent, MODULE, MODULE)

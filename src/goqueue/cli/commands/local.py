"""Commands that run here, or are about this program."""

from goqueue.cli.table import ASKS, OUTPUTS_OF_NAMES, Arg, Asks, Command, flag, place
from goqueue.cli.values import MECHANISMS, REFUSED, refused_secret, server_url

BARE = frozenset({"dev", "insecure"})
"""Settings whose flags have no value: to say one is to switch it on."""


def _settings() -> tuple[Arg, ...]:
    from goqueue.node.settings import SPECS

    found = []
    for spec in SPECS:
        default = f"default {spec.default}; " if spec.default else ""
        text = f"{spec.help} ({default}{spec.variable})"
        metavar = "" if spec.name in BARE else spec.kind.metavar
        found.append(Arg((spec.flag,), text, metavar=metavar, dest=spec.name, is_absent_by_default=True))
    return tuple(found)


FIRST = (
    Command(
        "serve",
        "start a node and run it until SIGTERM",
        "serve.serve",
        (
            flag(
                "--config",
                metavar="FILE",
                help="TOML file with settings; flags and environment win (GOQUEUE_CONFIG)",
            ),
        ),
        _settings,
        examples=(
            "goqueue serve --dev",
            "goqueue serve --data-dir data",
            "goqueue serve --insecure --kafka 0.0.0.0:9092",
        ),
        outputs=(),
        is_remote=False,
    ),
)

_NAME = place("name", "name of a context", names_of="contexts")

CONFIG = (
    Command(
        "config view",
        "show the configuration file, and what holds now",
        "config.view",
        (flag("--raw", help="show API keys and passwords too"),),
        outputs=("yaml", "json", "table"),
    ),
    Command(
        "config get-contexts",
        "list the contexts",
        "config.get_contexts",
        outputs=OUTPUTS_OF_NAMES,
        is_remote=False,
    ),
    Command(
        "config use-context",
        "work with this context from now on",
        "config.use_context",
        (_NAME,),
        examples=("goqueue config use-context staging",),
        is_remote=False,
    ),
    Command(
        "config set-context",
        "make a context, or change one",
        "config.set_context",
        (
            _NAME,
            flag("--server", "-s", metavar="URL", kind=server_url, dest="server", help="HTTP address of a node"),
            flag("--api-key", metavar="KEY", kind=refused_secret, help=REFUSED),
            flag("--api-key-file", metavar="FILE", help="file with that key in its first line"),
            flag("--user", metavar="NAME", help="who logs in, instead of a key"),
            flag("--password-file", metavar="FILE", help="file with the password of --user in its first line"),
            flag("--password", help="ask for the password of --user now, and keep it in the configuration file"),
            flag("--sasl", metavar="MECHANISM", choices=MECHANISMS, help="how --user logs in over Kafka"),
            flag("--token-file", metavar="FILE", help="file with a token (JWT), instead of a key"),
            flag("--timeout", metavar="TIME", help="how long to wait for an answer, such as 30s"),
            flag("--ca", metavar="FILE", help="authority of the server's certificate, for https (PEM)"),
            flag("--cert", metavar="FILE", help="certificate to show to the server (PEM)"),
            flag("--key", metavar="FILE", help="key of --cert (PEM)"),
            flag("--key-password-file", metavar="FILE", help="file with the password of --key, if it has one"),
            flag("--kafka", metavar="HOST:PORT", help="where Kafka clients connect, for bench and pipeline"),
            flag("--tls", help="Kafka clients speak TLS there"),
            flag("--tenant", metavar="ID", help="the tenant that an admin of the cluster acts for"),
        ),
        about="A context has one login: a key, a user or a token. Whoever says another one replaces it.",
        examples=(
            "goqueue config set-context staging --server http://10.0.0.7:8080",
            "goqueue config set-context live --server https://mq.example.org:8443 --ca ca.pem --user alice --password",
        ),
        is_remote=False,
    ),
    Command("config delete-context", "forget a context", "config.delete_context", (_NAME,), is_remote=False),
)

LAST = (
    Command(
        "doctor",
        "check the data directory and its logs, limits, disk and clock, and say what to fix",
        "doctor.doctor",
        (
            flag(
                "--data-dir",
                metavar="PATH",
                default="data",
                help="data directory of a node on this machine (default data)",
            ),
            flag("--security", help="also look at who could come in: listeners, certificates, files, accounts"),
            flag("--config", metavar="PATH", help="with --security: file with the settings of the node"),
        ),
        about=(
            "Ends with 1 if something has to be fixed. A node that does not answer is only a warning. Where no node"
            " runs on the data directory, its logs are looked at too: whether anything is missing or damaged."
        ),
        examples=(
            "goqueue doctor --data-dir /var/lib/goqueue",
            "goqueue doctor --security --config /etc/goqueue.toml --api-key-file admin.key",
        ),
        needs_loop=True,
    ),
    Command(
        "repair",
        "bring back a node that does not start because its metadata is damaged",
        "repair.repair",
        (
            flag("--data-dir", metavar="PATH", default="data", help="data directory of the node (default data)"),
            flag("--dry-run", help="only tell what would be done"),
        ),
        about=(
            "The metadata, which tells what topics there are, is put together from its snapshots, from what is left of"
            " its log, and from the logs of the topics. Nothing is deleted: what was there is copied to the folder"
            " damaged. Restoring a backup is better, where there is one."
        ),
        examples=("goqueue repair --data-dir /var/lib/goqueue --dry-run",),
        is_remote=False,
    ),
    Command(
        "admin reset",
        "let a node whose admins have all lost their credentials make a new first key",
        "reset.reset",
        (flag("--data-dir", metavar="PATH", default="data", help="data directory of the node (default data)"),),
        about=(
            "The node must not run. At its next start it makes a bootstrap key, as at its first one: an admin's, for a"
            " day or until another admin is made. Accounts and rules stay as they are. In a cluster one node is enough."
        ),
        examples=("goqueue admin reset --data-dir /var/lib/goqueue",),
        is_remote=False,
    ),
    Command(
        "admin rekey",
        "seal everything under the master key that is in use",
        ASKS,
        about=(
            "Put the new key above the old one in master_key_file, of every node, and restart them; then do this, and"
            " take the old key away. Whoever is interrupted does it again."
        ),
        examples=("goqueue admin rekey",),
        asks=Asks("accounts.REKEY", says="{accounts} accounts were sealed anew"),
    ),
    Command(
        "version",
        "show the version",
        "version.show",
        (flag("--remote", help="ask the server for its version too"),),
        examples=("goqueue version --remote -o json",),
    ),
    Command(
        "completion",
        "print a script that completes commands in your shell",
        "pages.completion",
        (place("shell", "bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        examples=(
            "source <(goqueue completion bash)",
            "goqueue completion zsh > ~/.zfunc/_goqueue",
            "goqueue completion fish > ~/.config/fish/completions/goqueue.fish",
        ),
        outputs=(),
        is_remote=False,
    ),
    Command(
        "reference",
        "print all commands as a page of Markdown",
        "pages.reference",
        examples=("goqueue reference > docs/cli.md",),
        outputs=(),
        is_remote=False,
    ),
)
